"""What data holds cannot command the terminal."""

import json
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.cli import main
from bertwright.cli.text import colour, fact_lines, json_line, shorten, visible

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\rA\u202eB\u2066C\u200fD\u2028E\x7f\ud800\U000e0041\x00"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\rA\u202eB\u2066C\u200fD\u2028E\x7f\ud800\U000e0041\x00"


def test_controls_and_reordering_are_shown_not_sent() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("a\tb\nc") == "a\tb\nc"


@each_row("text", ["Árvíztűrő", "کتاب\u200cها", "👩\u200d🚀", "日本語", "ค.ศ.", "e\u0301", r"\x1b"])
def test_scripts_joiners_and_marks_stay(text: str) -> None:
    assert visible(text) == text


def test_facts_are_escaped_in_names_and_values() -> None:
    facts = {"title": HOSTILE, HOSTILE: {"inner": [HOSTILE]}, "set": [{HOSTILE: 1}]}
    lines = list(fact_lines(facts))
    assert len(lines) == 6
    assert all(line.isprintable() for line in lines), lines


def test_json_is_escaped_and_reads_the_same() -> None:
    line = json_line({"text": HOSTILE, "name": "Győr"})
    assert line.isprintable() and "Győr" in line
    assert json.loads(line) == {"text": HOSTILE, "name": "Győr"}


def test_facts_are_lines_in_columns() -> None:
    facts = {"what": "a thing", "n": 12345, "yes": True, "some": ["a", "b"], "inner": {"k": 1}, "text": "two\nlines"}
    assert list(fact_lines(facts)) == [
        "what   a thing",
        "n      12,345",
        "yes    True",
        "some   a, b",
        "inner",
        "  k    1",
        "text",
        "       two",
        "       lines",
    ]


def test_a_long_name_leaves_the_values_of_others_their_room() -> None:
    name = "NVIDIA run_pretraining.sh (positional, by its variables)"
    facts = {"key": "optim", "elsewhere": {name: "the same"}, "keys": "one, two, three, four-five, six, seven"}
    assert list(fact_lines(facts, width=40)) == [
        "key        optim",
        "elsewhere",
        f"  {name}",
        "    the same",
        "keys       one, two, three, four-five,",
        "           six, seven",
    ]
    assert list(fact_lines(facts))[-1] == "keys       one, two, three, four-five, six, seven", "a pipe gets one line"


def test_a_bar_drops_its_last_words_first() -> None:
    words = "4 of 40 steps, 0:01:01 left (0:00:58 to 0:01:15), loss 2.500, 25.6% right, 1,234 tokens/s"
    assert shorten(words, 100) == words
    assert shorten(words, 75) == "4 of 40 steps, 0:01:01 left, loss 2.500, 25.6% right, 1,234 tokens/s"
    assert shorten(words, 50) == "4 of 40 steps, 0:01:01 left, loss 2.500"
    assert shorten(words, 5) == "4 of 40 steps", "what is done is always said"


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert colour("ok", "green") == "ok"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colour("ok", "green") == "\x1b[32mok\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert colour("ok", "green") == "ok"


def test_control_characters_of_a_recipe_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(
        'corpus.source = "no\\u001b]0;owned\\u0007\\u202e.txt"\ncorpus.language = "hu"\nmodel.size = "tiny"\n'
        "[[train.phases]]\nlength = 16\nbatch = 8\nlearning_rate = 1e-3\nsteps = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["bertwright", "check", "mine.toml"])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().out
    assert left.value.code == 3 and r"no\x1b]0;owned\x07\u202e.txt" in said
    assert all(line.isprintable() for line in said.splitlines())
