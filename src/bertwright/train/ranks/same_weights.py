"""Checks that all ranks hold bit-identical weights, as they must if each applies the same gradient sum.

Nothing else notices a bit that flips in memory or on a link of one rank: losses look as before, and the weights that
rank 0 saves no longer match those that the other ranks' gradients were computed for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import nn

from bertwright.core.errors import RankError
from bertwright.train.ranks.ranks import Ranks


def check_same_weights(ranks: Ranks, model: nn.Module, step: int) -> None:
    """Raise `RankError` on all ranks, naming those that differ, unless the weights after `step` are the same on all.

    All ranks must call this together, with an engine in which each rank holds all weights. With one rank, nothing is
    computed or sent.
    """
    if ranks.world == 1:
        return
    # Each rank fills its own slot with the halves of its hash, so the sum over ranks is a list of all hashes.
    halves = [0] * (2 * ranks.world)
    halves[2 * ranks.rank : 2 * ranks.rank + 2] = divmod(weights_hash(model), 2**32)
    sums = ranks.all_reduce_async(halves).result()
    hashes = [high * 2**32 + low for high, low in zip(sums[::2], sums[1::2], strict=True)]
    if len(set(hashes)) > 1:
        raise RankError(
            f"after step {step:,} the ranks no longer have the same weights: {_who(hashes)}. Processors or GPUs of "
            "different kinds add in different orders (train.cpu_isa gives all processors the same instructions); if "
            "all are of one kind, the memory, a link or a processor of one of them may be faulty. Run the same command "
            "again: training goes on from its newest checkpoint, which was saved when all were the same. If it happens "
            "again, do not use that machine."
        )


def weights_hash(model: nn.Module) -> int:
    """Return a 64-bit hash of the bytes of all parameters, in their order."""
    digest = blake2b(digest_size=8)
    for parameter in model.parameters():
        flat = parameter.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data)
    return int.from_bytes(digest.digest(), "big")


def _who(hashes: Sequence[int]) -> str:
    """Describe which ranks differ from the majority, or which groups of ranks agree if there is no majority."""
    ((common, number), *_) = Counter(hashes).most_common(1)
    if 2 * number > len(hashes):
        odd = [rank for rank, value in enumerate(hashes) if value != common]
        return f"{_ranks(odd)} differ{'s' * (len(odd) == 1)} from the other {number}"
    groups = [[rank for rank, value in enumerate(hashes) if value == each] for each in dict.fromkeys(hashes)]
    return ", ".join(map(_ranks, groups)) + " differ from each other"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
