"""`recipes` and `check`: which recipes there are, and whether one can be run here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bertwright.check.verdict import Verdict, exit_code, verdict_lines
from bertwright.cli.formatting import fact_lines, print_facts
from bertwright.cli.grouped import grouped
from bertwright.cli.options import Json, Out, Overrides, Scale, load_at_scale, refuse_useless
from bertwright.core.errors import RecipeError
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.shipped import Noun, find_shipped, titles


def recipes(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Print this one, to be copied and changed.")] = "",
    as_json: Json = False,
) -> None:
    """List the recipes that come with bertwright, or print one."""
    _print_shipped("recipe", name, as_json)


def places(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Print this one, to be copied and changed.")] = "",
    as_json: Json = False,
) -> None:
    """List the places to run in that come with bertwright, or print one."""
    _print_shipped("place", name, as_json)


@dataclass(frozen=True)
class Described:
    """What is described in the place of a check."""

    explain: Annotated[
        str,
        typer.Option(
            metavar="KEY", help="Describe a key, or another program's parameter or argument: 'run_pretraining.sh 11'."
        ),
    ] = ""
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Print the JSON Schema of recipes, or of `place`s, by which editors check TOML."),
    ] = False


@grouped
def check(
    recipe: Annotated[
        Path | None,
        typer.Argument(metavar="[RECIPE]", help="A TOML recipe, or a listed name; without it the machine is examined."),
    ] = None,
    overrides: Overrides = None,
    out: Out = None,
    described: Described = Described(),
    scale: Scale = "",
    as_json: Json = False,
) -> None:
    """Say whether a recipe can be run here, describe a key, or examine the machine."""
    if described.schema:
        refuse_useless("beside --schema", {"--explain": bool(described.explain), "--out": out is not None})
        print(_schema(recipe, overrides), end="")
        return
    # Here and not above: each looks at packages and the machine, which the other verbs do not need.
    from bertwright.check.environment import check_machine
    from bertwright.check.recipe import check_recipe

    if described.explain or recipe is None:
        refuse_useless("without a recipe", {"--scale": bool(scale)})
    if described.explain:
        _explain(described.explain, as_json)
    elif recipe is None:
        _print_verdicts({}, check_machine(), as_json)
    else:
        loaded, folder, replaced = load_at_scale(recipe, overrides, out, scale)
        scaled = {"scaled": replaced if as_json else "\n".join(replaced)} if replaced else {}
        facts = {"recipe": str(recipe), **loaded.summary(), **scaled}
        _print_verdicts(facts, check_recipe(loaded, folder, list(STAGES)), as_json)


VERBS: dict[str, Callable[..., None]] = {"recipes": recipes, "places": places, "check": check}


def _print_shipped(noun: Noun, name: str, as_json: bool) -> None:
    if not name:
        print_facts(titles(noun), as_json)
        return
    text = find_shipped(noun, name).read_text(encoding="utf-8")
    print(json.dumps({"name": name, "text": text}, ensure_ascii=False) if as_json else text, end="")


def _explain(name: str, as_json: bool) -> None:
    """Describe a key, or another program's parameter or argument."""
    from bertwright.cli.explain_argument import explain_argument
    from bertwright.explain import explain

    print_facts(explain_argument(name) or explain(Recipe, name), as_json)


def _schema(kind: Path | None, others: list[str] | None) -> str:
    """The published schema of the kind of file whose name stands in the place of a recipe; without one, of recipes."""
    from bertwright.shipped import SCHEMAS, schema_file

    name = str(kind or SCHEMAS[0])
    if name not in SCHEMAS or others:
        given = " ".join([name, *(others or [])])
        raise RecipeError(f"--schema {given}: a schema is of a kind of files. Give one of {', '.join(SCHEMAS)}.")
    return schema_file(name).read_text(encoding="utf-8")


def _print_verdicts(facts: dict[str, Any], verdicts: list[Verdict], as_json: bool) -> None:
    """Print them below the facts, and leave with the exit code of the first error if there is one."""
    code = exit_code(verdicts)
    if as_json:
        print_facts({**facts, "valid": code == 0, "verdicts": [verdict.as_dict() for verdict in verdicts]}, as_json)
    else:
        print(*fact_lines(facts), *([""] if facts else []), *verdict_lines(verdicts), sep="\n")
    if code:
        raise typer.Exit(code)
