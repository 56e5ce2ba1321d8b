"""What the verbs of the stages ask the pipeline for, and what they print of what it made."""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.rows import each_row
from typer import Exit

from bertwright import Recipe
from bertwright.cli import app, corpus, stages
from bertwright.core.errors import RecipeError
from bertwright.core.files import write_json
from bertwright.core.work_split import SINGLE, WorkSplit

Call = Callable[..., SimpleNamespace]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """`call("run", recipe)`: the command; gives what `run` was called with. It makes the folders of its stages."""
    asked = SimpleNamespace()

    def run(recipe: Any, out: Path, names: Any, log: Any, executor: Any, share: Any) -> SimpleNamespace:
        print("[INFO] what a package prints")
        vars(asked).update(recipe=recipe, out=out, stages=list(names), executor=executor, share=share)
        folder = Path(out).absolute()
        for name in names:
            (folder / name).mkdir(parents=True, exist_ok=True)
        if "report" in names:
            (folder / "report.html").touch()
            write_json(folder / "summary.json", {"mlm_loss": 2.5, "title": "híd"})
        return SimpleNamespace(path=folder)

    monkeypatch.setattr(stages, "run", run)

    def command(*arguments: object) -> SimpleNamespace:
        app.app(list(map(str, arguments)), standalone_mode=False)
        return asked

    return command


def test_run_goes_to_the_end_or_until_a_stage(call: Call, small_recipe: Path, tmp_path: Path) -> None:
    assert call("run", small_recipe, "--out", tmp_path).stages[-2:] == ["export", "report"]
    assert call("run", small_recipe, "--out", tmp_path, "--until", "vocab").stages == ["corpus", "vocab"]
    with pytest.raises(RecipeError, match=r"--until vocabulary: there is no such stage; the stages are corpus, vocab"):
        call("run", small_recipe, "--until", "vocabulary")


@each_row("verb", ["corpus", "vocab", "examples", "train", "evaluate", "export", "report"])
def test_every_stage_is_a_verb_and_prints_where_its_result_lies(
    call: Call, small_recipe: Path, tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = call(verb, small_recipe, "train.seed=7", "--out", tmp_path / "híd")
    assert asked.stages == [verb] and asked.recipe.train.seed == 7
    assert asked.executor is None and asked.share == SINGLE
    printed = capsys.readouterr().out
    assert printed == f"{tmp_path / 'híd' / ('report.html' if verb == 'report' else verb)}\n"


@each_row("verb", ["corpus", "examples"])
def test_ranks_of_a_parallel_stage(call: Call, small_recipe: Path, tmp_path: Path, verb: str) -> None:
    asked = call(verb, small_recipe, "--out", tmp_path, "--rank", 2, "--world", 5)
    assert asked.share == WorkSplit(2, 5) and asked.executor is None


def test_dropped_documents_with_several_ranks(
    call: Call, small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[Path, int | None]] = []
    monkeypatch.setattr(corpus, "_print_dropped", lambda folder, limit: shown.append((folder, limit)))
    asked = call("corpus", small_recipe, "--out", tmp_path, "--dropped", "--limit", 3, "--rank", 1, "--world", 2)
    assert asked.share == WorkSplit(1, 2) and shown == [(tmp_path, 3)]


def test_a_scheduler_of_dask_does_the_task_lists(call: Call, small_recipe: Path, tmp_path: Path) -> None:
    from bertwright.core.dask import Dask

    assert isinstance(call("corpus", small_recipe, "--out", tmp_path, "--dask", "tcp://10.0.0.1:8786").executor, Dask)


@each_row("verb", ["vocab", "train", "evaluate", "export", "report", "run"])
def test_other_stages_have_no_ranks(call: Call, small_recipe: Path, verb: str) -> None:
    with pytest.raises(Exception, match="No such option"):
        call(verb, small_recipe, "--rank", 1)


def test_json_output_has_the_numbers_of_the_report(
    call: Call, small_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("run", small_recipe, "--out", tmp_path, "--json")
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path), "mlm_loss": 2.5, "title": "híd"}
    call("vocab", small_recipe, "--out", tmp_path, "--json")
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path), "stages": ["vocab"]}


def test_without_out_the_folder_has_the_name_of_the_recipe(
    call: Call, small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("vocab", small_recipe).out == Path("runs/small")
    assert capsys.readouterr().out == "runs/small/vocab\n", "as it can be typed again"


@each_row("verb", ["corpus", "vocab"])
def test_a_verb_that_downloads_asks_for_one_of_both(call: Call, verb: str) -> None:
    with pytest.raises(RecipeError, match="give a recipe, or --download"):
        call(verb)


def test_where_other_ranks_are_not_done_nothing_is_printed(
    small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "run", lambda recipe, out, *rest: SimpleNamespace(path=Path(out)))
    app.app(["corpus", str(small_recipe), "--out", str(tmp_path), "--world", "2"], standalone_mode=False)
    assert capsys.readouterr().out == ""


def test_recipes_are_listed_and_printed_to_be_copied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bertwright", "recipes"])
    app.app(["recipes", "--json"], standalone_mode=False)
    titles = json.loads(capsys.readouterr().out)
    assert "demo" in titles and all(titles.values())
    app.app(["recipes", "demo"], standalone_mode=False)
    text = capsys.readouterr().out
    assert text.startswith("#") and "[corpus]" in text
    app.app(["recipes", "demo", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == {"name": "demo", "text": text}


def test_check_summarizes_a_recipe_and_explains_keys(
    small_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app.app(["check", str(small_recipe), "--out", str(tmp_path / "run"), "--json"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert facts["valid"] is True and "phase 0" in facts and "adamw" in facts["optimizer"]
    assert not (tmp_path / "run").exists(), "a check makes nothing"
    app.app(["check", "--explain", "train_batch_size", "--json"], standalone_mode=False)
    assert "train.phases.0.batch" in capsys.readouterr().out


@each_row("verb", ["run", "train"])
def test_profile_is_short_for_a_key(call: Call, small_recipe: Path, tmp_path: Path, verb: str) -> None:
    asked = call(verb, small_recipe, "train.seed=7", "--profile", 5, "--out", tmp_path)
    assert (asked.recipe.train.profile, asked.recipe.train.seed) == (5, 7)
    assert call(verb, small_recipe, "--out", tmp_path).recipe.train.profile == 0


def test_run_folders_are_compared_and_nothing_else_with_them(
    call: Call, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "másik"
    shutil.copytree(trained, other)
    call("report", trained, other, "--out", tmp_path / "ki")
    assert capsys.readouterr().out == f"{tmp_path / 'ki' / 'comparison.html'}\n"
    monkeypatch.chdir(tmp_path)
    call("report", trained, other, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == "comparison.html" and [run["name"] for run in told["runs"]][1] == "másik"
    with pytest.raises(
        RecipeError, match=r"so run folders are compared, but 'train.seed=7' is not one. Give run folders only"
    ):
        call("report", trained, other, "train.seed=7")


@pytest.mark.parametrize("verb", ["run", "corpus", "vocab", "examples", "train", "evaluate", "export", "report"])
def test_a_run_folder_stands_for_its_recipe_and_is_gone_on_with(call: Call, trained: Path, verb: str) -> None:
    asked = call(verb, trained, "report.title=Híd")
    assert asked.out == trained and asked.recipe.report.title == "Híd"
    assert asked.recipe.to_json() == Recipe.load(trained / "recipe.toml", ["report.title=Híd"]).to_json()


@pytest.mark.parametrize("words", [["check"], ["plan"], ["launch", "local"], ["check", "--explain", "lr"]])
def test_other_verbs_take_a_run_folder_too(
    words: list[str], trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained.parent)
    with suppress(Exit):  # of what check finds
        app.app([*words, trained.name], standalone_mode=False)
    out = capsys.readouterr().out
    assert "learning_rate" in out or f"--out {trained.name}" in out or trained.name in out


def test_dropped_documents_are_paged_only_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pager reads as much as the user looks at: here one line, of more than any pipe holds."""
    shown = tmp_path / "shown"
    monkeypatch.setenv("PAGER", f"sh -c 'head -n 1 > {shown}'")
    lines = (f"{number} {'x' * 1000}\n" for number in range(100_000))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    corpus._page(lines)
    assert shown.read_text().startswith("0 x") and int(next(lines).split()[0]) < 99_000
    monkeypatch.setenv("PAGER", "no-such-pager")
    corpus._page(iter(["one\n", "two\n"]))
    assert capsys.readouterr().out == "one\ntwo\n"
