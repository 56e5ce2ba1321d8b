"""Words of a command as options: of an invented program with one option of each kind."""

from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.translate.command import parse_arguments
from bertwright.translate.program import Option, Program

OPTIONS: dict[str, dict[str, Any]] = {
    "batch": {"type": "int", "default": 8, "short": "b"},
    "rate": {"type": "float"},
    "fp16": {"type": "flag"},
    "do_train": {"type": "switch", "default": False},
    "mode": {"choices": ("one", "two")},
    "name": {},
    "name_of_all": {},
    "IN": {},
    "left": {},
    "right": {},
    "files": {},
}


def program(**keys: Any) -> Program:
    options = {name: Option(**values) for name, values in OPTIONS.items()}
    values: dict[str, Any] = {"title": "it", "scripts": ("it.py",), "explained": ("it",), "phase": "training"}
    return Program(**{**values, "options": options, "variables": ("IN",), **keys})


def values(line: str, variables: dict[str, str] | None = None, **keys: Any) -> dict[str, Any]:
    """The options that a command sets, with their values."""
    found = parse_arguments(program(**keys), tuple(line.split()), variables or {})
    return {name: setting.value for name, setting in found.items() if setting.given}


def refused(line: str, variables: dict[str, str] | None = None, **keys: Any) -> str:
    with pytest.raises(RecipeError) as error:
        values(line, variables, **keys)
    return str(error.value)


@each_row(
    ("line", "wanted"),
    [
        ("--batch 64", {"batch": 64}),
        ("--batch=64 --rate=1e-3", {"batch": 64, "rate": 1e-3}),
        ("-b 64", {"batch": 64}),
        ("--batch 8 --batch 16", {"batch": 16}),
        ("--rate -1", {"rate": -1.0}),  # a number, and no option
        ("--fp16 --batch 2", {"fp16": True, "batch": 2}),
        ("--do_train --batch 2", {"do_train": True, "batch": 2}),
        ("--do_train False", {"do_train": False}),
        ("--do_train on", {"do_train": True}),
        ("--do_train=0", {"do_train": False}),
        ("--mode two", {"mode": "two"}),
        ("--ba 4", {"batch": 4}),
        ("--name a --name_of b", {"name": "a", "name_of_all": "b"}),  # a whole name is no beginning of another
        ("--name=", {"name": ""}),
        ("--name -", {"name": "-"}),
    ],
)
def test_options_have_the_values_that_were_typed(line: str, wanted: dict[str, Any]) -> None:
    assert values(line) == wanted


def test_unset_options_have_the_program_default() -> None:
    found = parse_arguments(program(), ("--rate", "1"), {})
    assert {name: setting.value for name, setting in found.items() if not setting.given} == {
        "batch": 8,
        "do_train": False,
    }
    assert parse_arguments(program(), ("--batch", "9"), {})["batch"].given


def test_what_was_typed_is_kept_for_comments() -> None:
    found = parse_arguments(program(), ("--batch", "08", "--rate=1e-3", "--fp16"), {})
    assert [(found[name].text, found[name].typed) for name in ("batch", "rate", "fp16")] == [
        ("--batch 08", "08"),
        ("--rate=1e-3", "1e-3"),
        ("--fp16", "true"),
    ]
    assert found["do_train"].text == "--do_train"


def test_arguments_without_names_have_their_places() -> None:
    assert values("4 1e-3", positions=("batch", "rate")) == {"batch": 4, "rate": 1e-3}
    assert values("x", positions=("left right",)) == {"left": "x", "right": "x"}, "one place, two options"
    assert values("a b c", positions=("name",), several="files") == {"name": "a", "files": "b c"}
    assert values("--fp16 7", positions=("batch",)) == {"fp16": True, "batch": 7}
    assert values("-2 -", positions=("rate", "name")) == {"rate": -2.0, "name": "-"}
    assert "'c'" in refused("a b c", positions=("name", "left"))
    assert "--left" in refused("--left a", positions=("left",)), "it has no name to be given by"


def test_variables_set_options_where_the_program_reads_them() -> None:
    assert values("", {"IN": "d", "batch": "4"}) == {"IN": "d"}, "a program reads its own variables only"
    assert values("", {"IN": "d", "batch": "4"}, phase="script") == {"IN": "d", "batch": 4}
    given = {"batch": "4"}
    assert values("16", given, phase="script", positions=("batch",)) == {"batch": 16}, "an argument replaces a default"
    assert "batch many" in refused("", {"batch": "many"}, phase="script")
    assert "--IN" in refused("--IN d")


@each_row(
    ("line", "said"),
    [
        ("--batch many", ["batch many", "whole number"]),
        ("--batch 1.5", ["batch 1.5", "whole number"]),
        ("--rate fast", ["rate fast", "a number"]),
        ("--rate nan", ["rate nan", "a number"]),  # neither can be written in a recipe
        ("--rate=inf", ["rate inf", "a number"]),
        ("--rate 1e400", ["rate 1e400", "a number"]),
        ("--do_train=maybe", ["do_train maybe", "true or false"]),
        ("--mode three", ["mode three", "one, two"]),
        ("--fp16=1", ["--fp16", "'1'"]),
        ("--batch", ["--batch"]),
        ("--batch --fp16", ["--batch"]),
        ("--bach 1", ["--bach", "--batch?"]),
        ("-c 1", ["-c"]),
        ("--le", ["--le"]),
        ("stray", ["'stray'"]),
    ],
)
def test_what_cannot_be_an_option_or_its_value_is_named(line: str, said: list[str]) -> None:
    text = refused(line)
    assert len(text.splitlines()) == 1 and all(each in text for each in said)


def test_all_mistakes_are_reported_together() -> None:
    """The word after an unknown option is its value, unless it is an option itself."""
    assert len(refused("--wrong 1 --other --batch many --bad=1 --rate x").splitlines()) == 5
    assert len(refused("--wrong 1 2").splitlines()) == 2, "a second word is an argument that nothing takes"
    several = refused("--nam x")
    assert "--name, --name_of_all" in several and "?" not in several


def test_required_options_are_named_as_they_are_given() -> None:
    options = {"batch": Option(required=True), "IN": Option(required=True), "rate": Option(required=True, default=1.0)}
    assert refused("--rate 2", options=options).splitlines() == ["it needs --batch", "it needs IN"]
    assert values("--batch 1 --rate 2", {"IN": "d"}, options=options) == {"batch": "1", "rate": "2", "IN": "d"}


def test_invalid_required_option_is_not_also_missing() -> None:
    options = {"batch": Option(type="int", required=True), "rate": Option(type="float", required=True)}
    assert refused("--batch many --rate 1", options=options).splitlines() == [
        "batch many: give a whole number, not 'many'."
    ]
