"""The plans of the held-out documents, made when the parts of all shards are joined.

A shard holds few held-out documents, often one alone. With partners from its own shard only, that one would be paired
with itself, and hardly a pair would be random: another task than the one trained on. So random partners come from all
held-out documents, of whatever shards. One pass over one document in a hundred takes no time worth sharing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.files import make_folder, read_json, write_json
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.store import Documents, map_file
from bertwright.examples.tally import Tally
from bertwright.examples.walk import plan_passes

TOGETHER = 1 << 26
"""Tokens from which on a group of shards is large enough: it bounds memory, and starts fit the 32 bits of a row."""


def plan_heldout(draft: Path, lengths: Sequence[int], config: ExamplesConfig) -> dict[str, Any]:
    """Write a plan of one pass for each of `lengths` over `store/heldout.*` in `draft`; `rows` and `sequences` by set.

    What the store calls its shards become the groups of corpus shards that are planned together.
    """
    store, facts = draft / "store", read_json(draft / "store" / "heldout.json")
    groups = _groups(facts["shards"], config)
    names = {PlanSet(length=length).name: Tally(length) for length in lengths}
    rows: dict[str, list[int]] = {name: [] for name in names}
    for documents in _documents(store, groups):
        everything = np.ones(len(documents.hashes), np.bool_)
        for (name, tally), length in zip(names.items(), lengths, strict=True):
            (plan,) = plan_passes(documents, everything, length, config, 1)
            with (make_folder(draft / "plans" / "heldout" / name) / "00.rows").open(
                "ab" if rows[name] else "wb"
            ) as out:
                out.write(plan.tobytes())
            rows[name].append(len(plan))
            tally.add(plan)
    for name, counts in rows.items():
        write_json(draft / "plans" / "heldout" / f"{name}.json", {"rows": [counts]})
    write_json(store / "heldout.json", {**facts, "shards": groups})
    return {
        "rows": {name: [sum(counts)] for name, counts in rows.items()},
        "sequences": {name: tally.counts() for name, tally in names.items()},
    }


def _groups(shards: Sequence[dict[str, int]], config: ExamplesConfig) -> list[dict[str, int]]:
    """Neighbouring shards whose documents are partners of each other, as the sums of their counts.

    Only random segments ask for partners; where none are drawn, shards stay alone, as in training. What is left over
    at the end joins the group before: it might be a single document.
    """
    if config.plan != "next-sentence":
        return list(shards)
    groups: list[dict[str, int]] = [{}]
    for shard in shards:
        if groups[-1].get("tokens", 0) >= TOGETHER:
            groups.append({})
        groups[-1] = _sum(groups[-1], shard)
    if len(groups) > 1 and groups[-1]["tokens"] < TOGETHER:
        groups[-2:] = [_sum(*groups[-2:])]
    return groups


def _sum(group: dict[str, int], shard: dict[str, int]) -> dict[str, int]:
    return {name: group.get(name, 0) + count for name, count in shard.items()}


def _documents(store: Path, groups: Sequence[dict[str, int]]) -> Iterator[Documents]:
    """The documents of each group, without their text."""
    sentences, hashes = map_file(store / "heldout.sentences", "<u2"), map_file(store / "heldout.hashes", "<u8")
    bounds = map_file(store / "heldout.documents", "<u8")
    sentence = document = 0
    for group in groups:
        ends = sentence + group["sentences"], document + group["documents"]
        first = bounds[document : ends[1] + 1] - np.uint64(sentence)
        yield Documents(np.zeros(0, np.uint16), sentences[sentence : ends[0]], first, hashes[document : ends[1]])
        sentence, document = ends
