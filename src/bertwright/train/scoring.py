"""Held-out scores during training, computed by all ranks together, and at the end the choice between
averaged and last weights."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bertwright.model.batch import PackedBatch
from bertwright.tasks.objective import (
    Recorded,
    ScoredObjective,
    Scores,
    judged_by,
    rows_of,
    score_sums,
    scores_of,
)
from bertwright.train.averaging.config import AveragingConfig, NoAveragingConfig
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.session import Session
from bertwright.train.settings.phases import Phase
from bertwright.train.state import State


class ScoringStopped(Exception):
    """A rank was requested to stop before everything was scored."""


def score_heldout(
    session: Session, phase: Phase, state: State, may_stop: bool = False
) -> tuple[State, Mapping[str, float | None]]:
    """Return the state with the finite held-out scores, and all scores; all ranks must call this together.

    Each rank scores its share of the batches. Their sums are added in batch order, so the scores are bit-identical for
    any number of ranks. With `may_stop`, raises `ScoringStopped` on all ranks when one of them is requested to stop:
    scoring may take longer than a scheduler or a cloud waits before it ends the process.
    """
    began, trainee = time.perf_counter(), session.trainee
    rank, world = trainee.ranks.rank, trainee.ranks.world
    batches = phase.heldout()
    # A slot per batch, not a total per rank: floating-point sums depend on the order of addition.
    sums = torch.zeros(len(batches), len(trainee.objective.counted), 3, dtype=torch.float64)
    objective, network = trainee.objective, trainee.network()
    scored = objective if isinstance(objective, ScoredObjective) and phase.own_heldout else None
    recorded = Recorded(network, scored.rows) if scored else None
    with trainee.precision.forward():
        own_sums = score_sums(objective, recorded or network, _batches(session, phase, may_stop))
    own = len(range(rank, len(batches), world))
    if own:
        sums[rank::world] = torch.stack(own_sums[:own])
    trainee.ranks.all_reduce([sums])
    scores = scores_of(objective, sums)
    # JSON has no NaN, and a checkpoint must not count as the best one because its score is not a number.
    finite = {name: value for name, value in scores.items() if value is not None and math.isfinite(value)}
    state = replace(state, heldout=finite if judged_by(objective) in finite else {})
    if scored and recorded:
        scores |= _score_answers(trainee.ranks, scored, phase, recorded.logits)
    session.monitor.forecast.record_scoring(phase, time.perf_counter() - began)
    return state, scores


def _score_answers(ranks: Ranks, objective: ScoredObjective, phase: Phase, own: Sequence[Tensor]) -> Scores:
    """The scores of the answers to all held-out batches, from this rank's logits; the same on all ranks."""
    assert phase.own_heldout is not None
    batches = phase.heldout()
    rows = [rows_of(batch, objective.rows) for batch in batches]
    # A rank without a batch does not know the number of logits.
    logits = torch.zeros(sum(rows), max(ranks.each(own[0].shape[1] if own else 0)), dtype=torch.float64)
    # Each row is added to zeros, so its sum over the ranks is exact.
    for whole, part in zip(torch.split(logits, rows)[ranks.rank :: ranks.world], own, strict=False):
        whole.copy_(part)
    ranks.all_reduce([logits])
    return objective.score([part.numpy() for part in torch.split(logits, rows)], batches, phase.own_heldout())


@dataclass(frozen=True)
class Chosen:
    """The weights that become the finished model, which the network holds."""

    state: State
    """The state at the end, with the scores of these weights."""
    averaging: Mapping[str, Any] | None = None
    """The comparison of the average with the last weights, for the manifest; None if there is no average."""


def choose_weights(session: Session, phase: Phase, state: State, config: AveragingConfig) -> Chosen:
    """Compare the averaged weights with the last ones, whose scores `state` has, on held-out data, and leave in the
    network those that become the finished model (`averaging.keep`).

    Those are the last weights if no average is kept or, with a log message, if training ended before it began.
    """
    average = session.trainee.averaging.average() if session.trainee.averaging else {}
    if not average or session.trainee.averaging is None or isinstance(config, NoAveragingConfig):
        if session.trainee.averaging:
            session.monitor.log.say(
                "train: no average of the weights was made, because training ended before its first step: the model "
                "has the last weights"
            )
        return Chosen(state)
    model = session.trainee.model
    last = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(average)
    averaged, _ = score_heldout(session, phase, state)
    better = "average" if _lower(averaged.judged, state.judged) else "last"
    kept = better if config.keep == "better" else "average"
    if kept == "last":
        model.load_state_dict(last)
    described = session.trainee.averaging.description()
    comparison = f"{judged_by(session.trainee.objective)} {_loss(averaged)} and the last weights {_loss(state)}"
    remedy = "" if kept == better else "; with train.averaging.keep=better it would have the last weights"
    session.monitor.log.say(
        f"train: on held-out data, the average of the weights ({described}) scores {comparison}: the model has the "
        f"{'average' if kept == 'average' else 'last weights'}{remedy}"
    )
    facts = {
        "kind": config.kind,
        "description": described,
        "heldout": dict(averaged.heldout),
        "trained_heldout": dict(state.heldout),
        "better": better,
        "kept": kept,
    }
    return Chosen(averaged if kept == "average" else state, facts)


def _lower(loss: float | None, other: float | None) -> bool:
    """Whether a held-out loss is the lower one; None is a loss that is not a number."""
    return loss is not None and (other is None or loss <= other)


def _loss(state: State) -> str:
    return "NaN" if state.judged is None else f"{state.judged:.3f}"


def _batches(session: Session, phase: Phase, may_stop: bool) -> Iterator[PackedBatch]:
    """Yield this rank's held-out batches, reporting progress. If all ranks must make the same number of forward passes
    and another rank has one more, yield an extra batch at the end."""
    batches, ranks = phase.heldout(), session.trainee.ranks
    rank, world = ranks.rank, ranks.world
    for number, batch in enumerate(batches):
        session.monitor.progress("scoring", number, len(batches), "batches")
        # Once for every batch of rank 0: all ranks count to the same number, also those without a last batch.
        if may_stop and number % world == 0 and ranks.any(session.requests.to_stop()):
            raise ScoringStopped
        if number % world == rank:
            yield session.trainee.read(batch, phase.heldout_shape)
    if not session.trainee.engine.has_full_weights and 0 < len(batches) % world <= rank:
        yield session.trainee.read(batches[-1], phase.heldout_shape)
    session.monitor.progress("scoring", len(batches), len(batches), "batches")
