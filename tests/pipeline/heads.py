"""The head of a shipped recipe: what its comment says, entry by entry, and the keys that it names."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.pipeline.command import RECIPES

TEXT = len("#   command    ")
"""Column at which the text of an entry begins, on its first line and on those that continue it."""
_OVERRIDE = re.compile(r"'([a-z_]+[\w.]*=[^']*)'|(?<![\w.])([a-z_]+[\w.]*=\S*)")
_KEY = re.compile(
    r"(?<![\w./=-])(?!vocab\.txt)(?:corpus|texts|vocab|examples|model|optim|train|evaluate|export)\.[\w.]*\w(?!\S*=)"
)


def head(path: Path) -> str:
    """The comment that a recipe begins with."""
    return path.read_text(encoding="utf-8").partition("\n\n")[0]


def entries(text: str) -> dict[str, str]:
    """The entries of (a part of) a head by name, each on one line."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        begins, continues = line.startswith("#   ") and line[4:5].strip(), line.startswith("#" + " " * (TEXT - 1))
        name = line[4:TEXT].strip() if begins else name if continues else ""
        if name:
            found.setdefault(name, []).append(line[TEXT:].strip())
    return {name: " ".join(lines) for name, lines in found.items()}


def differences(path: Path) -> dict[str, str]:
    """The entries about differences from the original, and those of other recipes that the head refers to: all of them,
    or those that its entry `others` lists."""
    _, found, text = head(path).partition("\n# Differences ")
    own = entries(text) if found else {}
    listed = own.get("others", "")
    inherited: dict[str, str] = {}
    for part in (text.partition("\n#   ")[0], listed):
        for other in re.findall(r"recipes/([\w-]+)\.toml", part):
            theirs = differences(RECIPES / f"{other}.toml").items()
            wanted = [(name, entry) for name, entry in theirs if part != listed or name.rpartition(": ")[2] in listed]
            inherited |= {f"{other}: {name}": entry for name, entry in wanted}
    return {**inherited, **own}


def presets_of(path: Path) -> list[list[str]]:
    """The override of each preset of a recipe, or none if it has no presets."""
    presets = tomllib.loads(path.read_text(encoding="utf-8")).get("presets", {})
    return [[f"preset={name}"] for name in presets] or [[]]


def overrides(text: str) -> Iterator[list[str]]:
    """The `key=value` of an entry; those that only white space separates belong together."""
    together: list[str] = []
    end = 0
    for match in _OVERRIDE.finditer(text):
        said = match[1] or match[2].rstrip(",;:.)")
        if together and text[end : match.start()].strip():
            yield together
            together = []
        together.append(said)
        end = match.start() + text[match.start() :].index(said) + len(said) + bool(match[1])
    if together:
        yield together


def keys(text: str) -> set[str]:
    """The dotted keys that an entry names without a value."""
    return set(_KEY.findall(text))
