"""`plan`: forecast what a run will take before it starts, and print it in tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from bertwright.cli.options import Json, Run, Scale, load_at_scale, option_groups, place_option, refuse_useless
from bertwright.cli.text import columns, json_line, terminal_width, visible, wrap
from bertwright.core.numbers import amount, duration, short_count, size_of, step_duration, time_left
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.recipe import Recipe

if TYPE_CHECKING:
    from pathlib import Path

    from bertwright.estimate.machine import Machine
    from bertwright.forecast_shapes import Plan


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


@option_groups
def plan(
    of: Run,
    where: Where,
    scale: Scale = "",
    as_json: Json = False,
) -> None:
    """Say what a run will take: memory by part, disk, steps, tokens, hours, energy and cost."""
    from bertwright.estimate.machine import read_place, refuse_other_device, this_machine
    from bertwright.pipeline.lineage import matching_artifacts
    from bertwright.plan.plan import make_plan

    place = read_place(where.place) if where.place else None
    overrides = [*(place.overrides if place else ()), *(of.overrides or [])]
    loaded, folder, _ = load_at_scale(of.recipe, overrides, of.out, scale)
    machine = place.machine if place else this_machine(loaded)
    if place:
        refuse_other_device(loaded, machine)
        refuse_useless("with --place", {"--measure": where.measure})
    if where.measure:
        _measure(loaded, folder, machine)
    # After measuring, which uses one machine, however many are planned.
    if where.nodes:
        machine = replace(machine, nodes=where.nodes)
    forecast = make_plan(loaded, matching_artifacts(loaded, folder), machine)
    if as_json:
        print(json_line({"recipe": str(of.recipe), **forecast}))
    else:
        print(*plan_lines(str(of.recipe), loaded, forecast, terminal_width()), sep="\n")


def _measure(recipe: Recipe, folder: Path, machine: Machine) -> None:
    """Measure the recipe's steps here, and print where the result is kept."""
    from bertwright.estimate.measure import measure  # torch
    from bertwright.estimate.measurement_cache import store_measurements
    from bertwright.pipeline.lineage import matching_artifacts
    from bertwright.plan.plan import planned_works

    planned = planned_works(recipe, matching_artifacts(recipe, folder), machine)
    path = store_measurements(measure(*planned, machine.ranks))
    print(f"measured; saved in {path}", file=sys.stderr)


_BASIS = {
    "examples": "counted in the finished examples",
    "corpus": "from the finished corpus",
    "sources": "from the size of the sources",
    "nothing": "unknown: the sources are not on this machine",
}


def plan_lines(name: str, recipe: Recipe, plan: Plan, width: int = 0) -> Iterator[str]:
    """The lines of the plan of the recipe called `name`, for people; sentences have at most `width` characters a line,
    if it is not 0."""
    yield from _head(name, plan)
    yield ""
    yield from _phases(recipe, plan)
    yield ""
    yield from _memory(plan)
    yield ""
    yield from _stages(plan)
    yield ""
    yield from _sums(plan, width)
    if not plan["fits"]:
        yield ""
        yield from _remedies(plan, width)


def _head(name: str, plan: Plan) -> Iterator[str]:
    machine, text = plan["machine"], plan["text_bytes"]
    nodes = f"{machine['nodes']:,} nodes of " if machine["nodes"] > 1 else ""
    ranks = f", {machine['ranks']:,} ranks" if machine["ranks"] > 1 else ""
    memory = f"{size_of(machine['memory_bytes'])} each" if machine["memory_bytes"] else "memory unknown"
    yield f"{visible(name)} on {nodes}{visible(machine['title'])}{ranks}, {memory}"
    yield f"network  {plan['parameters']:,} parameters"
    size = "" if text is None else f"{size_of(text)} of text, "
    yield f"data     {size}{_BASIS[plan['basis']]}"


def _phases(recipe: Recipe, plan: Plan) -> Iterator[str]:
    # Two tables: all columns in one would be wider than a terminal.
    phases = list(enumerate(zip(recipe.train.phases, plan["phases"], strict=True)))
    shapes = [
        (
            f"{index}",
            f"{phase.length:,}",
            f"{phase.batch:,}",
            f"{planned['micro_batches']:,} x {planned['micro_batch']:,}",
            planned["attention"],
            planned["precision"],
        )
        for index, (phase, planned) in phases
    ]
    yield from columns(("phase", "length", "batch", "per rank", "attention", "precision"), shapes)
    yield ""
    work = [
        (
            f"{index}",
            _or_unknown(planned["steps"], "{:,}".format),
            _or_unknown(planned["tokens"], short_count),
            "-" if planned["epochs"] is None else amount(planned["epochs"]),
            step_duration(planned["step_seconds"]),
            short_count(planned["tokens_per_second"]),
            _hours(planned["hours"]),
        )
        for index, (_, planned) in phases
    ]
    yield from columns(("phase", "steps", "tokens", "epochs", "per step", "tokens/s", "time"), work)


def _memory(plan: Plan) -> Iterator[str]:
    phases = plan["phases"]
    size, unit = (1e9, "GB") if plan["memory_bytes"] >= 5e8 else (1e6, "MB")
    head = (f"memory per device ({unit})", *(f"phase {index}" for index in range(len(phases))))
    parts = [part for part in phases[0]["memory"] if any(phase["memory"][part] for phase in phases)]  # type: ignore[literal-required]
    rows = [(part, *(f"{phase['memory'][part] / size:,.2f}" for phase in phases)) for part in parts]  # type: ignore[literal-required]
    rows.append(("total", *(f"{phase['memory_bytes'] / size:,.2f}" for phase in phases)))
    if there := plan["machine"]["memory_bytes"]:
        rows.append(("share of the available memory", *(f"{phase['memory_bytes'] / there:.0%}" for phase in phases)))
    yield from columns(head, rows)


def _stages(plan: Plan) -> Iterator[str]:
    disk, left, hours = plan["disk"], plan["disk_left"], plan["hours"]
    rows: list[tuple[str, ...]] = [
        (
            stage,
            _or_unknown(disk[stage], size_of) if stage in disk else "",
            _or_unknown(left[stage], size_of) if stage in left else "",
            _hours(hours[stage]) if stage in hours else "finished",
        )
        for stage in STAGE_NAMES
        if stage in hours or stage in disk
    ]
    # A plus marks a sum that lacks unknown parts.
    sums = [size_of(sum(filter(None, sizes.values()))) + "+" * (None in sizes.values()) for sizes in (disk, left)]
    lacks_parts = plan["total_hours"] is not None and None in hours.values()
    rows.append(("total", *sums, _hours(plan["total_hours"]) + "+" * lacks_parts))
    yield from columns(("stage", "disk", "kept", "time"), rows)


def _sums(plan: Plan, width: int) -> Iterator[str]:
    low, high, machine = plan["low_hours"], plan["high_hours"], plan["machine"]
    how = plan["calibrated"] or f"{_rates(machine['device'])} (see --measure)"
    if low is None or high is None or plan["energy_kwh"] is None:
        yield from wrap("time     ", "unknown: it depends on the data, which is not on this machine", width)
        return
    unknown = [stage for stage, hours in plan["hours"].items() if hours is None]
    beside = f", without {', '.join(unknown)}" if unknown else ""
    yield from wrap("time     ", f"{duration(low * 3600)} to {duration(high * 3600)}{beside}, {how}", width)
    yield f"energy   {amount(plan['energy_kwh'])} kWh, at {machine['watts']:,.0f} W per machine"
    if plan["cost"] is not None:
        cost = f"{plan['cost']:,.2f}" if plan["cost"] >= 0.01 else "under 0.01"
        yield f"cost     {cost} {visible(machine['currency'])}, at {machine['price']:g} per machine and hour"


def _rates(device: str) -> str:
    """Where the speeds of a device come from."""
    from bertwright.estimate.devices import CPU
    from bertwright.estimate.measured_gpu import measured_gpu

    if device == CPU:
        return "from a table of devices, not measured"
    scaled = "" if device == measured_gpu().gpu else f", scaled by the data sheet of {device}"
    return measured_gpu().source + scaled


def _remedies(plan: Plan, width: int) -> Iterator[str]:
    needed, there = plan["memory_bytes"], plan["machine"]["memory_bytes"]
    text = f"The training does not fit into memory: {size_of(needed)} are needed, but {size_of(there)} are available."
    yield from wrap("", text, width)
    if not plan["remedies"]:
        text = "No change of a key makes it fit. Use a device with more memory, or a smaller network (model.config)."
        yield from wrap("", text, width)
        return
    rows = [
        (
            " ".join(_quote(key) for key in remedy["keys"]),
            size_of(remedy["memory_bytes"]),
            f"{remedy['times_as_long']:.2f}x",
        )
        for remedy in plan["remedies"]
    ]
    yield from columns(("keys that make it fit", "memory", "time"), rows)


def _quote(key: str) -> str:
    """The key, quoted for a shell if necessary."""
    return f"'{key}'" if set(key) & set('{}[]" ') else key


def _or_unknown(value: float | None, form: Callable[[float], str]) -> str:
    return "?" if value is None else form(value)


def _hours(hours: float | None) -> str:
    return _or_unknown(hours, lambda value: time_left(value * 3600))
