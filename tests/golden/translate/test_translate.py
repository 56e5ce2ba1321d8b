"""The command lines of the original programs' documents, and the recipes and places that they become.

`BERTWRIGHT_WRITE_GOLDEN=1 pytest tests/golden/translate` writes the recipes and the places anew.
"""

import json
import os
import tomllib
from pathlib import Path

import pytest
from tests.reference.teachers import SPECIALS
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.toml_values import value_text
from bertwright.launch.config import TARGETS
from bertwright.model.bert.config import SIZES
from bertwright.translate.azure_job import read_job
from bertwright.translate.shell import parse_script
from bertwright.translate.text import place_text, start_line, text
from bertwright.translate.translation import Translation, translate

HERE = Path(__file__).parent
SCRIPTS = sorted([*HERE.glob("*.sh"), *HERE.glob("*.yml")])


def translated(script: Path) -> Translation:
    text = script.read_text(encoding="utf-8")
    return translate(read_job(text, HERE) if script.suffix == ".yml" else parse_script(text), strict=False)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the commands name: a configuration, and the vocabularies."""
    monkeypatch.chdir(tmp_path)
    hidden, layers, heads, inner = SIZES["large"]
    numbers = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    config = json.dumps({**numbers, "intermediate_size": inner, "vocab_size": 32101})
    for name in ("bert_config.json", "bert_configs/large.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(config)
    for name in ("bert-base-cased", "bert-base-uncased"):
        (tmp_path / "downloads" / name).mkdir(parents=True)
        (tmp_path / "downloads" / name / "config.json").write_text(config)
        (tmp_path / "downloads" / name / "vocab.txt").write_text("".join(f"{entry}\n" for entry in SPECIALS))
    google = "workspace/{}/data/download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt"
    for name in (
        "downloads/google-uncased-vocab.txt",
        "downloads/google-cased-vocab.txt",
        "vocab/vocab",
        *map(google.format, ("BERT", "bert")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"{entry}\n" for entry in SPECIALS))
    return tmp_path


def kept(file: Path, made: str) -> str:
    """The text of a kept file, after writing it anew if that is asked for; without a text there is no file."""
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        file.unlink(missing_ok=True)
        if made:
            file.write_text(made, encoding="utf-8")
    return file.read_text(encoding="utf-8") if file.exists() else ""


@each_row("script", SCRIPTS)
def test_it_becomes_the_recipe_that_is_kept(script: Path) -> None:
    made = text(translated(script))
    assert made == kept(script.with_suffix(".toml"), made)


@each_row("script", SCRIPTS)
def test_it_starts_at_the_place_that_is_kept(script: Path) -> None:
    translation = translated(script)
    made = place_text(translation)
    assert made == kept(script.with_suffix(".place.toml"), made)
    if made:
        filled = translation.filled_place
        assert TARGETS[filled["kind"]](**filled)
        assert tomllib.loads(made) == translation.place and start_line(translation, "r").startswith("bertwright launch")


@each_row("script", SCRIPTS)
def test_the_recipe_loads_and_says_what_the_comments_stand_at(script: Path, workplace: Path) -> None:
    translation = translated(script)
    (workplace / "recipe.toml").write_text(text(translation), encoding="utf-8")
    # What training starts from is the user's, and no folder of it is made here.
    recipe = Recipe.load(workplace / "recipe.toml", given=False)
    for i, phase in enumerate(translation.phases):
        for name in ("length", "batch", "micro_batch", "steps", "learning_rate"):
            if name in phase:
                assert getattr(recipe.train.phases[i], name) == phase[name].value, name


@each_row("script", SCRIPTS)
def test_every_option_is_accounted_for(script: Path) -> None:
    translation = translated(script)
    for account in translation.accounts:
        assert account.keys or account.note, account.option
        for key in account.keys:
            name = key.removeprefix("train.phases.0.")
            assert key in translation.sections or any(name in phase for phase in translation.phases), account


@each_row("job", sorted(HERE.glob("*.yml")))
def test_a_job_file_says_what_the_command_with_its_launcher_says(job: Path) -> None:
    """Of each the command line, started by hand on as many processes, is there too."""
    by_hand = job.with_name(job.name.replace("-job.yml", ".sh"))
    ours, other = translated(job), translated(by_hand)
    assert ours.recipe == other.recipe and ours.launch.ranks == other.launch.ranks == 16
    assert ours.place["kind"] == "azureml" and ours.place["nodes"] == 2 and ours.place["ranks"] == 8


def test_values_are_written_as_toml_writes_them() -> None:
    values = {"a": 1e-08, "b": [True, 'x"ő'], "c": {"kind": "fp16", "n": 3}}
    assert value_text(values) == '{ a = 1e-08, b = [true, "x\\"ő"], c = { kind = "fp16", n = 3 } }'
