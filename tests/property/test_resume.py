"""The resume theorem, property-tested: see docs/resume.md.

The examples of step k are a function of (artifact, settings, k). So a run that is killed anywhere, goes on with another
number of ranks and repacks its micro-batches shows the model the same rows under the same masks, step for step.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.examples import made

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.examples.config import MaskingConfig, MicroBatching
from bertwright.examples.loader import Loader, LoaderSettings
from bertwright.examples.planned import open_loader

GLOBAL_BATCH = 37  # divides neither the epochs nor the numbers of ranks
STEPS = 60  # several epochs: the smallest has a few hundred rows

Step = Counter[tuple[bytes, bytes, bytes, int]]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return made.examples(tmp_path_factory.mktemp("resume"))


@cache
def loader(path: Path, batching: MicroBatching, phase: int) -> Loader:
    """A process's own view: opened afresh for every packing."""
    plan_set = made.SETS[phase]
    chosen = LoaderSettings(
        plan_set.length,
        MaskingConfig(max_predictions=8),
        GLOBAL_BATCH,
        batching,
        seed=5,
        phase=f"phase {phase}",
    )
    return open_loader(open_artifact(path), plan_set, chosen)


@cache
def undisturbed(path: Path, phase: int, step: int) -> Step:
    """The step on one rank that was never stopped, in one micro-batch."""
    return rows(loader(path, MicroBatching(GLOBAL_BATCH), phase), step, 1)


def rows(drawn: Loader, step: int, world: int) -> Step:
    return Counter(
        row for rank in range(world) for batch in drawn.step(step, rank, world) for row in made.rows_of(batch)
    )


batchings = st.one_of(
    st.builds(MicroBatching, st.integers(1, 40)),
    st.builds(MicroBatching, st.integers(1, 40), row_tokens=st.integers(64, 100)),
    st.builds(MicroBatching, st.just(1), micro_tokens=st.integers(64, 400)),
)
lives = st.lists(
    st.tuples(
        st.integers(1, 12),  # steps until this life is killed
        st.integers(0, 3),  # steps it had done since the last checkpoint, done again by the next life
        st.integers(1, 4),  # ranks
        batchings,
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25, derandomize=True)
@given(phase=st.integers(0, 2), start=st.integers(0, STEPS), lives=lives)
def test_killed_reranked_and_repacked_runs_see_the_same_rows(
    artifact: Artifact, phase: int, start: int, lives: list[tuple[int, int, int, MicroBatching]]
) -> None:
    seen: dict[int, Step] = {}
    step = start
    for length, lost, world, batching in lives:
        drawn = loader(artifact.path, batching, phase)
        for k in range(step, step + length):
            again = rows(drawn, k, world)
            assert seen.setdefault(k, again) == again, f"step {k} differs when done again"
        step += max(0, length - lost)
    for k, found in seen.items():
        assert found == undisturbed(artifact.path, phase, k), f"step {k} differs from the undisturbed run"
        assert found.total() == GLOBAL_BATCH


@settings(max_examples=25, derandomize=True)
@given(step=st.integers(0, 10**6), world=st.integers(1, 4), batching=batchings)
def test_ranks_agree_without_talking(artifact: Artifact, step: int, world: int, batching: MicroBatching) -> None:
    drawn = loader(artifact.path, batching, 0)
    ranks = [drawn.step(step, rank, world) for rank in range(world)]
    assert len({len(batches) for batches in ranks}) == 1
    counted = [drawn.counts(step, rank, world) for rank in range(world)]
    assert tuple(map(sum, zip(*counted, strict=True))) == drawn.counts(step)
    assert sum(b.counts.predictions for batches in ranks for b in batches) == drawn.counts(step)[0]


def test_consecutive_steps_are_different_rows(artifact: Artifact) -> None:
    """The theorem would hold for a draw that always gives the same step."""
    steps = [undisturbed(artifact.path, 0, k) for k in range(8)]
    assert all((a & b).total() <= 2 for i, a in enumerate(steps) for b in steps[:i])
