"""Conversion of tensor names to and from another program, for networks whose tensors are otherwise the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertwright.core.errors import ArtifactError

_BIAS = "mlm.bias"


@dataclass(frozen=True)
class Names:
    """The names of a family's tensors here and in stock transformers. `to_ours` is the inverse of `to_theirs`."""

    what: str
    """Description of the networks that convert, for messages."""
    pairs: tuple[tuple[str, str], ...]
    """(ours, theirs), each the part of a name before its last dot; {} is a layer's number."""
    embedding: str
    """This project's name of the token embedding."""
    tied: Mapping[str, str] = field(default_factory=dict)
    """Copies of tied tensors that transformers' files may have, and the tensor that each must equal."""
    made_anew: tuple[str, ...] = ()
    """Tensors of transformers' files that hold no weights."""

    def to_theirs(self, state: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """Return the tensors of a `state_dict` under transformers' names.

        `vocab_size` removes the rows that pad the vocabulary, so that the softmax no longer includes them; the logits
        of real tokens are unchanged. If unset, all rows are kept.
        """
        # Without this check, the last entries of a larger vocabulary would have no embedding.
        rows = len(state[self.embedding])
        if vocab_size is not None and vocab_size > rows:
            raise ArtifactError(
                f"the model has {rows} vocabulary rows, not {vocab_size}; give the vocabulary of that model"
            )
        theirs = dict(self.pairs)
        return {
            self._renamed(name, theirs): tensor[:vocab_size].clone() if name in (self.embedding, _BIAS) else tensor
            for name, tensor in state.items()
        }

    def to_ours(self, tensors: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """Return transformers' tensors under this project's names.

        Also reads the `gamma` and `beta` of files converted from TensorFlow. Copies of tied tensors are dropped if they
        are equal; an untied decoder raises `ArtifactError`, as does a name of another network. `vocab_size` pads the
        vocabulary to that size with zero embeddings, whose bias of -10000 gives them no probability.
        """
        today = {_today(name): tensor for name, tensor in tensors.items()}
        for copy, original in self.tied.items():
            if copy in today and not torch.equal(today[copy], today[original]):
                raise ArtifactError(
                    f"{copy} differs from {original}; only a model with a tied decoder can be converted"
                )
        dropped, ours = {*self.tied, *self.made_anew}, {theirs: ours for ours, theirs in self.pairs}
        state = {self._renamed(name, ours): tensor for name, tensor in today.items() if name not in dropped}
        return state if vocab_size is None else self._padded(state, vocab_size)

    def _renamed(self, name: str, names: Mapping[str, str]) -> str:
        module, _, parameter = name.rpartition(".")
        layer = re.search(r"\.(\d+)\.", module)
        pattern = module.replace(layer[0], ".{}.") if layer else module
        if pattern not in names:
            raise ArtifactError(f"tensor {name!r} is not part of {self.what}; only such a model can be converted")
        return f"{names[pattern].format(layer[1] if layer else '')}.{parameter}"

    def _padded(self, state: dict[str, Tensor], vocab_size: int) -> dict[str, Tensor]:
        embeddings = state[self.embedding]
        rows = vocab_size - len(embeddings)
        if rows < 0:
            raise ArtifactError(f"the model has {-rows} more vocabulary rows than {vocab_size}; request all of them")
        if rows and _BIAS not in state:
            # The logits of padding rows would be 0, and nothing would exclude them from the softmax.
            raise ArtifactError(f"the model has no decoder bias, so its vocabulary cannot be padded to {vocab_size}")
        padded = {self.embedding: torch.cat([embeddings, embeddings.new_zeros(rows, embeddings.shape[1])])}
        if _BIAS in state:
            # With a bias of 0, rows without a token would get a share of every softmax.
            bias = state[_BIAS]
            padded[_BIAS] = torch.cat([bias, bias.new_full((rows,), -10000.0)])
        return state | padded


def _today(name: str) -> str:
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name))
