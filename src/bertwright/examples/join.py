"""The parts of all shards, joined in shard order into the files of the artifact."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.files import make_folder, write_json
from bertwright.examples.rows import ROW
from bertwright.examples.store import SPLITS


def join(draft: Path, parts: Path, facts: list[dict[str, Any]]) -> dict[str, Any]:
    """Write `store/` and `plans/` from `parts`; `facts` are the shards' counts. Returns the counts of the whole."""
    counts: dict[str, Any] = {"documents": sum(shard[split]["documents"] for shard in facts for split in SPLITS)}
    make_folder(draft / "store")
    for split in SPLITS:
        shards = [shard[split] for shard in facts]
        _join_store(draft / "store", parts / split, split, shards)
        rows = {name: _join_plans(draft / "plans" / split, parts / split, name, shards) for name in shards[0]["rows"]}
        totals = {name: sum(shard[name] for shard in shards) for name in ("documents", "sentences", "tokens")}
        counts[split] = {**totals, "rows": rows}
    return counts


def _join_store(store: Path, parts: Path, split: str, shards: list[dict[str, Any]]) -> None:
    for name in ("tokens", "sentences", "hashes"):
        concatenate(store / f"{split}.{name}", [parts / f"{number:05}.{name}" for number in range(len(shards))])
    for name, unit in (("documents", "sentences"), ("starts", "tokens")):
        first = 0
        with (store / f"{split}.{name}").open("wb") as target:
            for number, shard in enumerate(shards):
                target.write((np.fromfile(parts / f"{number:05}.{name}", "<u8")[:-1] + np.uint64(first)).tobytes())
                first += shard[unit]
            target.write(np.array([first], "<u8").tobytes())
    facts = [{name: shard[name] for name in ("tokens", "sentences", "documents")} for shard in shards]
    write_json(store / f"{split}.json", {"dtype": shards[0]["dtype"], "shards": facts})


def _join_plans(plans: Path, parts: Path, name: str, shards: list[dict[str, Any]]) -> list[int]:
    """Parts hold all passes of a shard; plans hold all shards of a pass. Returns the rows of each pass."""
    rows = np.array([shard["rows"][name] for shard in shards], np.int64)
    make_folder(plans / name)
    for number in range(rows.shape[1]):
        with (plans / name / f"{number:02}.rows").open("wb") as target:
            for shard, counts in enumerate(rows):
                before = int(counts[:number].sum()) * ROW.itemsize
                part = np.fromfile(parts / name / f"{shard:05}.rows", ROW, count=int(counts[number]), offset=before)
                target.write(part.tobytes())
    write_json(plans / f"{name}.json", {"rows": rows.T.tolist()})
    return [int(total) for total in rows.sum(axis=0)]


def concatenate(target: Path, sources: Iterable[Path]) -> None:
    """Write the bytes of all `sources`, one after another."""
    with target.open("wb") as out:
        for source in sources:
            with source.open("rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)
