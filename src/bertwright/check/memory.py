"""How much memory a run takes, by rules right within a factor of two, and whether the machine has it.

Training, in float32: 20 bytes a parameter (weight, gradient, two moments, scratch of the optimizer); for each token of
a micro-batch and layer what backward needs: twice the inner width and 8 times the hidden width, 2.5 more with
dropout, 4 more with the padded kernel, one more and three numbers a head and token of the sequence with attention
dropout; for each prediction three rows of logits; and 0.4 GB for torch. Other stages: 0.25 GB a worker, and 0.7 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.check.machine import gpu_memory, memory_size, torch_build
from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.errors import DataError
from bertwright.core.tasks import default_workers
from bertwright.model.config import NetworkConfig
from bertwright.recipe import Recipe
from bertwright.train.config import PhaseConfig

DOUBT = 2
"""By how much the rules may be wrong: beyond it a run is refused, within it a warning is given."""
_TORCH, _WORKER, _STAGE = 0.4e9, 0.25e9, 0.7e9


def memory(recipe: Recipe, stages: Sequence[str], ranks: int = 1) -> Iterator[Verdict]:
    """Whether the stages fit in memory."""
    here = memory_size()
    for stage, section in (("corpus", recipe.corpus), ("examples", recipe.examples)):
        if stage in stages and section is not None:
            workers = section.workers or default_workers()
            remedy = f"Use fewer workers ({stage}.workers=1)."
            yield _verdict(f"{stage}.workers", f"{workers} workers", _STAGE + workers * _WORKER, here, remedy)
    if "train" not in stages:
        return
    gpus = gpu_memory() if torch_build().accelerated and recipe.train.device != "cpu" else ()
    place = (gpus[0] or None) if gpus else here
    bert = recipe.network()
    padded = recipe.train.attention == "padded" or bool(gpus)
    needs = [training_bytes(bert, phase, ranks, padded) for phase in recipe.train.phases]
    most = max(needs)
    number = needs.index(most)
    what = f"training {bert.parameters:,} parameters, in phase {number},"
    remedy = f"Lower train.phases.{number}.micro_batch, or choose a smaller model.size."
    yield _verdict("train memory", what, most, place, remedy)


def training_bytes(bert: NetworkConfig, phase: PhaseConfig, ranks: int = 1, padded: bool = False) -> float:
    """Bytes that training a phase takes on each rank, about; `padded` says whether attention is of a rectangle."""
    share = max(1, phase.batch // ranks)
    sequences = min(phase.micro_batch or share, share)
    tokens = phase.micro_tokens or sequences * phase.length
    numbers = tokens * bert.num_hidden_layers * _kept(bert, phase.length, padded) + 3 * tokens * bert.hidden_size
    predictions = phase.masking.most(phase.length) * tokens / phase.length
    if phase.masking.count == "bernoulli":
        predictions = phase.masking.rate_at(0) * tokens
    return _TORCH + 20 * bert.parameters + 4 * (numbers + 3 * predictions * bert.vocab_size)


def _kept(bert: NetworkConfig, length: int, padded: bool) -> float:
    """Numbers that a layer keeps of each token for backward."""
    kept = 2 * bert.intermediate_size + 8.0 * bert.hidden_size
    if bert.hidden_dropout_prob:
        kept += 2.5 * bert.hidden_size
    if padded:
        kept += 4 * bert.hidden_size
    if bert.attention_probs_dropout_prob:
        kept += bert.hidden_size + 3 * bert.num_attention_heads * length
    return kept


def _verdict(about: str, what: str, needed: float, there: int | None, remedy: str) -> Verdict:
    text = f"{what} take about {needed / 1e9:.1f} GB of memory"
    if there is None:
        return ok(about, text)
    text += f", {there / 1e9:.1f} GB are there"
    if needed > DOUBT * there:
        return error(about, f"{text}.", remedy, DataError)
    return warning(about, f"{text}.", remedy) if needed > there else ok(about, text)
