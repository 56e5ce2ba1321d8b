"""What benchmarks/gpu.py measures: cases, their sides, and the order in which a limited time is spent on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from bertwright.bench.workload import VOCABULARY, Workload, loader_of
from bertwright.examples.loader import Loader
from bertwright.model.config import ModelConfig, NetworkConfig
from bertwright.model.flops import STEP, forward_flops
from bertwright.optim.config import LambConfig
from bertwright.train.config import TrainConfig
from bertwright.train.memory.rank_memory import computing_of, training_bytes

_SECTION = TypeAdapter[ModelConfig](ModelConfig)
_PREDICTED = 0.15


@dataclass(frozen=True)
class Case:
    """One benchmarked training."""

    size: str
    length: int
    filled: bool
    """Whether examples fill `length`; otherwise their mean length is about half of it."""
    rows: int
    """Rows per forward pass; for the peer, sequences per forward pass."""
    batch: int = 4096
    """Sequences per step."""
    family: str = "bert"

    @property
    def name(self) -> str:
        family = "" if self.family == "bert" else f"{self.family}-"
        return f"{family}{self.size}-{self.length}-{'full' if self.filled else 'half'}"

    @property
    def workload(self) -> Workload:
        inner = self.length - 2
        if self.filled:
            return Workload(
                self.name, self.size, self.length, self.batch, "full-sentences", (40, 40), (inner, inner), self.family
            )
        # Documents with few sentences, so that many examples are complete documents.
        sentences = (1, 22 * self.length // 512)
        return Workload(self.name, self.size, self.length, self.batch, "doc-sentences", sentences, family=self.family)

    @cached_property
    def network(self) -> NetworkConfig:
        """Hidden dropout 0.1, which a ModernBERT has not, and rows of the vocabulary in whole blocks of 64."""
        dropout = {"dropout": 0.1} if self.family == "bert" else {}
        section = {"kind": self.family, "size": self.size, "pad_vocab_to_multiple_of": 64, **dropout}
        return _SECTION.validate_python(section).resolve(VOCABULARY.size, False)

    @property
    def operations(self) -> float:
        """Of a step, about."""
        mean = self.length if self.filled else self.length // 2
        return STEP * self.batch * forward_flops(self.network, np.array([mean]), int(_PREDICTED * mean))

    def loader(self, packing: bool = False) -> Loader:
        return loader_of(self.workload, self.rows, max(200_000, 2 * self.batch * self.length), packing)


CASES = [
    Case("base", 128, True, 512),
    Case("large", 128, True, 256, 2048),
    Case("large", 512, False, 64, 1024),
    Case("base", 1024, False, 64, 1024, "modern"),
    Case("base", 512, False, 128),
    Case("base", 512, True, 128),
    Case("large", 512, True, 64, 1024),
    Case("base", 128, False, 512),
    Case("large", 128, False, 256, 2048),
]
"""By priority."""
FIRST = 4
"""Cases of which all sides come before the other cases."""
TINY = [
    Case("tiny", 32, True, 4, 8),
    Case("tiny", 32, False, 4, 8),
    Case("tiny", 32, False, 4, 8, "modern"),
]


@dataclass(frozen=True)
class Side:
    """One way to train a case."""

    name: str
    train: Mapping[str, Any] = field(default_factory=dict)
    """Keys of [train]; others are the defaults."""
    packed: bool = False
    """Whether a row holds several examples."""
    cudnn: bool = True
    """Whether torch may choose cuDNN's attention. If not, it chooses as with TORCH_CUDNN_SDPA_DEPRIORITIZED=1: its
    memory-efficient attention, because FlashAttention takes no mask."""
    peer: bool = False
    """Whether it is transformers that trains."""

    def config(self, case: Case) -> TrainConfig:
        """The section [train] of this side. `micro_batch` counts rows, also of several examples."""
        phase = {"length": case.length, "batch": case.batch, "steps": 1_000_000, "learning_rate": 1e-4}
        phase |= {"micro_batch": case.rows, "packing": self.packed}
        return TrainConfig.model_validate({**self.train, "phases": [phase]})

    def memory(self, case: Case) -> float:
        """About how many bytes of a GPU it takes, by the rule of `check`. The peer keeps logits of all positions."""
        config = self.config(case)
        computing = computing_of(config, LambConfig(), 1, gpu=True)
        logits = 8 * case.rows * case.length * case.network.vocab_size if self.peer else 0
        return training_bytes(case.network, config.phases[0], computing) + logits

    @property
    def compiled(self) -> bool:
        return self.peer or self.train.get("graph") != "eager"


class Item(NamedTuple):
    """A side of a case: what is measured at once."""

    case: Case
    side: Side


PEER = "transformers"
_USUAL = {"precision": "bf16", "graph": "compiled"}
"""What the defaults choose on a GPU, by name: an error then names what failed."""


def sides_of(case: Case, gpu: bool) -> list[Side]:
    """The sides of a case: the default, the peer, then others for comparison. On a CPU nothing is compiled."""
    packed = not case.filled
    if not gpu:
        eager = {"precision": "fp32", "graph": "eager", "device": "cpu"}
        found = [Side("bertwright", eager, packed), Side(PEER, eager, peer=True)]
        return [*found, Side("bertwright, padded", eager)] if packed else found
    # FlashAttention has a ModernBERT's windows only from torch 2.12 on.
    usual = "varlen" if case.family == "bert" else "triton"
    found = [Side("bertwright", {**_USUAL, "attention": usual}, packed), Side(PEER, _USUAL, peer=True)]
    found += [
        Side(f"bertwright, {attention} attention", {**_USUAL, "attention": attention}, packed)
        for attention in ("varlen", "triton", "padded")
        if attention != usual
    ]
    if case.family == "bert":  # ModernBERT has no biases that the kernels would add
        found.append(Side("bertwright, own kernels", {**_USUAL, "attention": usual, "kernels": "triton"}, packed))
    eager = {"precision": "bf16", "graph": "eager", "attention": usual}
    if packed:
        found.append(Side("bertwright, one example a row", {**_USUAL, "attention": "padded"}))
    found.append(Side("bertwright, eager", eager, packed))
    if packed:
        found.append(Side("bertwright, eager, without cuDNN", {**eager, "attention": "padded"}, packed, cudnn=False))
    return found


def items(cases: list[Case], gpu: bool, part: str = "") -> Iterator[Item]:
    """What is measured, in this order: the default beside the peer in the first cases, their other sides, the other
    cases. Only sides that have `part` in their names."""
    first, others = cases[:FIRST], cases[FIRST:]
    order = [
        *(Item(case, side) for case in first for side in sides_of(case, gpu)[:2]),
        *(Item(case, side) for case in first for side in sides_of(case, gpu)[2:]),
        *(Item(case, side) for case in others for side in sides_of(case, gpu)),
    ]
    yield from (item for item in order if part in item.side.name)


def find_item(case: str, side: str, gpu: bool) -> Item:
    """The item with these names."""
    for item in items([*CASES, *TINY], gpu):
        if (item.case.name, item.side.name) == (case, side):
            return item
    raise ValueError(f"no side {side!r} of a case {case!r}")


def has_flash() -> bool:
    """Whether transformers finds the package of FlashAttention, with which it trains without padding."""
    return find_spec("flash_attn") is not None
