"""The held-out documents of all shards: their plans, built when the parts of the shards are joined, and a rule by which
neither split is empty.

A shard holds few held-out documents, often only one. With partners from its own shard only, that document would be
paired with itself and hardly any pair would be random: a different task from training. So random partners come from the
held-out documents of all shards. One pass over 1 % of the documents is too cheap to be worth distributing.

Membership is decided shard by shard, so an empty split is known only once all shards are prepared. Then one shard is
prepared again: a small corpus holds out the document that a larger share would select first, or trains on the one that
a smaller share would leave first. A corpus of one document is split: its last tenth is held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_bytes, read_json, write_json
from bertwright.core.task_records import read_done
from bertwright.corpus.heldout import heldout_place
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.plans import ROW, UNLABELLED, PlanStatistics
from bertwright.examples.shard import ShardTask, prepare_shard
from bertwright.examples.store import SPLITS, Documents, Split, map_file

TOGETHER = 1 << 26
"""Minimum tokens of a group of shards: bounds memory, and token offsets fit the 32 bits of a row."""


Group = dict[str, int]
"""The counts of neighbouring held-out shards that are planned together; a group becomes one shard of the store."""


def plan_heldout(draft: Path, lengths: Sequence[int], config: ExamplesConfig) -> dict[str, Any]:
    """Write a one-pass plan for each of `lengths` over `store/heldout.*` in `draft`; returns `rows` and `sequences`.

    Afterwards the shards of the store are the groups of corpus shards that were planned together.
    """
    groups = neighbours(read_json(draft / "store" / "heldout.json")["shards"], config)
    documents = documents_of_groups(draft / "store", groups)
    plans = ({length: plan_once(of_group, length, config) for length in lengths} for of_group in documents)
    return write_heldout_plans(draft, lengths, groups, plans)


def write_heldout_plans(
    draft: Path, lengths: Sequence[int], groups: Sequence[Group], planned: Iterable[Mapping[int, NDArray[np.void]]]
) -> dict[str, Any]:
    """Write the `planned` rows of each group, [R] `ROW` by length, as the held-out plans of `lengths` in `draft`, and
    the groups as the shards of its store.

    Returns `rows` and `sequences` by set. A length that a group lacks has no rows there.
    """
    names = {PlanSet(length=length).name: PlanStatistics(length) for length in lengths}
    rows: dict[str, list[int]] = {name: [] for name in names}
    for plans in planned:
        for (name, tally), length in zip(names.items(), lengths, strict=True):
            plan = plans.get(length, np.zeros(0, ROW))
            # The first group overwrites: an interrupted run may have left rows.
            with (make_folder(draft / "plans" / "heldout" / name) / "00.rows").open(
                "ab" if rows[name] else "wb"
            ) as out:
                out.write(plan.tobytes())
            rows[name].append(len(plan))
            tally.add(plan)
    for name, counts in rows.items():
        write_json(draft / "plans" / "heldout" / f"{name}.json", {"rows": [counts]})
    facts = draft / "store" / "heldout.json"
    # Row offsets are relative to the first token of the group, so loaders must see the groups as shards.
    write_json(facts, {**read_json(facts), "shards": groups})
    return {
        "rows": {name: [sum(counts)] for name, counts in rows.items()},
        "sequences": {name: tally.counts() for name, tally in names.items()},
    }


def plan_once(documents: Documents, length: int, config: ExamplesConfig) -> NDArray[np.void]:
    """[R] `ROW`: the rows of one pass over all `documents`.

    If there is only one document, its next-sentence pairs get no label: every second segment comes from the document
    itself, so no pair would be random, and scores would measure a different task from training.
    """
    (plan,) = plan_passes(documents, np.ones(len(documents.hashes), np.bool_), length, config, 1)
    if config.plan == "next-sentence" and len(documents.hashes) == 1:
        plan["label"] = UNLABELLED
    return plan


def neighbours(shards: Sequence[Group], config: ExamplesConfig) -> list[Group]:
    """Group neighbouring shards that draw random partners from each other; a group is the sum of their counts.

    Only random segments need partners; plans without them keep shards separate, as in training. A remainder at the end
    joins the preceding group, because it might be a single document.
    """
    if config.plan != "next-sentence":
        return list(shards)
    groups: list[Group] = [{}]
    for shard in shards:
        if groups[-1].get("tokens", 0) >= TOGETHER:
            groups.append({})
        groups[-1] = _sum(groups[-1], shard)
    if len(groups) > 1 and groups[-1]["tokens"] < TOGETHER:
        groups[-2:] = [_sum(*groups[-2:])]
    return groups


def _sum(group: Group, shard: Group) -> Group:
    return {name: group.get(name, 0) + count for name, count in shard.items()}


def documents_of_groups(store: Path, groups: Sequence[Group]) -> Iterator[Documents]:
    """Yield the documents of each group, without their tokens."""
    sentences, hashes = map_file(store / "heldout.sentences", "<u2"), map_file(store / "heldout.hashes", "<u8")
    bounds = map_file(store / "heldout.documents", "<u8")
    sentence = document = 0
    for group in groups:
        ends = sentence + group["sentences"], document + group["documents"]
        first = bounds[document : ends[1] + 1] - np.uint64(sentence)
        # Plans need only the sentence lengths.
        yield Documents(np.zeros(0, np.uint16), sentences[sentence : ends[0]], first, hashes[document : ends[1]])
        sentence, document = ends


def hold_one_out(tasks: Sequence[ShardTask]) -> str:
    """Ensure that both splits have at least one document, given the finished tasks of all shards.

    Returns a message for the user if the requested share put all documents into one split, else "". A run that was
    interrupted here produces the same result and the same message when it resumes.
    """
    facts = [read_done(task.facts) for task in tasks]
    documents = {split: sum(shard[split]["documents"] for shard in facts) for split in SPLITS}
    full = [split for split in SPLITS if documents[split]]
    if len(full) == 1:
        filled = [task for task, shard in zip(tasks, facts, strict=True) if shard[full[0]]["documents"]]
        _move_one(filled, full[0], documents[full[0]])
    return _what_was_moved(tasks)


def _move_one(tasks: Sequence[ShardTask], split: Split, documents: int) -> None:
    """Prepare the shard with the document to move out of `split` again; `tasks` are those of shards with documents,
    all of which are in this split."""
    places = [heldout_place(_hashes(task, split)) for task in tasks]
    # Held-out documents are strictly below the share.
    if split == "train":
        lowest, first = min((float(of_shard.min()), i) for i, of_shard in enumerate(places))
        share = float(np.nextafter(lowest, 1.0))
    else:
        share, first = max((float(of_shard.max()), i) for i, of_shard in enumerate(places))
    task = tasks[first]
    if documents == 1 and read_done(task.facts)[split]["sentences"] < 2:
        raise DataError(
            "the corpus is one document of one sentence, but both text to train on and text to score are needed. Add "
            "text to corpus.source."
        )
    task.facts.unlink()  # before the parts change, so that an interrupted run prepares the shard again
    prepare_shard(replace(task, config=task.config.model_copy(update={"heldout": share}), cut=documents == 1))


def _what_was_moved(tasks: Sequence[ShardTask]) -> str:
    # Read from the files, so that an interrupted run prints the same message when it resumes.
    held, kept = (np.concatenate([_hashes(task, split) for task in tasks]) for split in ("heldout", "train"))
    share, number = tasks[0].config.heldout, len(held) + len(kept)
    if len(held) == len(kept) == 1 and kept[0] == held[0]:
        return (
            "the corpus is one document: its last tenth is held out, and the rest is used for training; the scores "
            "will not be meaningful"
        )
    # Otherwise the regular rule put the document there, and there is nothing to report.
    if len(held) == 1 and heldout_place(held)[0] >= share:
        return (
            f"no document of {number:,} fell into the held-out share examples.heldout={share:g}; one document is "
            "held out anyway"
        )
    if len(kept) == 1 and heldout_place(kept)[0] < share:
        return (
            f"all {number:,} documents fell into the held-out share examples.heldout={share:g}; one document is used "
            "for training anyway"
        )
    return ""


def _hashes(task: ShardTask, split: Split) -> NDArray[np.uint64]:
    return np.frombuffer(read_bytes(task.parts / split / f"{task.number:05}.hashes"), "<u8")
