"""What a recipe is drafted from, and which network and optimizer that calls for."""

from __future__ import annotations

from dataclasses import dataclass

from bertwright.estimate.machine import Machine
from bertwright.init.answers import Answers
from bertwright.init.dump_sizes import Facts

SIZES = ("tiny", "mini", "small", "medium", "base", "large")


@dataclass(frozen=True)
class Asked:
    """Everything that a recipe is drafted from."""

    answers: Answers
    facts: Facts
    machine: Machine

    @property
    def quick(self) -> bool:
        """Whether a first look is requested."""
        return self.answers.quality == "quick"

    @property
    def best(self) -> bool:
        """Whether the newer findings are requested."""
        return self.answers.quality == "best"


def by_muon(asked: Asked, size: str) -> bool:
    """Whether Muon trains the network: the smallest ones on a CPU, where they see few tokens, learn to use the context
    after 5 to 8 million, with AdamW much later (docs/results.md, "Which settings learn")."""
    return size in ("tiny", "mini") and not asked.machine.device.gpu


def is_modern(asked: Asked, size: str) -> bool:
    """Whether the network is a ModernBERT: for the best quality, and for a first look where it learns so much sooner
    than a BERT that minutes are enough (docs/results.md, "The ladder")."""
    return asked.best or (asked.quick and by_muon(asked, size))


def is_narrow(asked: Asked, size: str) -> bool:
    """Whether this is a network that learns sooner with wide initial weights, a short warm-up and more masks; a BERT
    `mini` learns later with them (docs/results.md, "The ladder")."""
    return by_muon(asked, size) and (size == "tiny" or is_modern(asked, size))


def from_text(asked: Asked, size: str) -> bool:
    """Whether the embeddings start from the text, which allows larger batches and rates: for the networks on which that
    was measured (docs/results.md, "Embeddings from the text")."""
    return is_narrow(asked, size) and is_modern(asked, size)
