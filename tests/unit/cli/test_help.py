"""The help of each verb, and what a shell completes."""

import re
import sys

import pytest

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


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_has_a_short_and_a_long_option_for_its_help(
    verb: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short, long = (printed(monkeypatch, capsys, *verb, option) for option in ("-h", "--help"))
    assert short == long and f"Usage: bertwright {' '.join(verb)}" in short
    assert max(map(len, short.splitlines())) <= 80
    # `--help` itself is made by typer.
    named = [line for line in short.splitlines() if "--help" not in line]
    assert not re.search(r"<(?:bool|str|path|int|float|list)\b|\[\[", "\n".join(named)), short


def test_words_in_brackets_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "[hardware]" in printed(monkeypatch, capsys, "plan", "--help")
