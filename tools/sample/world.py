"""The small world that the generated articles are about: tables of things, and facts drawn at random about them.

Each fact (a town's river, a person's trade) is drawn only once, so all articles agree on it.
"""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import DataError
from tools.sample.draws import Draws

Row = dict[str, "Row | str"]
"""One thing: maps a column to a word, or to the row of another table."""
Tables = dict[str, list[Row]]

_SEED = 2026
_TOWN_FACTS = ("trade", "animal", "fruit", "building", "colour", "month", "dish")
_PERSON_FACTS = ("town", "trade", "animal", "dish", "instrument", "colour", "virtue")


def load(language: str, towns: int, people: int) -> Tables:
    """Return the world of a language ("hu" or "en"), with `towns` and `people` drawn from its name tables."""
    tables = _read(Path(__file__).parent / f"world.{language}.txt")
    draws = Draws(_SEED, "world", language)
    tables["town"] = _towns(tables, draws, towns)
    for river in tables["river"]:
        river["town"] = next(town for town in tables["town"] if town["river"] is river)
    tables["person"] = _people(tables, draws, people)
    for person in tables["person"]:
        order = ("family", "given") if language == "hu" else ("given", "family")
        person["name"] = " ".join(word(person[part]) for part in order)
    return tables


def word(value: Row | str) -> str:
    """Return the word itself, or the name of a row."""
    while isinstance(value, dict):
        value = value["name"]
    return value


def _read(path: Path) -> Tables:
    tables: Tables = {}
    columns: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, _, header = line[1:].partition("]")
            columns = [column.strip() for column in header.split("|")]
            tables[name] = []
        elif line and not line.startswith("#"):
            cells = [cell.strip() for cell in _cells(line)]
            if len(cells) != len(columns):
                raise DataError(f"{path.name}: {line!r} has {len(cells)} cells; {name} has {len(columns)} columns")
            tables[name].append(_row(tables, columns, cells))
    return tables


def _cells(line: str) -> list[str]:
    """Split a line into cells; the bar in [one|other] is no separator, because there are no spaces around it."""
    return line.split(" | ")


def _row(tables: Tables, columns: list[str], cells: list[str]) -> Row:
    row: Row = {}
    for column, cell in zip(columns, cells, strict=True):
        name, _, table = column.partition(":")
        row[name] = next(other for other in tables[table] if other["name"] == cell) if table else cell
    return row


def _towns(tables: Tables, draws: Draws, count: int) -> list[Row]:
    names = [(first, last) for first in tables["firsts"] for last in tables["lasts"]]
    towns: list[Row] = []
    for index, (first, last) in enumerate(draws.some(names, count)):
        town: Row = {
            "name": word(first) + word(last),
            "adjective": (word(first) + word(last["adjective"])).lower(),
            "river": tables["river"][index // 2 % len(tables["river"])],
        }
        town.update({fact: draws.one(tables[fact]) for fact in _TOWN_FACTS})
        towns.append(town)
    for index, town in enumerate(towns):
        town["neighbour"] = towns[index ^ 1]
    return towns


def _people(tables: Tables, draws: Draws, count: int) -> list[Row]:
    names = [(family, given) for family in tables["family"] for given in tables["given"]]
    people: list[Row] = []
    for family, given in draws.some(names, count):
        person: Row = {"family": word(family), "given": word(given)}
        person.update({fact: draws.one(tables[fact]) for fact in _PERSON_FACTS})
        people.append(person)
    return people
