"""Check without torch whether a teacher has the run's vocabulary, and estimate the memory that it adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.verdict import Verdict, ok, raised, warning
from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import BertwrightError
from bertwright.model.config import NetworkConfig
from bertwright.objectives.config import DistillationConfig
from bertwright.objectives.teacher_config import check_vocabulary, read_teacher
from bertwright.recipe import Recipe
from bertwright.train.phase_config import PhaseConfig
from bertwright.train.sizes import share_of

_KEY = "train.objective.teacher"


def teacher(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on whether the teacher of a pending training has the vocabulary of the run folder `out`.

    Whether it matches the network is checked on the recipe itself (`contradictions`).
    """
    if "train" not in stages or not isinstance(recipe.train.objective, DistillationConfig):
        return
    try:
        found = read_teacher(recipe.train.objective.teacher)
        known = (out / "vocab" / MANIFEST).is_file() and "vocab" not in stages
        if known:
            check_vocabulary(found, open_artifact(out / "vocab", "vocab"))
    except BertwrightError as cause:
        yield raised(_KEY, cause)
        return
    what = f"{found.path}: {found.network.title}, {found.network.parameters:,} parameters"
    if known or recipe.vocab.file is not None:
        yield ok(_KEY, f"{what}, with the vocabulary of this run")
    else:
        # Known only once the vocabulary is trained: after the corpus, which may take hours.
        text = f"{what}; the vocabulary of this run is not trained yet, and must then be identical to the teacher's."
        yield warning(
            _KEY, text, f"Set vocab.file={found.folder / 'vocab.txt'}, with the text settings it was made with."
        )


def teacher_bytes(recipe: Recipe, network: NetworkConfig, phase: PhaseConfig, ranks: int = 1) -> float:
    """Return the approximate bytes that a teacher adds on each rank in a phase; 0 without a teacher.

    4 bytes a parameter; one layer of states during its forward pass, none of which is kept for a backward pass; and for
    each prediction its logits and the gradient of the soft term.
    """
    objective = recipe.train.objective
    if not isinstance(objective, DistillationConfig):
        return 0.0
    try:
        theirs = read_teacher(objective.teacher).network
    except BertwrightError:
        return 0.0  # another verdict reports it
    share = share_of(phase, ranks)
    # `auto` is rejected with a teacher.
    sequences = share if phase.micro_batch == "auto" else min(phase.micro_batch or share, share)
    tokens = phase.micro_tokens or sequences * phase.length
    predictions = phase.masking.most(phase.length) * tokens / phase.length
    layer = tokens * (2 * theirs.intermediate_size + 8 * theirs.hidden_size)
    return 4.0 * (theirs.parameters + layer + predictions * (theirs.vocab_size + network.vocab_size))
