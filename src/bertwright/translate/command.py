"""One command of another program: its words parsed to settings, defaults included, and what it is started with."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.launchers import Launch
from bertwright.translate.program import Option, Program

Value = str | int | float | bool
PHASE = "train.phases.0."
"""Prefix of the keys of the phase that a command trains, whichever phase of the recipe it becomes."""
ASSUMED = "assumed."
"""Prefix of the keys of the vocabulary that a training assumes. Only the commands that make its data know it."""
_LONGEST = 200
"""Maximum number of characters of an option as messages and comments show it."""
_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}


class Setting(NamedTuple):
    """The value of an option and its origin."""

    value: Value
    text: str
    """The option as typed, a long one abbreviated; for a default, the option's name."""
    given: bool
    """Whether the command sets it; otherwise it is the program's default."""
    typed: str = ""
    """The value as typed."""


class Key(NamedTuple):
    """A recipe key, its value, and where the value comes from."""

    key: str
    value: Any
    why: str = ""


@dataclass(frozen=True)
class Command:
    """A command whose options are parsed."""

    program: Program
    settings: Mapping[str, Setting]
    launch: Launch
    text: str
    """The command as typed."""
    folder: Path = Path()
    """The folder that the files it names are in, unless their paths say another."""

    def __getitem__(self, name: str) -> Value | None:
        return self.settings[name].value if name in self.settings else None

    def option_of(self, conversion: str) -> str:
        """Return the name of the option that this conversion converts; empty if the program has none."""
        options = self.program.options.items()
        return next((name for name, option in options if option.becomes == conversion), "")

    def number(self, name: str, default: float = 0.0) -> float:
        """Return the value of a numeric option, or `default`."""
        value = self[name]
        return float(value) if isinstance(value, int | float) else default

    def file(self, name: str) -> Path:
        """Return the file that an option names."""
        return self.folder / Path(str(self[name])).expanduser()

    def source(self, *names: str) -> str:
        """Return the options that a value comes from as text for a comment."""
        given = [self.settings[name] for name in names if name in self.settings]
        set_by_command = [setting.text for setting in given if setting.given]
        defaults = [setting.text for setting in given if not setting.given]
        return ", ".join([*set_by_command, *(f"{text} left at its default" for text in defaults)])


def parse_arguments(
    program: Program, words: tuple[str, ...], variables: Mapping[str, str], folder: Path = Path()
) -> dict[str, Setting]:
    """Return the setting of every option, by the option's name; files are looked for in `folder`.

    One `RecipeError` lists every mistake: unknown options, each with the nearest known one, invalid values, and missing
    required options.
    """
    if program.parser == "transformers" and len(words) == 1 and words[0].endswith(".json"):
        words = _words_of_json(folder / Path(words[0]).expanduser())
    given: dict[str, Setting] = {}
    mistakes: list[str] = []
    positions = iter(program.positions)
    at = 0
    while at < len(words):
        try:
            name, text, value, at = _next_option(program, words, at, positions)
        except RecipeError as error:
            mistakes.append(str(error))
            # The word after an unknown option is most likely its value.
            at += 2 if "=" not in words[at] and at + 1 < len(words) and not words[at + 1].startswith("-") else 1
            continue
        # Several files all count; of a repeated option, the last value counts.
        value = f"{given[name].value} {value}" if name in given and name == program.several else value
        # Two names at one position both get its value.
        for alike in name.split():
            try:
                given[alike] = Setting(_value(program.options[alike], alike, value), _abbreviate(text), True, value)
            except RecipeError as error:
                mistakes.append(str(error))
                # It is given all the same, so that it is not reported as missing, too.
                given[alike] = Setting(value, text, given=True)
    for name in program.options if program.phase == "script" else program.variables:
        if name in variables and name not in given:
            given[name] = Setting(
                _value(program.options[name], name, variables[name]), f"{name}={variables[name]}", True, variables[name]
            )
    missing = [name for name, option in program.options.items() if option.required and name not in given]
    mistakes += [f"{program.title} needs {_dashed(program, name)}" for name in missing]
    if mistakes:
        raise RecipeError("\n".join(mistakes))
    return given | {
        name: Setting(option.default, _dashed(program, name), given=False)
        for name, option in program.options.items()
        if option.default is not None and name not in given
    }


def _abbreviate(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…"


def _next_option(
    program: Program, words: tuple[str, ...], at: int, positions: Iterator[str]
) -> tuple[str, str, str, int]:
    """Return the option at a word, the option as typed, its value, and the index of the next option."""
    word = words[at]
    if not word.startswith("-") or word == "-" or _is_number(word):
        name = next(positions, program.several)
        if not name:
            raise RecipeError(f"{program.title} takes no argument {word!r}: its options begin with --.")
        return name, word if program.several == name else f"{name.split()[0]}={word}", word, at + 1
    typed, equals, value = word.partition("=")
    if off := _opposite(program, typed):
        return off, word, "false", at + 1
    name = _find_option(program, typed)
    if program.options[name].type == "flag":
        if equals:
            raise RecipeError(f"{typed} takes no value, but {value!r} is given. Remove it.")
        return name, word, "true", at + 1
    if equals:
        return name, word, value, at + 1
    if program.options[name].type == "switch" and not (at + 1 < len(words) and words[at + 1].lower() in _TRUE | _FALSE):
        return name, word, "true", at + 1
    if program.options[name].type == "words":
        end = next((n for n in range(at + 1, len(words)) if words[n].startswith("--")), len(words))
        if end > at + 1:
            value = " ".join(words[at + 1 : end])
            return name, f"{typed} {value}", value, end
    # A value may begin with one dash, as -1 does; only with two, another option follows.
    if at + 1 == len(words) or (words[at + 1].startswith("--") and len(words[at + 1]) > 2):
        raise RecipeError(f"{typed} needs a value.")
    return name, f"{typed} {words[at + 1]}", words[at + 1], at + 2


def _find_option(program: Program, typed: str) -> str:
    """Return the option of a typed name; as with `argparse`, an unambiguous prefix is enough."""
    plain = typed.lstrip("-")
    # SentencePiece's own program has a name for what its wrapper takes as further arguments (--input).
    options = {name: name for name in program.options if name not in program.unnamed or name == program.several}
    options |= {option.short: name for name, option in program.options.items() if option.short}
    if program.parser == "transformers":
        plain = plain.replace("-", "_")
    if plain in options:
        return options[plain]
    begun = {name for other, name in options.items() if other.startswith(plain)}
    if typed.startswith("--") and len(begun) == 1:
        return begun.pop()
    if begun and typed.startswith("--"):
        names = ", ".join(f"--{name}" for name in sorted(begun))
        raise RecipeError(
            f"{program.title} has several options that begin with {typed}: {names}. Write the complete option."
        )
    near = difflib.get_close_matches(plain, options, n=1)
    hint = f"; did you mean {'--' if len(near[0]) > 1 else '-'}{near[0]}?" if near else ""
    raise RecipeError(f"{program.title} has no option {typed}{hint}")


def _opposite(program: Program, typed: str) -> str:
    """Return the switch that `--no_NAME` turns off; "" if this is no such option."""
    name = typed.removeprefix("--").replace("-", "_").removeprefix("no_")
    known = program.options.get(name)
    off = program.parser == "transformers" and typed[2:5] in ("no_", "no-")
    return name if off and known is not None and known.on else ""


def _words_of_json(file: Path) -> tuple[str, ...]:
    """Return the options of a JSON file as the words of a command; `RecipeError` if it has none."""
    try:
        values = json.loads(file.read_text(encoding="utf-8-sig"))
        if not isinstance(values, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"{file} cannot be read ({error}). Give the path of the JSON file, or the options themselves."
        ) from error
    words: list[str] = []
    for name, value in values.items():
        if isinstance(value, list):
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            text = value if isinstance(value, str) else json.dumps(value)
            words += [f"--{name}={text}"]
    return tuple(words)


def _value(option: Option, name: str, text: str) -> Value:
    wanted = {"int": "a whole number", "float": "a number", "switch": "true or false"}.get(option.type, "")
    try:
        if option.choices and text not in option.choices:
            wanted = f"one of {', '.join(option.choices)}"
            raise ValueError
        match option.type:
            case "int":
                return int(text)
            case "float":
                number = float(text)
                if not math.isfinite(number):
                    raise ValueError
                return number
            case "flag":
                return True
            case "switch":
                if text.lower() not in _TRUE | _FALSE:
                    raise ValueError
                return text.lower() in _TRUE
        return text
    except ValueError:
        raise RecipeError(f"{name} {text}: give {wanted}, not {text!r}.") from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _dashed(program: Program, name: str) -> str:
    return name if name in program.unnamed else f"--{name}"
