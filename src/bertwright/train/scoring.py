"""Scoring during training: the held-out batches of a phase, always the same ones with the same masks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch

from bertwright.model.batch import PackedBatch, packed
from bertwright.objectives.objective import judged_by
from bertwright.objectives.scores import score_sums, scores_of
from bertwright.train.checkpoint import State
from bertwright.train.phases import Phase
from bertwright.train.session import Session


def score_heldout(session: Session, phase: Phase, state: State) -> tuple[State, Mapping[str, float | None]]:
    """The state with the held-out scores that are numbers, and all of them; all ranks together.

    Each rank scores its share of the batches. Their sums are added in the order of the batches, so the scores are the
    same to the last bit for any number of ranks.
    """
    began, trained = time.perf_counter(), session.trained
    rank, world = trained.ranks.rank, trained.ranks.world
    batches = phase.heldout()
    sums = torch.zeros(len(batches), len(trained.objective.counted), 3, dtype=torch.float64)
    mine = score_sums(trained.objective, trained.model, _batches(session, phase, rank, world))
    sums[rank::world] = torch.stack(mine) if mine else sums[rank::world]
    trained.ranks.sum_in_place([sums])
    scores = scores_of(trained.objective, sums)
    session.forecast.scored(phase, time.perf_counter() - began)
    finite = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
    return replace(state, heldout=finite if judged_by(trained.objective) in finite else {}), scores


def _batches(session: Session, phase: Phase, rank: int, world: int) -> Iterator[PackedBatch]:
    """The rank's held-out batches, telling how far scoring is."""
    batches = phase.heldout()
    for number, batch in enumerate(batches):
        session.progress("scoring", number, len(batches), "batches")
        if number % world == rank:
            yield packed(batch, session.trained.device)
    session.progress("scoring", len(batches), len(batches), "batches")
