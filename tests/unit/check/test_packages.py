"""Packages that a recipe needs are asked for before any work starts."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.recipe import packages as packages_module
from bertwright.check.recipe.packages import REQUIRED, packages
from bertwright.core.errors import MissingExtraError
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.export.config import Format
from bertwright.export.runtimes.members import runtime_named


def lacking(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(packages_module, "find_spec", lambda name: None if name in packages else object())


@each_row(
    ("path", "package"),
    [("s3a://box/a.txt", "s3fs"), ("AZ://box/a.txt", "adlfs"), ("abfs://box/a.txt", "adlfs"), ("https://a.b/c", None)],
)
def test_the_package_of_a_storage_is_required_by_its_scheme(
    path: str, package: str | None, load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, "s3fs", "adlfs")
    missing = list(packages(load(f"corpus.source={path}"), ["corpus"]))
    assert [verdict.text.split(" needs ")[1].split(",")[0] for verdict in missing] == ([package] if package else [])
    assert not list(packages(load(f"corpus.source={path}"), ["train"])), "nobody reads it"


@each_row(
    ("observer", "package", "extra"),
    [("tensorboard", "tensorboardX", "tensorboard"), ("mlflow", "mlflow", "mlflow"), ("wandb", "wandb", "wandb")],
)
def test_the_package_of_an_observer_is_required(
    observer: str, package: str, extra: str, load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, package)
    recipe = load(f'train.observers=["{observer}"]')
    (missing,) = packages(recipe, ["train"])
    assert missing.kind is MissingExtraError and missing.about == "train.observers"
    assert missing.text == (
        f"train.observers = {observer} needs {package}, which is not installed: pip install 'bertwright[{extra}]'."
    )
    assert not list(packages(recipe, ["evaluate"])), "nobody watches it"


def test_the_package_of_an_engine_is_required(load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, "deepspeed")
    (missing,) = packages(load("train.engine=deepspeed"), ["train"])
    assert missing.kind is MissingExtraError and missing.about == "train.engine"
    assert missing.text == (
        "train.engine = deepspeed needs deepspeed, which is not installed: pip install 'bertwright[deepspeed]'."
    )


@each_row("name", get_args(Format))
def test_the_packages_of_a_format_are_required(
    name: str, load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.export.runtimes.llama_cpp_converter.missing_sources", lambda: "")
    modules, extra = packages_module.FORMATS[name]  # type: ignore[index]
    recipe = load(f'export.formats=["{name}"]')
    for module in modules:
        lacking(monkeypatch, module)
        (missing,) = packages(recipe, ["export"])
        assert missing.kind is MissingExtraError and missing.about == "export.formats"
        assert module in missing.text and f"pip install 'bertwright[{extra}]'" in missing.text
        assert f"'bertwright[{extra}]'" in runtime_named(name).install, "the stage names the same"
    assert not list(packages(recipe, ["train"])), "nobody writes it"


def test_the_converter_of_gguf_is_required_which_no_package_has(
    load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LLAMA_CPP", str(tmp_path))
    (missing,) = packages(load('export.formats=["gguf-q8"]'), ["export"])
    assert missing.kind is MissingExtraError and "pip download" in missing.text and str(tmp_path) in missing.text
    assert not list(packages(load('export.formats=["onnx"]'), ["export"]))
    assert missing_of("gguf-q8") == missing_of("gguf") != "" == missing_of("onnx"), "the stage says the same"


def missing_of(name: str) -> str:
    return runtime_named(name).missing_to_write()


def test_missing_base_packages_are_reported(load: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load()
    lacking(monkeypatch, *REQUIRED)
    missing = {verdict.text.split()[-1].rstrip("."): verdict for verdict in packages(recipe, list(STAGE_NAMES))}
    assert missing.keys() == REQUIRED.keys()
    assert missing["zstandard"].kind is MissingExtraError and missing["zstandard"].about == "corpus"
    assert missing["zstandard"].sentence == (
        "corpus, vocab, examples need the package zstandard, which is not installed: pip install zstandard. Or do that "
        "where it is installed: results are used wherever their folder is."
    )
    assert missing["sentencex"].text.startswith("corpus needs the package sentencex, which")
    assert [verdict.text.split()[-1] for verdict in packages(recipe, ["train"])] == ["torch.", "safetensors."]
    without = recipe.model_copy(update={"corpus": None})
    assert "zstandard" not in "".join(verdict.text for verdict in packages(without, ["vocab", "examples"]))


def test_what_is_required_is_installed_with_bertwright() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert REQUIRED.keys() <= {re.split(r"[<>=]", named)[0] for named in project["dependencies"]}
