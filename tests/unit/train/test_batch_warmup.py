"""A global batch that grows: the same rows in the same order for any ranks, and lengths and counts that know it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from tests.conftest import Prepared
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.contradictions.sections import too_many_ranks
from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted
from bertwright.examples.batch import batch_hash
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.train.settings.phases import Phase, resolve_phases

Train = Callable[..., Artifact]
GROWTH = [[0, 2], [3, 5], [5, 8]]
PHASE: dict[str, Any] = {**PHASES[0], "batch_warmup": GROWTH, "micro_batch": 3}
ROWS = [2, 2, 2, 5, 5, *[8] * 7]


def phase_of(prepared: Prepared, **settings: Any) -> Phase:
    config = TrainConfig.model_validate({"phases": [{**PHASES[0], **settings}]})
    return resolve_phases(config, prepared.examples, prepared.vocab)[0]


def hashes(phase: Phase, step: int, world: int = 1) -> int:
    """The hash of a global batch: that of its rows, summed."""
    batches = [batch for rank in range(world) for batch in phase.loader.step(step, rank, world)]
    return sum(batch_hash(batch) for batch in batches if batch.counts.sequences) % 2**64


def test_steps_take_the_rows_one_after_the_other(prepared: Prepared) -> None:
    """Beside a phase that takes one row a step: none is skipped, and none comes twice."""
    growing, single = phase_of(prepared, batch_warmup=GROWTH), phase_of(prepared, batch=1, micro_batch=0)
    row = 0
    for step, size in enumerate(ROWS):
        assert hashes(growing, step) == sum(hashes(single, k) for k in range(row, row + size)) % 2**64
        row += size


@each_row("world", [2, 3])
def test_any_number_of_ranks_sees_the_same(prepared: Prepared, world: int) -> None:
    phase = phase_of(prepared, batch_warmup=GROWTH)
    for step in range(8):
        assert hashes(phase, step, world) == hashes(phase, step)
        counted = [phase.loader.counts(step, rank, world) for rank in range(world)]
        assert tuple(map(sum, zip(*counted, strict=True))) == phase.loader.counts(step)


def test_all_length_units_count_small_batches(prepared: Prepared) -> None:
    growth = {"batch_warmup": GROWTH, "steps": None}
    assert phase_of(prepared, **growth, samples=24).steps == 6
    assert phase_of(prepared, **growth, samples=25).steps == 7
    plain, one = phase_of(prepared, steps=None, epochs=1), phase_of(prepared, **growth, epochs=1)
    size = one.loader.examples.sizes[0]
    batches = one.loader.settings.batches
    assert batches.before(one.steps - 1) < size <= batches.before(one.steps) and one.steps > plain.steps
    tokens = phase_of(prepared, **growth, tokens=int(one.loader.examples.mean_tokens * 24))
    assert tokens.steps == 6


def test_growing_batches_resume_bit_identical(train: Train) -> None:
    undisturbed = train("undisturbed", phases=[PHASE], log_every=1)
    assert undisturbed.counts["sequences_seen"] == sum(ROWS)
    for row in (2, 4):
        with pytest.raises(Interrupted):
            train(f"run{row}", phases=[PHASE], log_every=1, log=Notes(kill_at_row=row))
        continued = train(f"run{row}", phases=[PHASE], log_every=1)
        assert same(weights(continued), weights(undisturbed))
        lines = [[{**line, "saved": None} for line in metric_lines(done.path)] for done in (continued, undisturbed)]
        assert lines[0] == lines[1]
    rows = [json.loads(line) for line in (undisturbed.path / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["tokens_seen"] < rows[-1]["tokens_seen"] - rows[-2]["tokens_seen"]


@each_row(
    ("growth", "said"),
    [
        ([[1, 2], [3, 8]], r"batch_warmup \[\[1, 2\], \[3, 8\]\] starts at step 1; give the size at step 0 first"),
        ([[0, 2], [3, 6]], r"ends with 6, but batch is 8; end it with \[STEP, 8\]"),
        ([[0, 4], [3, 2], [5, 8]], "does not grow; every pair must have a later step and a larger size"),
        ([[0, 4], [3, 6], [3, 8]], "does not grow"),
        ([[0, 0], [3, 8]], "does not grow"),
    ],
)
def test_what_is_no_growth_is_refused(growth: list[list[int]], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PhaseConfig.model_validate({**PHASES[0], "batch_warmup": growth})


def test_a_first_batch_smaller_than_the_ranks_is_refused() -> None:
    train = TrainConfig.model_validate({"phases": [{**PHASES[0], "micro_batch": 0, "batch_warmup": GROWTH}]})
    ((key, said),) = too_many_ranks(train, 3)
    assert (
        key == "train.phases.0.batch_warmup"
        and said == "starts with 2, fewer than 3 ranks; raise it or use fewer ranks"
    )
    assert not list(too_many_ranks(train, 2))
