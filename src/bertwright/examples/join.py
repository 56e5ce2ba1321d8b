"""Joins the parts of all shards, in shard order, into the files of the artifact."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import make_folder, naming, read_bytes, write_json
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.frequencies import unigram_loss
from bertwright.examples.heldout import plan_heldout
from bertwright.examples.plans import ROW, PlanStatistics
from bertwright.examples.store import SPLITS, Split

Facts = Mapping[int, dict[str, Any]]
"""The counts of each part, by part number."""
Kept = Callable[[int, NDArray[np.void]], NDArray[np.void]]
"""`kept(number, rows)` returns the rows of a part that go into the plans."""


def join(
    draft: Path,
    parts: Path,
    facts: list[dict[str, Any]],
    sets: Sequence[PlanSet],
    config: ExamplesConfig,
    vocabulary_size: int,
) -> dict[str, Any]:
    """Write `store/` and `plans/` from `parts`; `facts` are the counts by shard. Returns the total counts."""
    counts: dict[str, Any] = {"documents": sum(shard[split]["documents"] for shard in facts for split in SPLITS)}
    of_split = {split: {number: shard[split] for number, shard in enumerate(facts)} for split in SPLITS}
    lengths = {plan_set.name: plan_set.length for plan_set in sets}
    counts["train"] = join_split(draft, parts, "train", of_split["train"], lengths)
    join_store(draft / "store", parts / "heldout", "heldout", of_split["heldout"])
    counts["heldout"] = {
        **totals(of_split["heldout"]),
        **plan_heldout(draft, sorted(set(lengths.values())), config),
        "unigram_loss": unigram_loss(draft / "store", vocabulary_size),
    }
    return counts


def join_split(
    folder: Path,
    parts: Path,
    split: Split,
    shards: Facts,
    lengths: Mapping[str, int],
    kept: Kept = lambda _, rows: rows,
) -> dict[str, Any]:
    """Write the store and plans of a split into `folder` from its parts; returns the counts.

    `shards` are the counts of the parts to join, `lengths` the maximum example length of each set by name.
    """
    join_store(make_folder(folder / "store"), parts / split, split, shards)
    plans = folder / "plans" / split
    tallies = {name: PlanStatistics(length) for name, length in lengths.items()}
    rows = {name: _join_plans(plans, parts / split, name, shards, kept, tally) for name, tally in tallies.items()}
    return {**totals(shards), "rows": rows, "sequences": {name: tally.counts() for name, tally in tallies.items()}}


def totals(shards: Facts) -> dict[str, int]:
    """Total documents, sentences and tokens of all parts."""
    return {name: sum(shard[name] for shard in shards.values()) for name in ("documents", "sentences", "tokens")}


def join_store(store: Path, parts: Path, split: Split, shards: Facts) -> None:
    """Write the files of a split into the folder `store` from its parts in the folder `parts`."""
    for name in ("tokens", "sentences", "hashes"):
        concatenate(store / f"{split}.{name}", [parts / f"{number:05}.{name}" for number in shards])
    for name, unit in (("documents", "sentences"), ("starts", "tokens")):
        first = 0
        with (store / f"{split}.{name}").open("wb") as target:
            for number, shard in shards.items():
                own = np.frombuffer(read_bytes(parts / f"{number:05}.{name}"), "<u8")
                # The last offset of a part equals the first of the next one; the final one is written after the loop.
                target.write((own[:-1] + np.uint64(first)).tobytes())
                first += shard[unit]
            target.write(np.array([first], "<u8").tobytes())
    facts = [{name: shard[name] for name in ("tokens", "sentences", "documents")} for shard in shards.values()]
    write_json(store / f"{split}.json", {"dtype": next(iter(shards.values()))["dtype"], "shards": facts})


def join_sources(store: Path, parts: Path, names: Sequence[str], shards: int) -> list[dict[str, Any]]:
    """Write `heldout.sources` into the folder `store` from the parts of all `shards`; returns the name and the number
    of held-out documents of each source."""
    target = store / "heldout.sources"
    concatenate(target, [parts / f"{number:05}.sources" for number in range(shards)])
    documents = np.bincount(np.frombuffer(read_bytes(target), "<u2"), minlength=len(names))
    return [{"name": name, "documents": int(count)} for name, count in zip(names, documents, strict=True)]


def _join_plans(plans: Path, parts: Path, name: str, shards: Facts, kept: Kept, tally: PlanStatistics) -> list[int]:
    """Regroup rows by pass: parts hold all passes of a shard, plans all shards of a pass. Returns rows per pass."""
    part_rows = {shard: facts["rows"][name] for shard, facts in shards.items()}
    rows = np.zeros((len(next(iter(part_rows.values()))), len(part_rows)), np.int64)
    make_folder(plans / name)
    # A part is reopened for each pass: kept open, the parts of a large corpus would exceed the usual limit of 1,024
    # open files.
    for number, of_pass in enumerate(rows):
        with (plans / name / f"{number:02}.rows").open("wb") as target:
            for column, (shard, counts) in enumerate(part_rows.items()):
                part = kept(shard, _rows_of_pass(parts / name / f"{shard:05}.rows", counts, number))
                target.write(part.tobytes())
                # Counted after filtering: `kept` removes the rows of held-out documents.
                of_pass[column] = len(part)
                tally.add(part)
    write_json(plans / f"{name}.json", {"rows": rows.tolist()})
    return [int(total) for total in rows.sum(axis=1)]


def _rows_of_pass(path: Path, counts: list[int], number: int) -> NDArray[np.void]:
    with naming(path), path.open("rb") as handle:
        handle.seek(sum(counts[:number]) * ROW.itemsize)
        return np.frombuffer(handle.read(counts[number] * ROW.itemsize), ROW)


def concatenate(target: Path, sources: Iterable[Path]) -> None:
    """Write the bytes of all `sources` into `target`, concatenated."""
    with target.open("wb") as out:
        for source in sources:
            with naming(source), source.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
