"""The recipe and the place as text: they read back, and say where each key is from within the width of a page."""

import tomllib
from dataclasses import replace
from typing import Any

from tests.rows import each_row

from bertwright.core.toml_values import value_text
from bertwright.translate.command import Key
from bertwright.translate.draft import Account
from bertwright.translate.launchers import Launch
from bertwright.translate.text import place_text, start_line, text
from bertwright.translate.translation import Translation

PHASE = {
    "steps": Key("steps", 9, "--steps 9"),
    "unknown.key": Key("unknown.key", True),
    "length": Key("length", 128, "--length 128"),
    "batch": Key("batch", 64),
    "masking.rate": Key("masking.rate", 0.15),
}
SECTIONS = {
    "train.seed": Key("train.seed", 7, "--seed 7"),
    "optim.kind": Key("optim.kind", "lamb"),
    "report.title": Key("report.title", 'a "b"'),
    "corpus.source": Key("corpus.source", [{"path": "é.txt"}], "--input " + "x" * 90),
}


def made(**changes: Any) -> Translation:
    nothing: dict[str, Any] = {"accounts": (), "remarks": (), "open": (), "left": (), "launch": Launch(), "out": ""}
    return Translation(
        **{"sections": SECTIONS, "phases": (PHASE,), "commands": ("run.py --seed 7",), **nothing, **changes}
    )


@each_row("value", [1, 0.006, True, 'a\\b"é', [1, 2], (1, "a"), {"kind": "x", "n": {"m": [1.5]}}, []])
def test_a_value_reads_back(value: Any) -> None:
    wanted = list(value) if isinstance(value, tuple) else value
    assert tomllib.loads(f"key = {value_text(value)}")["key"] == wanted


def test_the_text_is_the_recipe() -> None:
    assert tomllib.loads(text(made())) == {
        "corpus": {"source": [{"path": "é.txt"}]},
        "optim": {"kind": "lamb"},
        "train": {
            "seed": 7,
            "phases": [{"length": 128, "batch": 64, "masking": {"rate": 0.15}, "steps": 9, "unknown": {"key": True}}],
        },
        "report": {"title": 'a "b"'},
    }


def test_sections_and_phase_keys_have_the_recipe_order() -> None:
    lines = text(made()).splitlines()
    headers = [line for line in lines if line.startswith("[")]
    assert headers == ["[corpus]", "[optim]", "[[train.phases]]", "[train]", "[report]"]
    keys = [line.partition(" =")[0] for line in lines[lines.index("[[train.phases]]") + 1 :][:5]]
    assert keys == ["length", "batch", "masking.rate", "steps", "unknown.key"]


def test_origin_of_a_key_is_beside_or_above_it() -> None:
    lines = text(made()).splitlines()
    assert "seed = 7".ljust(36) + "# --seed 7" in lines
    at = next(number for number, line in enumerate(lines) if line.startswith("source"))
    assert lines[at - 1] == "# --input " + "x" * 90 and lines[at].endswith("]")
    assert "batch = 64" in lines, "without an origin there is no comment"
    assert max(map(len, lines)) <= 120


def test_what_has_no_key_is_a_comment() -> None:
    accounts = (Account("--fp16", ("train.precision",), "kept"), Account("--x", (), "why"), Account("--y", (), ""))
    whole = text(made(accounts=accounts, remarks=("a remark",), open=("a question",), left=("line 3: cd",)))
    lines = whole.splitlines()
    for line in ("#   - --x: why", "#   - --y", "#   - a remark", "#   - a question", "#   - line 3: cd"):
        assert line in lines
    assert "--fp16" not in whole
    plain = text(made())
    assert "Without effect" not in plain and "Left to you" not in plain and "no part" not in plain


def test_long_comments_are_folded() -> None:
    lines = text(made(remarks=("word " * 60,), commands=("run.py " + "--a b " * 60,))).splitlines()
    assert max(map(len, lines)) <= 120 and sum("word" in line for line in lines) > 1
    assert tomllib.loads("\n".join(lines))


TORCHRUN = Launch(2, 4, "torchrun", (("master_addr", "a b"), ("role", "x")))


def test_a_place_reads_back_and_names_the_command_it_is_from() -> None:
    translation = made(launch=TORCHRUN)
    whole = place_text(translation)
    assert tomllib.loads(whole) == translation.place and "run.py --seed 7" in whole
    assert place_text(made()) == ""
    assert "role x" in text(translation) and "master_addr" not in text(translation), "the place has the address"


def test_start_command_is_quoted_with_place_and_folder() -> None:
    alone = made(out="my run")
    assert start_line(alone, "my recipe.toml") == "bertwright run 'my recipe.toml' --out 'my run'"
    assert start_line(replace(alone, out="$OUT/x"), "r.toml") == "bertwright run r.toml", "a folder that is not known"
    several = made(launch=TORCHRUN)
    settings = "--set nodes=2 --set ranks=4 --set rendezvous='a b:29500'"
    assert start_line(several, "r.toml") == f"bertwright launch torchrun r.toml {settings}"
    assert start_line(several, "r.toml", "p 1.toml") == "bertwright launch torchrun r.toml --place 'p 1.toml'"


def test_commands_that_only_prepare_are_run_up_to_the_examples() -> None:
    unsaid = {**PHASE, "steps": Key("steps", 9, "not set by the commands: NVIDIA's at 128")}
    assert start_line(made(phases=(unsaid,)), "r.toml") == "bertwright run r.toml --until examples"
    assert start_line(made(phases=(unsaid, PHASE)), "r.toml") == "bertwright run r.toml"
    assert start_line(made(phases=()), "r.toml") == "bertwright run r.toml"


@each_row("control", ["\n", "\r", "\t", "\x0b", "\x1b", "\x7f", "\x85", "\x9b", "\x00"])
def test_no_word_of_a_command_ends_its_comment(control: str) -> None:
    """A line break in a comment would make the rest of it a key."""
    word = f"a{control}seed = 1"
    sections = {"corpus.source": Key("corpus.source", word, f"--input {word}")}
    lists: dict[str, Any] = {"accounts": (Account(f"--x {word}", (), word),), "remarks": (word,), "left": (word,)}
    for long in ("", "b" * 100):
        wide = {"corpus.source": Key("corpus.source", word, f"--input {word}{long}")}
        whole = text(made(sections=wide, open=(word,), commands=(word,), **lists))
        read = tomllib.loads(whole)
        assert read["corpus"] == {"source": word} and set(read) == {"corpus", "train"}
        assert all(line.isprintable() for line in whole.split("\n"))
    assert tomllib.loads(place_text(made(sections=sections, launch=TORCHRUN, commands=(word,))))["ranks"] == 4
