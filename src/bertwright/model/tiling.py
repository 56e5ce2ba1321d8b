"""Weights of a larger network made from those of a smaller one, which computes nearly the same.

ModernBERT-large started from tiles of the base model (Warner et al. 2024): its matrices have the base's in the middle,
and repeat it around. Here a repeated unit also counts as often as it is repeated in what reads it (Net2Net, Chen et al.
2016): each input weight is divided among the copies of its unit. So the larger network computes what the smaller one
does, exactly if widths are multiples, and else nearly, because its norms average over some units more often than over
others. The shares are drawn at random for each output: with equal ones, copies would get equal gradients and stay
copies.

Attention heads are repeated as a whole. Layers may be repeated, too, each copy where the layer was, as Gopher grew (Rae
et al. 2021, appendix G). Each of n copies adds a share of 1/n to the hidden state, so that all together add about what
the layer did.

Names carry shapes: H hidden of the larger network, O outputs, I inputs, N its numbers of units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bertwright.model.config import NetworkConfig, has_row_per_entry

_ADDED = ("attention.output", "feed_forward.output")
"""Ends of the names of modules whose outputs are added to the hidden state."""
SPREAD = 0.5
"""Largest difference of a share from the mean share, relative to it, before shares are made to add up to 1."""


class Units(NamedTuple):
    """Which unit of the smaller network each unit of the larger one is."""

    hidden_H: Tensor
    """[H] of the hidden state."""
    heads_H: Tensor
    """[H] of all attention heads together."""
    inner_N: Tensor
    """[N] of the feed-forward layer."""


def units_of(larger: NetworkConfig, smaller: NetworkConfig) -> Units:
    """Return which unit of the smaller network each of the larger one is: all in the middle, and again on either
    side."""
    width = smaller.hidden_size // smaller.num_attention_heads
    heads = _centred(larger.num_attention_heads, smaller.num_attention_heads)
    return Units(
        _centred(larger.hidden_size, smaller.hidden_size),
        (heads[:, None] * width + torch.arange(width)).flatten(),
        _centred(larger.intermediate_size, smaller.intermediate_size),
    )


def tiled(
    larger: NetworkConfig, smaller: NetworkConfig, tensors: Mapping[str, Tensor], taken: Mapping[str, str], seed: int
) -> dict[str, Tensor]:
    """Return tensors of the larger network, of any shapes, from `tensors` of the smaller one; `taken` says from which
    tensor each starts. The same seed gives the same shares."""
    units, generator = units_of(larger, smaller), torch.Generator().manual_seed(seed)
    repeated = _repeats(taken)
    return {
        name: _tile(name, tensors[source], units, larger, generator) / repeated.get(name, 1)
        for name, source in taken.items()
    }


def _tile(name: str, tensor: Tensor, units: Units, network: NetworkConfig, generator: torch.Generator) -> Tensor:
    module, _, part = name.rpartition(".")
    if has_row_per_entry(name) or ".embeddings." in name or module == "nsp.classifier":
        if tensor.dim() == 1:
            return tensor[units.hidden_H] if ".norm" in module else tensor
        columns = tensor[:, units.hidden_H]
        # What reads the hidden state counts its copies; a table makes them.
        return columns * _shares(columns.shape, units.hidden_H, generator) if module == "nsp.classifier" else columns
    if module == "mlm.norm":
        # The decoder, which reads what this norm gives, is the table of the embeddings and cannot be divided.
        return tensor[units.hidden_H] * _counted(units.hidden_H)
    outputs_O, inputs_I = _axes(module, units)
    count = next((n for end, n in network.fused.items() if name.endswith(end)), 1)
    size = len(tensor) // count
    outputs_O = torch.cat([outputs_O + i * size for i in range(count)])
    if part == "bias" or tensor.dim() == 1:
        return tensor[outputs_O]
    weight = tensor[outputs_O][:, inputs_I]
    return weight * _shares(weight.shape, inputs_I, generator)


def _axes(module: str, units: Units) -> tuple[Tensor, Tensor]:
    """Return the units of a module's outputs [O], and of its inputs [I]."""
    if module.endswith(("attention.query", "attention.key", "attention.value", "attention.qkv")):
        return units.heads_H, units.hidden_H
    if module.endswith("attention.output"):
        return units.hidden_H, units.heads_H
    if module.endswith("feed_forward.inner"):
        return units.inner_N, units.hidden_H
    if module.endswith("feed_forward.output"):
        return units.hidden_H, units.inner_N
    return units.hidden_H, units.hidden_H


def _centred(larger: int, smaller: int) -> Tensor:
    """Return [larger] numbers below `smaller`: all in order in the middle, and the same order continued to both
    sides."""
    return (torch.arange(larger) - (larger - smaller) // 2) % smaller


def _shares(shape: Sequence[int], inputs_I: Tensor, generator: torch.Generator) -> Tensor:
    """Return positive factors [O, I]: for each output, those of the copies of an input add up to 1."""
    drawn_OI = 1 + SPREAD * (2 * torch.rand(*shape, generator=generator) - 1)
    # An input without copies keeps its weight to the bit.
    drawn_OI[:, _counted(inputs_I) == 1] = 1.0
    sums = torch.zeros(shape[0], int(inputs_I.max()) + 1).index_add_(1, inputs_I, drawn_OI)
    return drawn_OI / sums[:, inputs_I]


def _counted(units_N: Tensor) -> Tensor:
    """Return one divided by how often each unit occurs, [N]."""
    return 1.0 / torch.bincount(units_N)[units_N]


def _repeats(taken: Mapping[str, str]) -> dict[str, int]:
    """Return in how many layers each tensor occurs whose product is added to the hidden state, by name."""
    counts = Counter(taken.values())
    return {name: counts[source] for name, source in taken.items() if name.rpartition(".")[0].endswith(_ADDED)}
