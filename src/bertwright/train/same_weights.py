"""Whether all ranks still hold the same weights, to the bit, as they do where each applies the same sum of gradients.

A bit that flips in memory or on a link on one of them is noticed by nothing else: losses look as before, and what the
first rank saves is no longer what the gradients of the others are of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import nn

from bertwright.core.errors import RankError
from bertwright.train.ranks import Ranks


def check_same_weights(ranks: Ranks, model: nn.Module, step: int) -> None:
    """Raise `RankError` on all ranks, naming those that differ, where the weights after `step` are not the same on all.

    All ranks together. Of an engine by which each holds all weights; one rank alone computes and sends nothing.
    """
    if ranks.world == 1:
        return
    # Each rank fills its own place with the halves of its hash: the sum over ranks is a list of all of them.
    halves = [0] * (2 * ranks.world)
    halves[2 * ranks.rank : 2 * ranks.rank + 2] = divmod(weights_hash(model), 2**32)
    sums = ranks.all_reduce_async(halves).result()
    hashes = [high * 2**32 + low for high, low in zip(sums[::2], sums[1::2], strict=True)]
    if len(set(hashes)) > 1:
        raise RankError(
            f"after step {step:,} the ranks do not hold the same weights any more: {_who(hashes)}. Memory, a link or a "
            "processor of one of them may be at fault. Run the same command again: training goes on from its newest "
            "checkpoint, which was saved when all were the same. Where it happens again, leave that machine out."
        )


def weights_hash(model: nn.Module) -> int:
    """A hash of 64 bits of the bytes of all parameters, in their order."""
    digest = blake2b(digest_size=8)
    for parameter in model.parameters():
        flat = parameter.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data)
    return int.from_bytes(digest.digest(), "big")


def _who(hashes: Sequence[int]) -> str:
    """Which ranks have other weights than most of them, or which have the same where there is no most."""
    ((common, number), *_) = Counter(hashes).most_common(1)
    if 2 * number > len(hashes):
        odd = [rank for rank, value in enumerate(hashes) if value != common]
        return f"{_ranks(odd)} differ{'s' * (len(odd) == 1)} from the other {number}"
    groups = [[rank for rank, value in enumerate(hashes) if value == each] for each in dict.fromkeys(hashes)]
    return ", ".join(map(_ranks, groups)) + " differ from each other"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
