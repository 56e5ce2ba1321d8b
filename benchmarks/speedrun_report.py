"""The report on the notes of benchmarks/speedrun.py: validity, time ratios, and rungs against the noise of seeds."""

import statistics
from collections.abc import Sequence
from typing import Any

from speedrun_setting import Note, Setting

LEARNT = 1.0
"""How many nats below the unigram loss a peer must be to have learnt to use the context."""
DEVIATIONS = 2.0
"""How many standard deviations of the start separate its mean from a rung that has won or lost."""


def report(notes: Sequence[Note], setting: Setting) -> dict[str, Any]:
    """Everything in the tables, from the notes so far; parts that have not been measured are None or empty."""
    on = list(setting.on)
    trained = [note for note in notes if note.get("kind") == "ours"]
    hours = [note for note in notes if note.get("kind") == "peer" and note["minutes"] == setting.minutes]
    theirs = min(hours, key=lambda note: float(note["loss"])) if hours else None
    own = [note for note in trained if note["rungs"] == on]
    rungs = [note for note in trained if note["minutes"] == setting.rung_minutes and note["seed"] == 1]
    return {
        "setting": {
            "kind": setting.kind,
            "size": setting.size,
            "threads": setting.threads,
            "on": on,
            "keys": list(setting.keys),
        },
        "peer": theirs and {**theirs, "below_unigram": theirs["unigram"] - theirs["loss"], "void": void(theirs)},
        "ours": theirs and sooner(own, theirs),
        "ladder": judged(
            [note for note in own if note["minutes"] == setting.rung_minutes],
            [note for note in rungs if note["rungs"][:-1] == on and note["rungs"] != on],
        ),
    }


def void(theirs: Note) -> bool:
    """Whether the peer's training is too poor for a comparison."""
    return not theirs["unigram"] - theirs["loss"] >= LEARNT


def sooner(own: Sequence[Note], theirs: Note) -> dict[str, Any]:
    """For each seed, the shortest training at or below the peer's final loss, and the peer's time over its time.

    The ratio is 0 for a seed without such a training: "not even as fast". The summary is None if nothing was trained.
    """
    seeds = []
    for seed in sorted({note["seed"] for note in own}):
        tried = sorted((n for n in own if n["seed"] == seed and "loss" in n), key=lambda n: float(n["seconds"]))
        enough = next((note for note in tried if note["loss"] <= theirs["loss"]), None)
        ratio = theirs["seconds"] / enough["seconds"] if enough else 0.0
        points = [{name: note[name] for name in ("seconds", "loss", "bits_per_character")} for note in tried]
        seeds.append({"seed": seed, "ratio": ratio, "reached": enough and enough["seconds"], "tried": points})
    ratios = [seed["ratio"] for seed in seeds if seed["tried"]]
    found: dict[str, Any] = {"seeds": seeds, "median": None, "lowest": None, "highest": None}
    if ratios:
        found |= {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return found


def judged(start: Sequence[Note], rungs: Sequence[Note]) -> dict[str, Any]:
    """Mean and standard deviation of the start over its seeds, and each rung compared with them, best first."""
    losses = [note["loss"] for note in start if "loss" in note]
    mean = statistics.fmean(losses) if losses else None
    deviation = statistics.stdev(losses) if len(losses) > 1 else None
    rows = [_row(note, mean, deviation) for note in rungs]
    rows.sort(key=lambda row: row["loss"] if row["loss"] is not None else float("inf"))
    first = next((note for note in start if note["seed"] == 1 and "loss" in note), None)
    return {"mean": mean, "deviation": deviation, "seeds": len(losses), "first": first, "rungs": rows}


def _row(note: Note, mean: float | None, deviation: float | None) -> dict[str, Any]:
    row = {"rung": note["rungs"][-1], "loss": None, "verdict": f"refused: {note.get('refused')}"}
    if "loss" not in note:
        return row
    row |= {name: note[name] for name in ("loss", "accuracy", "bits_per_character", "steps", "tokens")}
    if mean is None or deviation is None:
        return row | {"verdict": "no seeds to judge by"}
    difference = note["loss"] - mean
    # The seeds of the start may agree to the last bit if nothing was learnt: then any difference counts.
    far = abs(difference) > DEVIATIONS * deviation
    verdict = ("won" if difference < 0 else "lost") if far else "within seeds"
    return row | {"difference": difference, "verdict": verdict}


def markdown(found: dict[str, Any]) -> str:
    """The report as a Markdown page."""
    setting = found["setting"]
    network, rungs = f"`{setting['kind']}` `{setting['size']}`", ", ".join(setting["on"]) or "no rung"
    about = f"{network}, {setting['threads']} threads; ours with {rungs}"
    return "\n\n".join([about, *_peer(found["peer"]), *_ours(found["peer"], found["ours"]), *_ladder(found["ladder"])])


def _peer(peer: dict[str, Any] | None) -> list[str]:
    if peer is None:
        return ["The peer has not been measured."]
    said = (
        f"Trainer at {peer['rate']:g}: {peer['loss']:.3f} nats after {peer['seconds'] / 60:.1f} minutes, "
        f"{peer['below_unigram']:.2f} below unigram ({peer['unigram']:.3f})."
    )
    if peer["void"]:
        said += f" **Void**: it did not learn {LEARNT:g} nat more than word frequencies, so no ratio means anything."
    rows = [(row["seconds"] / 60, row["loss"], row["bits_per_character"], row["tokens"] / 1e6) for row in peer["curve"]]
    lines = [f"| {minutes:.1f} | {loss:.3f} | {bits:.3f} | {tokens:.1f} |" for minutes, loss, bits, tokens in rows]
    return [said, _table("minutes | loss, nats | bits a character | M tokens", lines)]


def _ours(peer: dict[str, Any] | None, ours: dict[str, Any] | None) -> list[str]:
    if peer is None or ours is None or ours["median"] is None:
        return ["Ours has not been measured."]
    lines = []
    for seed in ours["seeds"]:
        tried = "; ".join(f"{point['seconds'] / 60:.1f}: {point['loss']:.3f}" for point in seed["tried"])
        reached = "never" if seed["reached"] is None else f"{seed['reached'] / 60:.1f}"
        lines.append(f"| {seed['seed']} | {tried} | {reached} | {seed['ratio']:.1f} |")
    said = (
        f"Ours to that loss: {ours['median']:.1f} times less time ({ours['lowest']:.1f} to {ours['highest']:.1f}, "
        f"{len(lines)} seeds; 0: in no training so far)."
    )
    if peer["void"]:
        said = f"Void, see above. {said}"
    return [said, _table("seed | minutes: loss | to the peer's loss | times less", lines)]


def _ladder(ladder: dict[str, Any]) -> list[str]:
    if ladder["mean"] is None:
        return ["The ladder has not been measured."]
    noise = "?" if ladder["deviation"] is None else f"{ladder['deviation']:.3f}"
    said = f"The start: {ladder['mean']:.3f} nats, standard deviation {noise} of {ladder['seeds']} seeds."
    return [said, _table("rung | loss | to the start | bits a character | steps | M tokens | verdict", _rungs(ladder))]


def _rungs(ladder: dict[str, Any]) -> list[str]:
    lines = []
    for row in ladder["rungs"]:
        if row["loss"] is None:
            lines.append(f"| {row['rung']} | | | | | | {row['verdict']} |")
            continue
        difference = f"{row['difference']:+.3f}" if "difference" in row else ""
        size = f"{row['bits_per_character']:.3f} | {row['steps']:,} | {row['tokens'] / 1e6:.1f}"
        lines.append(f"| {row['rung']} | {row['loss']:.3f} | {difference} | {size} | {row['verdict']} |")
    return lines


def _table(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"| {head} |", "|" + "---|" * (head.count("|") + 1), *lines])
