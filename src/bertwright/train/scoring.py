"""Scoring during training: the held-out batches of a phase, always the same ones with the same masks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bertwright.model.batch import PackedBatch, packed
from bertwright.objectives.objective import judged_by
from bertwright.objectives.scores import score
from bertwright.train.checkpoint import State
from bertwright.train.phases import Phase
from bertwright.train.session import Session


def score_heldout(session: Session, phase: Phase, state: State) -> tuple[State, Mapping[str, float | None]]:
    """The state with the held-out scores that are numbers, and all of them."""
    began, objective = time.perf_counter(), session.trained.objective
    scores = score(objective, session.trained.model, _batches(session, phase))
    session.forecast.scored(phase, time.perf_counter() - began)
    finite = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
    return replace(state, heldout=finite if judged_by(objective) in finite else {}), scores


def _batches(session: Session, phase: Phase) -> Iterator[PackedBatch]:
    """The held-out batches, telling how far scoring is."""
    batches = phase.heldout()
    for number, batch in enumerate(batches):
        session.progress("scoring", number, len(batches), "batches")
        if batch.counts.sequences:
            yield packed(batch, session.device)
    session.progress("scoring", len(batches), len(batches), "batches")
