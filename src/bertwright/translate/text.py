"""Write a translation as TOML, with comments like those of the recipes shipped with the package."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bertwright.core.toml_values import value_text
from bertwright.translate.command import Key
from bertwright.translate.complete import NOT_SET
from bertwright.translate.place import open_keys
from bertwright.translate.translation import Translation

WIDTH = 120
COLUMN = 36
"""Column where comments begin, as in the recipes shipped with the package."""
SECTIONS = ("corpus", "texts", "vocab", "examples", "model", "optim")
AFTER = ("evaluate", "export", "report")
PHASE = ("length", "data", "batch", "micro_batch", "learning_rate", "schedule", "warmup", "masking", "steps", "epochs")
"""Order of a phase's keys, as in the recipes shipped with the package."""
_CONTROLS = {point: " " if chr(point).isspace() else f"\\x{point:02x}" for point in (*range(0x20), *range(0x7F, 0xA0))}
"""What stands for control characters in comments, which they would end or make invalid."""


def text(translation: Translation, name: str = "RECIPE", place: str = "") -> str:
    """Return the recipe as commented TOML; `name` and `place` are the files of the recipe and the place."""
    lines = [*_head(translation, name, place), ""]
    for section in SECTIONS:
        lines += _section(translation, section)
    for phase in translation.phases:
        order = sorted(
            phase, key=lambda key: PHASE.index(key.split(".")[0]) if key.split(".")[0] in PHASE else len(PHASE)
        )
        lines += _table("[[train.phases]]", {key: phase[key] for key in order})
    for section in ("train", *AFTER):
        lines += _section(translation, section)
    without = [account for account in translation.accounts if not account.keys]
    lines += _listed("Without effect here:", (": ".join(filter(None, (each.option, each.note))) for each in without))
    lines += _listed("Set for the machines, but not part of the place:", translation.unplaced)
    lines += _listed("Commands that are no part of a recipe:", translation.left)
    return "\n".join(lines).rstrip("\n") + "\n"


def place_text(translation: Translation) -> str:
    """Return the place as a TOML file; empty for a single process."""
    values = translation.place
    if not values:
        return ""
    first = f"# The original was started with: {translation.commands[-1]}"
    lines = [*_wrapped("", first, "# "), "", *(f"{key} = {value_text(value)}" for key, value in values.items())]
    for name, form in open_keys(translation.launch).items():
        lines.append(f"# {name} = {value_text(form)} # to be decided by you")
    return "\n".join(lines) + "\n"


def start_line(translation: Translation, recipe: str, place: str = "") -> str:
    """Return the command that runs the recipe file at the place file; without the latter, it sets the place's keys."""
    out = f" --out {shlex.quote(translation.out)}" if translation.out and "$" not in translation.out else ""
    if values := translation.place:
        kind, *settings = values.items()
        arguments = "".join(f" --set {key}={shlex.quote(_typed(value))}" for key, value in settings)
        where = f" --place {shlex.quote(place)}" if place else arguments
        return f"bertwright launch {kind[1]} {shlex.quote(recipe)}{where}{out}"
    steps = [phase["steps"].why for phase in translation.phases if "steps" in phase]
    # If no command gives a number of steps, none of them trains.
    data_alone = steps and all(why.startswith(NOT_SET) for why in steps)
    text = " corpus.source=TEXT" if translation.lacks_text else ""
    return f"bertwright run {shlex.quote(recipe)}{text}{out}{' --until examples' if data_alone else ''}"


def _typed(value: Any) -> str:
    """Return the value of a place as the option --set takes it."""
    return value if isinstance(value, str) else value_text(value)


def _head(translation: Translation, name: str, place: str) -> Iterator[str]:
    yield "# Translated by `bertwright translate`; the comment of each key names its origin."
    yield "#"
    for i, command in enumerate(translation.commands):
        yield from _wrapped("#   from       " if not i else "#              ", command)
    yield from _wrapped("#   here       ", start_line(translation, name, place))
    yield from _listed("Faults and contradictions in the original:", translation.remarks, "#")
    yield from _listed("To be decided by you:", translation.open, "#")


def _section(translation: Translation, section: str) -> Iterator[str]:
    begin = f"{section}."
    keys = {name.removeprefix(begin): key for name, key in translation.sections.items() if name.startswith(begin)}
    return _table(f"[{section}]", keys)


def _table(header: str, keys: Mapping[str, Key]) -> Iterator[str]:
    if keys:
        yield header
        for name, key in keys.items():
            line = f"{name} = {value_text(key.value)}"
            beside = f"{line:<{COLUMN - 1}} # {key.why.translate(_CONTROLS)}" if key.why else line
            # A long value leaves no room for its origin, which is then on the line above.
            yield from [beside] if len(beside) <= WIDTH else [*_wrapped("# ", key.why), line]
        yield ""


def _listed(title: str, items: Iterable[str], before: str = "") -> list[str]:
    lines = [line for item in items for line in _wrapped("#   - ", item, "#     ")]
    return [*([before] if before else []), f"# {title}", *lines, *([] if before else [""])] if lines else []


def _wrapped(first: str, text: str, later: str = "") -> list[str]:
    later = later or "#" + " " * (len(first) - 1)
    return textwrap.wrap(
        text.translate(_CONTROLS),
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
