"""Whether bfloat16 trains as well as float32: held-out loss curves of both precisions, compared across seeds.

    python benchmarks/bf16_curve.py FOLDER [--steps 2000] [--seeds 3] [--recipe recipes/demo.toml] [--key KEY=VALUE ...]

Trains the recipe with every seed in both precisions and scores each training at twenty evenly spaced steps. The same
seed gives the same initial weights, batches, masks and dropout, so the two precisions differ only in rounding.
Trainings that differ by rounding still drift apart; the spread between seeds shows how much drift is normal. The
distance of two curves is the mean absolute difference over their points. bfloat16 counts as different

  - if the two precisions of a seed are farther apart, on average, than two seeds in float32; or
  - if its mean signed difference over all points exceeds two standard deviations of the seeds: a small difference
    that always has the same sign is not noise.

A second start continues where the first one stopped. `--allow-slow` also runs on processors without a bfloat16 unit.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from run_recipe import Refused, linked, run_recipe

ROOT = Path(__file__).parent.parent
POINTS = 20
"""Number of evenly spaced scores in a training."""
DEVIATIONS = 2.0
"""How many standard deviations of the seeds bfloat16 may lie above or below float32."""
Curve = list[tuple[int, float]]
"""Pairs of step and held-out loss in nats."""


def trained(folder: Path, recipe: Path, keys: Sequence[str], seed: int, precision: str) -> Curve:
    """Train and return the held-out loss curve; `precision` is the value of `train.precision`."""
    out = folder / f"{'bf16' if 'bf16' in precision else 'fp32'}-{seed}"
    linked(folder / "text", out)
    try:
        run_recipe(recipe, [*keys, f"train.seed={seed}", f"train.precision={precision}"], out, "train")
    except Refused as refusal:
        raise SystemExit(f"{refusal} Or compute it all the same: --allow-slow") from None
    rows = [json.loads(row) for row in (out / "train" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(row["total_steps"], row["heldout_mlm_loss"]) for row in rows if "heldout_mlm_loss" in row]


def distance(one: Curve, other: Curve) -> float:
    """The mean absolute difference, in nats, of two curves scored at the same steps."""
    return statistics.fmean(abs(a - b) for (_, a), (_, b) in _side_by_side(one, other))


def above(one: Curve, other: Curve) -> float:
    """The mean of `one` minus `other`, in nats; negative where `one` lies below."""
    return statistics.fmean(a - b for (_, a), (_, b) in _side_by_side(one, other))


def _side_by_side(one: Curve, other: Curve) -> list[tuple[tuple[int, float], tuple[int, float]]]:
    pairs = list(zip(one, other, strict=True))
    if any(a[0] != b[0] for a, b in pairs):
        raise SystemExit("the curves were scored at different steps: measure them in another folder")
    return pairs


def compared(fp32: Sequence[Curve], bf16: Sequence[Curve]) -> dict[str, Any]:
    """Compare the curves of both precisions; both list the same seeds in the same order, at least two."""
    levels = [statistics.fmean(loss for _, loss in curve) for curve in fp32]
    between = statistics.fmean(distance(low, full) for low, full in zip(bf16, fp32, strict=True))
    seeds = statistics.fmean(distance(one, other) for one, other in combinations(fp32, 2))
    higher = statistics.fmean(above(low, full) for low, full in zip(bf16, fp32, strict=True))
    deviation = statistics.stdev(levels)
    return {
        "fp32": fp32,
        "bf16": bf16,
        "distance_of_precisions": between,
        "distance_of_seeds": seeds,
        "bf16_above_fp32": higher,
        "deviation_of_seeds": deviation,
        "differs": not (between <= seeds and abs(higher) <= DEVIATIONS * deviation),
    }


def markdown(found: dict[str, Any]) -> str:
    """The result as a Markdown page."""
    lines = ["| step | fp32: mean (range) | bf16: mean (range) |", "|---|---|---|"]
    for full, low in zip(zip(*found["fp32"], strict=True), zip(*found["bf16"], strict=True), strict=True):
        lines.append(f"| {full[0][0]:,} | {_spread(full)} | {_spread(low)} |")
    said = (
        f"Precisions of a seed are {found['distance_of_precisions']:.4f} nats apart, seeds in float32 "
        f"{found['distance_of_seeds']:.4f}; bfloat16 lies {found['bf16_above_fp32']:+.4f} above, and a standard "
        f"deviation of seeds is {found['deviation_of_seeds']:.4f}. "
    )
    verdict = "**bfloat16 differs by more than seeds do.**" if found["differs"] else "No more than seeds do."
    return "\n".join([*lines, "", said + verdict]) + "\n"


def _spread(points: Sequence[tuple[int, float]]) -> str:
    losses = [loss for _, loss in points]
    return f"{statistics.fmean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


def main(*arguments: str) -> None:
    """Train in both precisions and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything is kept")
    parser.add_argument("--steps", type=int, default=2000, help="of each training")
    parser.add_argument("--seeds", type=int, default=3, help="trainings in either precision; at least 2")
    parser.add_argument("--recipe", type=Path, default=ROOT / "recipes" / "demo.toml", help="what is trained")
    parser.add_argument("--key", nargs="+", default=[], metavar="KEY=VALUE", help="further keys of the recipe")
    parser.add_argument("--allow-slow", action="store_true", help="also without a unit for bfloat16")
    given = parser.parse_args(arguments)
    if given.seeds < 2 or given.steps < POINTS:
        parser.error(f"--seeds {given.seeds} --steps {given.steps}: give 2 seeds and {POINTS} steps, or more")
    every = f"train.evaluate_every={given.steps // POINTS}"
    keys = [f"train.phases.0.steps={given.steps}", every, *given.key]
    run_recipe(given.recipe, keys, given.folder / "text", "examples")
    low = '{kind="bf16",allow_slow=true}' if given.allow_slow else "bf16"
    # Alternate the precisions, so that a run stopped early has results for both.
    curves: dict[str, list[Curve]] = {"fp32": [], low: []}
    for seed in range(1, given.seeds + 1):
        for precision, found in curves.items():
            found.append(trained(given.folder, given.recipe, keys, seed, precision))
    result = compared(curves["fp32"], curves[low])
    (given.folder / "bf16_curve.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (given.folder / "bf16_curve.md").write_text(markdown(result), encoding="utf-8")
    print(markdown(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
