"""Tensor names, to and from those of another program, for networks whose tensors are otherwise the same."""

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
    """The names of a family's tensors here and in stock transformers. `to_ours` undoes `to_theirs`."""

    what: str
    """Which networks convert, in words."""
    pairs: tuple[tuple[str, str], ...]
    """(ours, theirs), each the start of a name up to its last dot; {} is a layer's number."""
    embedding: str
    """Our name of the token embedding."""
    tied: Mapping[str, str] = field(default_factory=dict)
    """Copies of tied tensors that their files may have, and what each must equal."""
    made_anew: tuple[str, ...] = ()
    """Tensors of their files that hold no weights."""

    def to_theirs(self, state: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """The tensors of a `state_dict` under their names.

        `vocab_size` cuts the rows that padded the vocabulary, so that the softmax no longer runs over them; the logits
        of real tokens are unchanged. Unset keeps all rows.
        """
        # A larger vocabulary would be cut to the rows there are, and its last entries would have no embedding.
        rows = len(state[self.embedding])
        if vocab_size is not None and vocab_size > rows:
            raise ArtifactError(f"the model has {rows} vocabulary rows, not {vocab_size}; give its own vocabulary")
        theirs = dict(self.pairs)
        return {
            self._renamed(name, theirs): tensor[:vocab_size].clone() if name in (self.embedding, _BIAS) else tensor
            for name, tensor in state.items()
        }

    def to_ours(self, tensors: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """Their tensors under this project's names.

        Understands the `gamma` and `beta` of files converted from TensorFlow. Copies of tied tensors are dropped when
        they are equal; an untied decoder is an `ArtifactError`, as is a name of another network. `vocab_size` pads the
        vocabulary up to it with zero embeddings whose bias of -10000 gives them no probability.
        """
        today = {_today(name): tensor for name, tensor in tensors.items()}
        for copy, original in self.tied.items():
            if copy in today and not torch.equal(today[copy], today[original]):
                raise ArtifactError(f"{copy} differs from {original}; only a model with a tied decoder converts")
        dropped, ours = {*self.tied, *self.made_anew}, {theirs: ours for ours, theirs in self.pairs}
        state = {self._renamed(name, ours): tensor for name, tensor in today.items() if name not in dropped}
        return state if vocab_size is None else self._padded(state, vocab_size)

    def _renamed(self, name: str, names: Mapping[str, str]) -> str:
        module, _, parameter = name.rpartition(".")
        layer = re.search(r"\.(\d+)\.", module)
        pattern = module.replace(layer[0], ".{}.") if layer else module
        if pattern not in names:
            raise ArtifactError(f"tensor {name!r} is no part of {self.what}; only such a model converts")
        return f"{names[pattern].format(layer[1] if layer else '')}.{parameter}"

    def _padded(self, state: dict[str, Tensor], vocab_size: int) -> dict[str, Tensor]:
        embeddings = state[self.embedding]
        rows = vocab_size - len(embeddings)
        if rows < 0:
            raise ArtifactError(f"the model has {-rows} vocabulary rows more than {vocab_size}; ask for all of them")
        if rows and _BIAS not in state:
            # Their logits would be 0, and nothing would keep the softmax from them.
            raise ArtifactError(f"the model has no decoder bias, so its vocabulary cannot be padded to {vocab_size}")
        padded = {self.embedding: torch.cat([embeddings, embeddings.new_zeros(rows, embeddings.shape[1])])}
        if _BIAS in state:
            # A bias of 0 would give the rows without a token a share of every softmax.
            bias = state[_BIAS]
            padded[_BIAS] = torch.cat([bias, bias.new_full((rows,), -10000.0)])
        return state | padded


def _today(name: str) -> str:
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name))
