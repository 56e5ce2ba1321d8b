"""The five answers that a recipe is drafted from, and the valid values of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from bertwright.core.config import expand_home
from bertwright.core.errors import RecipeError
from bertwright.corpus.wikis import wiki_code, wikis
from bertwright.estimate.devices import gpus
from bertwright.estimate.machine import HardwareConfig, Machine, machine_of, this_machine
from bertwright.estimate.machine_facts import training_gpus
from bertwright.recipe import Recipe

Quality = Literal["quick", "classic", "best"]
QUALITIES: dict[Quality, str] = {
    "quick": "a first try: a small network, short sequences",
    "classic": "BERT as published: pairs of segments, two phases",
    "best": "newer findings: ModernBERT, no pairs, a higher masking rate, whole words",
}
_CORES = re.compile(r"(\d{1,4})[- ]?cores?")
_MOST_CORES = 4096
"""As in the section `[hardware]` of a place."""
_GPUS = re.compile(r"(?:(\d{1,3}) ?x ?)?([a-z][a-z0-9-]*)")


@dataclass(frozen=True)
class Answers:
    """The validated answers."""

    language: str
    """Code of a Wikipedia."""
    machine: str
    """The machine as typed, such as "8xh100"."""
    hours: float
    """Hours from the dump to the finished model."""
    quality: Quality
    out: Path
    """Path that the recipe is written to."""

    @property
    def place(self) -> Path | None:
        """Path that the place is written to, which describes another machine than this one; None for this one."""
        return None if parse_hardware(self.machine) is None else _place_beside(self.out)


def _place_beside(out: Path) -> Path:
    return out.with_suffix(".place.toml")


def parse_language(text: str) -> str:
    """Return the code of a known Wikipedia; raise `RecipeError`, with the closest match if there is one."""
    try:
        code = wiki_code(text.strip())
    except ValueError as error:
        raise RecipeError(f"--language {text}: {error}") from None
    if code not in wikis():
        raise RecipeError(
            f"--language {text}: no Wikipedia with this code is known. Choose one of "
            "https://meta.wikimedia.org/wiki/List_of_Wikipedias, or copy a recipe (bertwright recipes wiki-mini) "
            "and change its source."
        )
    return code


def parse_machine(text: str) -> Machine:
    """Return the machine that "here", "16-cores", "h100" or "8xh100" means; else a `RecipeError` lists the forms."""
    hardware = parse_hardware(text)
    if hardware is not None:
        return machine_of(hardware)
    # Any recipe would do: of it, only the device is read.
    recipe = Recipe.load("wiki-mini")
    return this_machine(recipe, max(1, len(training_gpus(recipe))))


def parse_hardware(text: str) -> HardwareConfig | None:
    """Return the equipment of the machine that a word means; None for "here"; else a `RecipeError` lists the forms."""
    word = text.strip().lower()
    if word == "here":
        return None
    if (cores := _CORES.fullmatch(word)) and 0 < int(cores[1]) <= _MOST_CORES:
        return HardwareConfig(cores=int(cores[1]))
    found = _GPUS.fullmatch(word)
    if found and found[2] in gpus() and int(found[1] or 1):
        return HardwareConfig(gpu=found[2], gpus=int(found[1] or 1))
    raise RecipeError(
        f'--machine {text}: give "here" (this machine), a number of cores (16-cores), or the GPUs of one machine '
        f"(h100, 8xh100). Known GPUs: {', '.join(gpus())}."
    )


def parse_hours(text: str) -> float:
    """Return the hours as a number above 0 and at most ten years."""
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= 87_600:
        raise RecipeError(f"--hours {text}: give the hours for the complete run, such as 24 or 0.5.")
    return hours


def parse_quality(text: str) -> Quality:
    """Return one of `QUALITIES`."""
    if text not in get_args(Quality):
        known = "; ".join(f"{name} ({meaning})" for name, meaning in QUALITIES.items())
        raise RecipeError(f"--quality {text}: give one of {known}.")
    return cast(Quality, text)


def parse_out(text: str) -> Path:
    """Return a path that ends in .toml and does not exist."""
    if not text.isprintable():  # the head of the recipe has the path in its commands
        raise RecipeError(
            f"--out {text!r}: it contains a character that cannot be printed, such as a line break. Give another path."
        )
    try:
        path = expand_home(Path(text))
    except ValueError as error:
        raise RecipeError(f"--out {text}: {error}.") from None
    if path.suffix != ".toml":
        raise RecipeError(f"--out {text}: a recipe is a TOML file. Give a path that ends in .toml.")
    for written in (path, _place_beside(path)):
        if written.exists() or written.is_symlink():
            what = "this file" if written == path else f"beside it, {written}"
            raise RecipeError(f"--out {text}: {what} already exists, and is not overwritten. Give another path.")
    return path
