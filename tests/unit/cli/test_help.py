"""The help of each verb, and what a shell completes."""

import re
import sys
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.cli import app


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints on a terminal of 80 columns."""
    monkeypatch.setattr(sys, "argv", ["bertwright", *words])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert not ended.value.code
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


VERBS = [*(name.split() for name in app._VERBS), ["bench", "train"], ["bench", "autotune"]]


@each_row("verb", VERBS)
def test_every_verb_has_a_short_and_a_long_option_for_its_help(
    verb: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = (printed(monkeypatch, capsys, *verb, option) for option in ("-h", "--help"))
    assert short == long and f"Usage: bertwright {' '.join(verb)}" in short
    assert max(map(len, short.splitlines())) <= 80
    # `--help` itself is made by typer.
    named = [line for line in short.splitlines() if "--help" not in line]
    assert not re.search(r"<(?:bool|str|path|int|float|list)\b|\[\[", "\n".join(named)), short


def test_who_types_no_verb_sees_where_to_begin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bertwright"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    shown = capsys.readouterr().out
    assert ended.value.code == 2 and len(shown.splitlines()) < 12
    named = re.findall(r"^  bertwright (\S+)", shown, re.MULTILINE)
    assert named[0] == "demo" and named.pop() == "--help" and set(named) < set(app._VERBS)


def test_the_complete_help_has_every_verb_below_what_it_is_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(monkeypatch, capsys, "--help")
    found = re.findall(r"^│ ([a-z]+(?: upload)?)  |^╭─ ([A-Z].*?) ─", shown, re.MULTILINE)
    expected = [("", "Options")]
    for panel, verbs in app._PANELS.items():
        expected += [("", panel), *((verb, "") for verb in verbs)]
    assert found == expected


def test_words_in_brackets_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "[hardware]" in printed(monkeypatch, capsys, "plan", "--help")


@each_row(
    ("line", "expected"),
    [
        ("ru", ["run"]),
        ("run sm", ["smoke"]),
        ("check sm", ["smoke"]),
        ("launch slu", ["slurm"]),
        ("launch slurm sm", ["smoke"]),
        ("plan smoke --place azure-nc", ["azure-nc96-a100"]),
        ("run smoke --until ex", ["examples", "export"]),
        ("run smoke optim.kind=m", ["optim.kind=muon"]),
        ("run smoke train.deterministic=", ["train.deterministic=auto", "true", "false"]),
        ("run smoke train.engine = dd", ["ddp"]),  # as bash parts it
        ("run smoke optim.kind =", ["lamb", "adamw", "muon"]),
        ("run intel-cpu preset=b", ["preset=bf16", "preset=bf32"]),
        ("run smoke train.phases.0.le", ["train.phases.0.length=", "train.phases.0.learning_rate="]),
        ("check --explain train.guard.w", ["train.guard.window"]),
        ("convert a b --to hd", ["hdf5", "hdf5-varlen"]),
        ("run runs/mi", ["runs/mine"]),
        ("run recipe-of", ["recipe-of-mine.toml"]),
        ("run nothing-like-it", []),
    ],
)
def test_a_shell_completes(
    line: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the variables with which bash asks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe-of-mine.toml").touch()
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "recipe.toml").touch()
    words = f"bertwright {line}"
    for name, value in (("_BERTWRIGHT_COMPLETE", "complete_bash"), ("COMP_WORDS", words)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    found = printed(monkeypatch, capsys).split()
    if line.endswith("deterministic="):
        expected = [expected[0], *(f"train.deterministic={value}" for value in expected[1:])]
    assert found == expected
