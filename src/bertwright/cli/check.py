"""`recipes`, `places` and `check`: what comes with bertwright, and whether a recipe can be run here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bertwright.check.verdict import Verdict, exit_code, verdict_rows
from bertwright.cli.completion import complete_key, complete_place, complete_recipe
from bertwright.cli.options import (
    Json,
    Out,
    Overrides,
    Scale,
    load_at_scale,
    option_groups,
    place_option,
    refuse_useless,
)
from bertwright.cli.text import colour, fact_lines, json_line, print_facts, terminal_width, visible, wrap
from bertwright.core.errors import RecipeError
from bertwright.core.files import read_text
from bertwright.core.numbers import pluralize
from bertwright.core.toml import MAX_BYTES
from bertwright.estimate.machine_facts import OtherMachine
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written
from bertwright.shipped import Noun, find_shipped, titles
from bertwright.train.settings.phase_config import LENGTHS


def recipes(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_recipe, metavar="NAME", help="Print this one, so that you can copy and change it."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """List the recipes that come with bertwright, or print one."""
    _print_shipped("recipe", name, as_json)


def places(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_place, metavar="NAME", help="Print this one, so that you can copy and change it."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """List the places to run in that come with bertwright, or print one."""
    _print_shipped("place", name, as_json)


@dataclass(frozen=True)
class Described:
    """What to describe instead of checking."""

    explain: Annotated[
        str,
        typer.Option(
            autocompletion=complete_key,
            metavar="KEY",
            help="Describe a key (also its value, if a recipe is given), or another program's parameter or argument, "
            "such as 'run_pretraining.sh 11'.",
        ),
    ] = ""
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", help="Print the JSON Schema of recipes, or of `place`s, with which editors check TOML."
        ),
    ] = False


@dataclass(frozen=True)
class At:
    """The machine and the size that a recipe is checked for."""

    place: Annotated[
        str,
        place_option("Check for a place with a section [hardware], or its name; default: this machine."),
    ] = ""
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=100_000, help="Number of machines of the place.")
    ] = None
    scale: Scale = ""

    def given(self) -> dict[str, bool]:
        """Whether each of the options is given."""
        return {"--place": bool(self.place), "--nodes": self.nodes is not None, "--scale": bool(self.scale)}


@option_groups
def check(
    recipe: Annotated[
        Path | None,
        typer.Argument(
            autocompletion=complete_recipe,
            metavar="RECIPE",
            help="A TOML recipe, the name of a listed one, or a run folder; if omitted, the machine is checked.",
        ),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    described: Described = Described(),
    at: At = At(),
    as_json: Json = False,
) -> None:
    """Say whether a recipe can be run here, describe a key, or examine the machine."""
    if described.schema:
        # --json is allowed: a schema is JSON.
        refuse_useless("with --schema", {"--explain": bool(described.explain), "--out": out is not None, **at.given()})
        print(_schema(recipe, overrides), end="")
        return
    from bertwright.check.machine.environment import check_machine
    from bertwright.pipeline.run import check_run

    for where, given in (("with --explain", described.explain), ("without a recipe", recipe is None)):
        if given:
            refuse_useless(where, {"--out": out is not None, **at.given()})
    if described.explain:
        _explain(described.explain, Written.read(recipe, overrides or [], Recipe) if recipe else None, as_json)
    elif recipe is None:
        _print_verdicts({}, check_machine(), as_json)
    else:
        machine, overridden = _machine(at, overrides or [])
        loaded, folder, replaced = load_at_scale(recipe, overridden, out, at.scale)
        scaled = {"scaled": replaced if as_json else "\n".join(replaced)} if replaced else {}
        facts = {"recipe": str(recipe), **_summary(loaded), **scaled}
        ranks = machine.ranks if machine else 1
        _print_verdicts(facts, check_run(loaded, folder, ranks, machine), as_json)


def _machine(at: At, overrides: list[str]) -> tuple[OtherMachine | None, list[str]]:
    """The machine of the place that is given, None for this one; and the overrides with those of the place before."""
    if not at.place:
        refuse_useless("without --place", {"--nodes": at.nodes is not None})
        return None, overrides
    refuse_useless("with --place", {"--scale": bool(at.scale)})
    from bertwright.estimate.machine import read_place

    place = read_place(at.place)
    machine = replace(place.machine, nodes=at.nodes) if at.nodes else place.machine
    return machine.checked, [*place.overrides, *overrides]


def _print_shipped(noun: Noun, name: str, as_json: bool) -> None:
    if not name:
        print_facts(titles(noun), as_json)
        return
    path = find_shipped(noun, name)
    try:
        text = read_text(path, MAX_BYTES, "utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecipeError(
            f"cannot read the {noun} {path}: {reason}. Give a name that `bertwright {noun}s` lists, or the path of a "
            "TOML file in UTF-8."
        ) from error
    print(json_line({"name": name, "text": text}) if as_json else visible(text.removesuffix("\n")))


def _explain(name: str, written: Written | None, as_json: bool) -> None:
    """Describe a key, with its value in a recipe and where that is set, or another program's parameter or argument."""
    from bertwright.cli.explain_argument import explain_argument
    from bertwright.explain import explain

    versions = explain_argument(name)
    facts = versions or explain(Recipe, name)
    if written is not None:
        named = [key for version in versions.values() for key in version] if versions else list(facts)
        keys = [facts["key"]] if "key" in facts else [key for key in named if "." in key]
        # Who gives no number of an element means all of them: 0 stands for each then.
        numbered = re.search(r"\d", name) and not versions
        facts |= _given(written, keys if numbered else [_unnumbered(key) for key in keys], as_json)
    if not as_json:
        facts |= {name: _format_value(facts[name]) for name in ("default", "value") if name in facts}
    print_facts(facts, as_json)


def _unnumbered(key: str) -> str:
    return re.sub(r"\.\d+(?=\.|$)", "", key)


def _given(written: Written, keys: Sequence[str], as_json: bool) -> dict[str, Any]:
    """The values of keys in a recipe, and where they are set, for each place that they stand for."""
    from bertwright.core.dotted import elements, value_at
    from bertwright.core.secrets import hide_in_values

    recipe = Recipe.from_values(written)
    recipe.check(written.file, written.lines, given=False)
    values = hide_in_values(recipe.to_json())
    places = [place for key in keys for place in elements(values, key)] or [*keys]
    found = {place: value_at(values, place) for place in places}
    where = {place: written.where_set(place) or "nowhere: by default" for place in places}
    return {name: _one_of(each, len(keys) == 1, as_json) for name, each in (("value", found), ("set in", where))}


def _one_of(by_place: dict[str, Any], of_one_key: bool, as_json: bool) -> Any:
    """What is the same in all places of one key, without them; for programs, that of the only place."""
    first, *others = by_place.values()
    return first if of_one_key and (not others or (not as_json and all(each == first for each in others))) else by_place


def _format_value(value: Any) -> Any:
    """A value of a key for people, as it would be written in a recipe where Python writes it otherwise."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case "" | () | []:
            return "[]" if value != "" else '""'
        case {}:
            return {key: _format_value(each) for key, each in value.items()}
    return value


def _schema(kind: Path | None, others: list[str] | None) -> str:
    """The published schema of the kind of file that is named in place of a recipe; by default that of recipes."""
    from bertwright.shipped import SCHEMAS, schema_file

    name = str(kind or SCHEMAS[0])
    if name not in SCHEMAS or others:
        given = " ".join([name, *(others or [])])
        raise RecipeError(
            f"--schema {given}: there is no schema for this kind of file. Give one of {', '.join(SCHEMAS)}."
        )
    return schema_file(name).read_text(encoding="utf-8")


def _summary(recipe: Recipe) -> dict[str, str]:
    """What a recipe trains: network, parameters, phases."""
    network, phases = recipe.network(), dict[str, str]()
    for i, phase in enumerate(recipe.train.phases):
        budget = next(f"{getattr(phase, name):,} {name}" for name in LENGTHS if getattr(phase, name) is not None)
        budget += f" or {phase.hours:g} hours" if phase.hours else ""
        rate = f"{phase.schedule.kind} to {phase.learning_rate:g}"
        phases[f"phase {i}"] = f"length {phase.length}, batch {phase.batch:,}, {budget}, {rate}"
    layers = pluralize(network.num_hidden_layers, "layer")
    shape = f"{layers}, hidden {network.hidden_size}, vocabulary {network.vocab_size:,}"
    return {"model": f"{shape}, {network.parameters:,} parameters", "optimizer": recipe.optim.kind, **phases}


def _print_verdicts(facts: dict[str, Any], verdicts: list[Verdict], as_json: bool) -> None:
    """Print the verdicts below the facts, and exit with the code of the first error if there is one."""
    code = exit_code(verdicts)
    if as_json:
        print_facts({**facts, "valid": code == 0, "verdicts": [verdict.as_dict() for verdict in verdicts]}, as_json)
    else:
        print(*fact_lines(facts, terminal_width()), *([""] if facts else []), *_verdict_lines(verdicts), sep="\n")
    if code:
        raise typer.Exit(code)


_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


def _verdict_lines(verdicts: list[Verdict]) -> Iterator[str]:
    """Level, name and sentence in columns; on a terminal the level has a colour, and long sentences are wrapped."""
    for level, about, sentence in verdict_rows(verdicts):
        line = "\n".join(wrap(f"{level:<7}  {visible(about)}  ", visible(sentence), terminal_width()))
        yield colour(level, _COLOURS[level]) + line[len(level) :]
