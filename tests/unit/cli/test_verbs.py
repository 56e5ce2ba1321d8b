"""The verbs: errors of the disk, options that would do nothing, exit codes."""

import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.unit.formats.samples import sample

from bertwright.cli import app, main, stages
from bertwright.core.artifact import build
from bertwright.core.config import Identity
from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.formats.format import Shape
from bertwright.formats.hdf5 import padded as hdf5
from bertwright.shipped import schema_file


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["bertwright", *map(str, arguments)])
    with pytest.raises(SystemExit) as exited:
        main()
    return int(exited.value.code or 0)


@each_row("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO, errno.ESTALE])
def test_a_disk_that_refuses_is_one_line_and_exit_code_3(
    number: int,
    small_recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(number, "the reason", str(tmp_path / "shard"))

    monkeypatch.setattr(stages, "run", refuse)
    assert call(monkeypatch, "run", small_recipe, "--out", tmp_path / "run") == 3
    err = capsys.readouterr().err
    remedy = "Check the disk" if number in (errno.EIO, errno.ESTALE) else "Free space"
    assert err.count("\n") == 1 and f"bertwright: {tmp_path / 'shard'}: the reason. {remedy}" in err


def test_any_other_error_of_the_system_is_a_fault_of_ours(
    small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(errno.EBADF, "bad descriptor")

    monkeypatch.setattr(stages, "run", fail)
    monkeypatch.setattr(sys, "argv", ["bertwright", "run", str(small_recipe), "--out", str(tmp_path / "run")])
    with pytest.raises(OSError, match="bad descriptor"):
        main()


def test_a_run_that_has_begun_does_not_need_what_it_started_from(
    small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stages, "run", lambda recipe, out, *rest: run_folder(out))
    command = ("train", small_recipe, f"train.init_from={tmp_path / 'nowhere'}", "--out", tmp_path / "run")
    assert call(monkeypatch, *command) == 2
    assert "command line: train.init_from" in capsys.readouterr().err
    (tmp_path / "run" / "train" / "checkpoints" / "step-00000001").mkdir(parents=True)
    assert call(monkeypatch, *command) == 0


def run_folder(out: Path) -> Any:
    from bertwright import RunFolder

    return RunFolder(Path(out))


@each_row(
    ("line", "says"),
    [
        ("corpus a.toml --limit 3", "--limit without --dropped"),
        ("corpus a.toml --date 20260401", "--date without --download"),
        ("corpus --download hu a.toml", "RECIPE with --download"),
        ("vocab a.toml --mirror http://a", "--mirror without --download"),
        ("inspect a --phase 1", "--phase without --batch"),
        ("inspect a --diff b --batch 1", "--batch with --diff"),
        ("inspect a --diff b --verify", "--verify with --diff"),
        ("inspect a --diff b --world 2", "--world with --diff"),
        ("inspect a --batch 1 --verify", "--verify with --batch"),
        ("inspect a --batch 1 --vocab v.txt", "--vocab with --batch"),
        ("inspect a --batch 1 --limit 3", "--limit with --batch"),
        ("corpus --download hu --rank 1", "--rank with --download"),
        ("corpus --download hu --world 2", "--world with --download"),
        ("corpus --download hu --dask here:1", "--dask with --download"),
        ("check demo --explain seed --out x", "--out with --explain"),
        ("check demo --explain seed --scale tiny", "--scale with --explain"),
        ("check --out x", "--out without a recipe"),
        ("check --schema --scale tiny", "--scale with --schema"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(line: str, says: str) -> None:
    with pytest.raises(RecipeError, match=f"{says} has no effect"):
        app.app(line.split(), standalone_mode=False)


def test_dropped_documents_that_are_not_kept_are_refused_before_the_corpus_is_made(tmp_path: Path) -> None:
    words = ["corpus", "smoke", "corpus.filter.keep_dropped=false", "--dropped", "--out", str(tmp_path / "run")]
    with pytest.raises(RecipeError, match="keep_dropped is off"):
        app.app(words, standalone_mode=False)
    assert not (tmp_path / "run").exists()


def test_inspect_exits_with_3_if_data_has_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever calls it from a script need not read what it prints."""
    hdf5.write(tmp_path / "x_training_0.hdf5", iter([sample(9)]), Shape(32, 5, static=True))
    assert call(monkeypatch, "inspect", tmp_path) == 0
    assert call(monkeypatch, "inspect", tmp_path, "--world", "2", "--json") == 3
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["set"][0]["faults"]


def test_inspect_shows_differences(
    small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "changed.toml"
    changed.write_text(small_recipe.read_text().replace("size = 160", "size = 150"))
    assert call(monkeypatch, "inspect", small_recipe, "--diff", changed) == 0
    assert capsys.readouterr().out.splitlines() == ["what      two recipes", "settings  vocab.size: 160 -> 150"]


DUMP = "be_x_oldwiki-20260401-pages-articles-multistream.xml.bz2"


@each_row(
    ("verb", "language", "file", "source"),
    [
        ("corpus", "be-tarask", DUMP, f"be_x_oldwiki/20260401/{DUMP}"),
        ("vocab", "google-cased", "google-cased-vocab.txt", "google-bert/bert-base-cased/resolve/main/vocab.txt"),
    ],
)
def test_a_download_is_an_object_with_json_and_a_path_without(
    verb: str,
    language: str,
    file: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / file

    def fetched(*arguments: Any) -> Path:
        path.write_bytes(b"Grogg")
        return path

    monkeypatch.setattr(f"bertwright.{verb}.download.download", fetched)
    options = (verb, "--download", language, "--out", tmp_path, "--mirror", "https://name:secret@mirror")
    assert call(monkeypatch, *options, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"path": str(path), "bytes": 5, "source": f"https://mirror/{source}"}
    assert call(monkeypatch, *options) == 0
    assert capsys.readouterr().out == f"{path}\n"


def test_a_schema_is_printed_by_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, kind in (([], "recipe"), (["recipe"], "recipe"), (["place"], "place")):
        assert call(monkeypatch, "check", "--schema", *arguments) == 0
        assert capsys.readouterr().out == schema_file(kind).read_text(encoding="utf-8")
    assert call(monkeypatch, "check", "--schema", "demo", "a=1") == 2
    assert (
        "--schema demo a=1: there is no schema for this kind of file. Give one of recipe, place."
        in capsys.readouterr().err
    )
    assert call(monkeypatch, "check", "--schema", "--explain", "size") == 2
    assert "--explain with --schema has no effect" in capsys.readouterr().err


@each_row(
    ("words", "value"),
    [
        ("demo train.seed=9 --explain train.seed", 9),
        ("demo train.seed=9 --explain seed", {"train.seed": 9, "vocab.seed": 12345, "examples.seed": 12345}),
        ("demo --explain train.phases.7.batch", None),
        ("demo train.phases.0.batch=96 --explain train_batch_size", 96),
        ("nvidia-large --explain", {"train.phases.0.micro_batch": 64}),
    ],
)
def test_a_key_is_explained_with_its_value_in_a_recipe(
    words: str, value: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argument = [] if "seed" in words or "batch" in words else ["run_pretraining.sh 11"]
    assert call(monkeypatch, "check", *words.split(), *argument, "--json") == 0
    said = json.loads(capsys.readouterr().out)["value"]
    assert (value.items() <= said.items()) if isinstance(value, dict) else said == value


def test_where_a_key_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.toml"
    text = schema_file("recipe").parents[1].joinpath("recipes/smoke.toml").read_text(encoding="utf-8")
    recipe.write_text(text + "\n[presets.small]\ntrain.keep_checkpoints = 1\n", encoding="utf-8")
    lines = recipe.read_text(encoding="utf-8").splitlines()

    def said(*words: str) -> dict[str, Any]:
        assert call(monkeypatch, "check", str(recipe), *words, "--json") == 0
        facts: dict[str, Any] = json.loads(capsys.readouterr().out)
        return facts

    line = lines.index('size = "tiny"') + 1
    assert said("--explain", "model.size")["set in"] == f"{recipe}, line {line}"
    assert said("model.size=mini", "--explain", "model.size")["set in"] == "the command line"
    assert said("--explain", "keep_checkpoints")["set in"] == "nowhere: by default"
    chosen = said("preset=small", "--explain", "keep_checkpoints")
    assert (chosen["value"], chosen["set in"]) == (1, f"{recipe}, line {len(lines)}")
    source = said("--explain", "corpus.source.path")["set in"]
    assert source.startswith(f"{recipe}, line ") and "{path =" in lines[int(source.rpartition(" ")[2]) - 1]
    assert said("corpus.source=text.txt", "--explain", "corpus.source.path")["set in"] == "the command line"
    each = said("train.phases.0.masking.unit=words", "--explain", "masking.unit")
    keys = [f"train.phases.{number}.masking.unit" for number in (0, 1)]
    assert each["value"] == dict(zip(keys, ("words", "tokens"), strict=True))
    assert each["set in"] == dict(zip(keys, ("the command line", "nowhere: by default"), strict=True))


@each_row(
    ("words", "says"),
    [
        ("report", "For several runs: the folder of comparison.html; default: the current folder."),
        ("corpus", "With --download: the folder of the file; default: downloads."),
        ("vocab", "With --download: the folder of the file; default: downloads."),
    ],
)
def test_help_describes_out_of_each_verb(
    words: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, words, "--help") == 0
    assert says in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_a_recipe_that_cannot_be_printed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    for name, reason in (("none.toml", "No such file"), ("folder", "Is a directory"), ("binary.toml", "'utf-8' codec")):
        assert call(monkeypatch, "recipes", tmp_path / name) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"bertwright: cannot read the recipe {tmp_path / name}: {reason}")
        assert error.endswith("Give a name that `bertwright recipes` lists, or the path of a TOML file in UTF-8.\n")


def test_a_recipe_of_a_stranger_does_not_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# \x1b[2J\r\nseed = 3\r\n"
    (tmp_path / "mine.toml").write_bytes(text.encode())
    assert call(monkeypatch, "recipes", tmp_path / "mine.toml") == 0
    assert capsys.readouterr().out == "# \\x1b[2J\nseed = 3\n"
    assert call(monkeypatch, "recipes", tmp_path / "mine.toml", "--json") == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["text"] == "# \x1b[2J\nseed = 3\n" and printed.count("\n") == 1


@each_row(("option", "value"), [("--vocab", "v.txt"), ("--limit", 3), ("--world", 2)])
def test_options_for_foreign_data_are_refused_elsewhere(
    option: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("One sentence.\nAnother one.\n")
    made = build(tmp_path / "export", Identity("export", 1, {}, {}), SILENT, lambda draft: {}).path
    for path, what in ((tmp_path / "text.txt", "a text"), (made, "the artifact of stage export")):
        assert call(monkeypatch, "inspect", path, option, value) == 2
        assert capsys.readouterr() == ("", f"bertwright: {option} for {what} has no effect. Leave it out.\n")


@each_row(
    "words",
    [
        ("certify", "x", "--runtimes", "onnx", "--runtimes=openvino"),
        ("run", "smoke", "--out", "a", "--out", "a"),
        ("bench", "train", "--threads", "1", "--threads", "2"),
        ("launch", "slurm", "smoke", "--out", "a", "--out", "b"),
    ],
)
def test_an_option_given_twice_is_refused(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *words) == 2
    assert "given twice; only one value" in capsys.readouterr().err


def test_options_of_several_values_and_flags_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "check", "smoke", "--json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["recipe"] == "smoke"


@each_row(
    "words",
    [
        "certify nothing --out nowhere/certificate.json",
        "evaluate nothing --suite quick --out nowhere/scores.json",
        "bench autotune smoke --write nowhere/recipe.toml",
    ],
)
def test_a_result_that_cannot_be_written_is_refused_before_work_starts(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *words.split()) == 3
    assert capsys.readouterr().err.startswith(f"bertwright: cannot write {words.split()[-1]}: No such file")
    assert not list(tmp_path.iterdir())


def test_a_home_folder_is_found_where_no_shell_has_expanded_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "text.txt").write_text("One sentence.\n")
    assert call(monkeypatch, "inspect", "~/text.txt") == 0 and "a text" in capsys.readouterr().out
    assert call(monkeypatch, "inspect", "text.txt", "--vocab", "~nobody-here/vocab.txt") == 2
    assert "--vocab ~nobody-here/vocab.txt: the home folder ~nobody-here is not known" in capsys.readouterr().err
