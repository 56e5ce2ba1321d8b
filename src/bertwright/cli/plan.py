"""`plan`: what a run will take, before it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from bertwright.cli.formatting import json_line
from bertwright.cli.options import Json, Out, Overrides, RecipePath, Scale, load_at_scale
from bertwright.cli.plan_text import plan_lines


def plan(
    recipe: RecipePath,
    overrides: Overrides = None,
    out: Out = None,
    place: Annotated[
        str,
        typer.Option(
            "--place", metavar="FILE", help="A place with a section [hardware], or its name; else this machine."
        ),
    ] = "",
    nodes: Annotated[int | None, typer.Option(min=1, max=100_000, help="So many such machines.")] = None,
    scale: Scale = "",
    as_json: Json = False,
) -> None:
    """Say what a run will take: memory by part, disk, steps, tokens, hours, energy and cost."""
    # Here and not above: it reads data as the stages do, which the other verbs do not need.
    from bertwright.plan.machine import read_place, this_machine
    from bertwright.plan.plan import make_plan

    loaded, folder, _ = load_at_scale(recipe, overrides, out, scale)
    machine = read_place(place) if place else this_machine(loaded)
    if nodes:
        machine = replace(machine, nodes=nodes)
    made = make_plan(loaded, folder, machine)
    if as_json:
        print(json_line({"recipe": str(recipe), **made}))
    else:
        print(*plan_lines(str(recipe), loaded, made), sep="\n")


VERBS: dict[str, Callable[..., None]] = {"plan": plan}
