"""`plan`: forecast what a run will take, before it starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.option_groups import grouped
from bertwright.cli.options import Json, Run, Scale, load_at_scale, place_option, refuse_useless
from bertwright.cli.plan_text import plan_lines
from bertwright.cli.text import json_line, terminal_width
from bertwright.recipe import Recipe

if TYPE_CHECKING:
    from pathlib import Path

    from bertwright.estimate.machine import Machine


@dataclass(frozen=True)
class Where:
    """The machines to plan for."""

    place: Annotated[
        str,
        place_option("A place with a section [hardware], or its name; default: this machine."),
    ] = ""
    nodes: Annotated[int | None, typer.Option(metavar="N", min=1, max=100_000, help="Number of such machines.")] = None
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure this machine with the recipe's network (about 20 seconds).")
    ] = False


@grouped
def plan(
    of: Run,
    where: Where,
    scale: Scale = "",
    as_json: Json = False,
) -> None:
    """Say what a run will take: memory by part, disk, steps, tokens, hours, energy and cost."""
    from bertwright.estimate.machine import read_place, refuse_other_device, this_machine
    from bertwright.pipeline.lineage import standing_artifacts
    from bertwright.plan.plan import make_plan

    place = read_place(where.place) if where.place else None
    asked = [*(place.overrides if place else ()), *(of.overrides or [])]
    loaded, folder, _ = load_at_scale(of.recipe, asked, of.out, scale)
    machine = place.machine if place else this_machine(loaded)
    if place:
        refuse_other_device(loaded, machine)
        refuse_useless("with --place", {"--measure": where.measure})
    if where.measure:
        _measure(loaded, folder, machine)
    # After measuring, which uses one machine, however many are planned.
    if where.nodes:
        machine = replace(machine, nodes=where.nodes)
    made = make_plan(loaded, standing_artifacts(loaded, folder), machine)
    if as_json:
        print(json_line({"recipe": str(of.recipe), **made}))
    else:
        print(*plan_lines(str(of.recipe), loaded, made, terminal_width()), sep="\n")


def _measure(recipe: Recipe, folder: Path, machine: Machine) -> None:
    """Measure the recipe's steps here, and print where the result is kept."""
    from bertwright.estimate.measure import measure  # torch
    from bertwright.estimate.measurement_cache import keep
    from bertwright.pipeline.lineage import standing_artifacts
    from bertwright.plan.plan import planned_works

    path = keep(measure(recipe, planned_works(recipe, standing_artifacts(recipe, folder), machine), machine.ranks))
    print(f"measured; saved in {path}", file=sys.stderr)


VERBS: dict[str, Callable[..., None]] = {"plan": plan}
