"""Plugins of an installed package: a training with one of each kind, what records it, and mistakes in naming them."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import bertwright

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.core.json_values import parse_json
from bertwright.core.plugins import plugin_class

PACKAGE = Path(__file__).parent / "plugin"
ALL = (
    'optim={kind="sign", momentum=0.8, weight_decay=0.1}',
    'train.phases.0.schedule={kind="stairs", parts=3}',
    'train.phases.1.schedule="toy.training:StairsSchedule"',
    'train.objective={kind="mlm_alone"}',
    'train.observers=[{kind="lines"}]',
)


def said(*arguments: object, code: int = 0) -> str:
    done = bertwright(*arguments, environment={"PYTHONPATH": str(PACKAGE)})
    assert done.code == code, done.out + done.err
    return done.out if code == 0 else done.err


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package, installed for this process."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield
    plugin_class.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_trains_with_plugins_of_each_kind_and_records_their_package(small_recipe: Path, tmp_path: Path) -> None:
    text = tmp_path / "marked.txt"
    sentence = "A {n}. ház kertjében egy öreg fa áll, és alatta a gyerekek minden délután játszanak valamit."
    text.write_text(
        "".join(f"{' '.join(sentence.format(n=n * 9 + k) for k in range(9))}\n<|endoftext|>\n" for n in range(120)),
        "utf-8",
    )
    out = tmp_path / "run"
    source = f'corpus.source={{path="{text}", format="marked"}}'
    run = ("run", small_recipe, "--out", out, *ALL, source, "corpus.filter.languages=", "corpus.filter.enabled=false")
    said(*run, "train.phases.1.steps=4")
    rows = [json.loads(line) for line in (out / "train" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert "nsp_loss" not in rows[-1] and rows[-1]["mlm_loss"] < rows[0]["mlm_loss"]
    lines = (out / "train" / "observers" / "rows.txt").read_text("utf-8").splitlines()
    assert lines == [f"{row['total_steps']} {row['learning_rate']}" for row in rows]
    manifest = read(out / "train" / "manifest.json")
    assert manifest["counts"]["sessions"][0]["plugins"] == {
        "optim=sign": "toy 1.2",
        "train.phases.0.schedule=stairs": "toy 1.2",
        "train.phases.1.schedule=toy.training:StairsSchedule": "toy 1.2",
        "train.objective=mlm_alone": "toy 1.2",
        "train.observers.0=lines": "toy 1.2",
    }
    assert read(out / "corpus" / "manifest.json")["counts"]["libraries"]["marked"] == "toy 1.2"
    assert "plugin optim=sign" in (out / "report.html").read_text("utf-8")
    # Extended, the optimizer goes on with its own moments, and finished stages are not repeated.
    said(*run, "train.phases.1.steps=6")
    assert len((out / "train" / "metrics.jsonl").read_text("utf-8").splitlines()) > len(rows)
    assert parse_json(said("inspect", out, "--batch", "1", "--json"))["masked"] > 0
    assert "momentum: 0.8 -> 0.7" in said(*run, "optim.momentum=0.7", code=4)


def test_only_named_plugins_are_imported(package: None) -> None:
    recipe = Recipe.load("smoke", ["optim.kind=sign"])
    assert (recipe.optim.kind, recipe.optim.package, recipe.optim.momentum) == ("sign", "toy 1.2", 0.9)
    loaded = {name for name in sys.modules if name.partition(".")[0] == "toy"}
    assert loaded == {"toy", "toy.training"}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("optim.kind=sing", "'sing' is not one of 'lamb', 'adamw', 'muon', 'sign', 'broken'; did you mean 'sign'?"),
        ("optim.kind=toy.training:Sgn", "'toy.training:Sgn' cannot be imported (AttributeError: module 'toy.training'"),
        ("optim.kind=broken", "'broken' cannot be imported (RuntimeError: imported, although no recipe names it)"),
        ("optim.kind=nothing:Here", "ModuleNotFoundError: No module named 'nothing'); install its package in this"),
        ("optim.kind=toy.training:StairsSchedule", "is no OptimizerPlugin; give a subclass of bertwright.optim.config"),
        ('optim={kind="sign", momentun=0.5}', "optim.momentun: unknown key 'momentun'; did you mean 'momentum'?"),
        ('optim={kind="sign", momentum=1.5}', 'It is described as: "Decay rate of the average."'),
        ("train.phases.0.schedule=stair", "'wsd', 'stairs'; did you mean 'stairs'?"),
        ('corpus.source={path="sample", format="toy.marked:X"}', "has no attribute 'X'"),
        ('train.observers=[{kind="lines"},{kind="lines"}]', "names lines 2 times: name it once"),
    ],
)
def test_a_mistake_says_what_exists(override: str, sentence: str, package: None) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe.load("smoke", [override])
    assert sentence in str(caught.value)


def test_a_key_below_the_name_of_a_plugin_makes_it_a_section(package: None) -> None:
    recipe = Recipe.load("smoke", ["train.phases.0.schedule=stairs", "train.phases.0.schedule.parts=7"])
    assert recipe.train.phases[0].schedule.parts == 7


def test_a_section_built_in_python_is_saved_under_its_class(package: None, tmp_path: Path) -> None:
    from toy.training import SignConfig

    values = Recipe.load("smoke").model_dump(exclude_none=True)
    recipe = Recipe(**{**values, "optim": SignConfig(momentum=0.5)})
    recipe.write(tmp_path / "mine.toml")
    again = Recipe.load(tmp_path / "mine.toml")
    assert again.optim == recipe.optim == SignConfig(kind="toy.training:SignConfig", momentum=0.5)


def test_an_optimizer_that_cannot_be_saved_is_refused_before_training(tmp_path: Path) -> None:
    import torch

    from bertwright.optim.build import moment_names
    from bertwright.optim.config import OptimizerPlugin

    class Plain(OptimizerPlugin):
        def build(self, groups: Any, shards: Any) -> torch.optim.Optimizer:
            return torch.optim.SGD(groups, lr=0.0)

    with pytest.raises(RecipeError, match=r"cannot be saved: its state of weight has no tensor `step`"):
        moment_names(Plain(), torch.nn.Linear(2, 2))
