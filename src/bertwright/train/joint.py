"""The loss of a step that compares all of its sequences, and its gradient with respect to what the network returned.

Outputs are gathered over the ranks, so that each computes the loss of the global batch. Names carry shapes: N sequences
of the global batch, n of one rank, D numbers of each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bertwright.model.batch import PackedBatch
from bertwright.tasks.objective import JointObjective
from bertwright.tasks.terms import loss_sums, total_loss
from bertwright.train.graph.recorded import Scales
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee


def joint_gradients(
    trainee: Trainee,
    objective: JointObjective,
    outputs: Sequence[Tensor],
    batches: Sequence[PackedBatch],
    scales: Scales,
) -> tuple[Tensor, list[Tensor]]:
    """Return the means of the terms, the shares of correct predictions, and the loss, [2 terms + 1] in float64; and the
    gradient of the loss, times `scales.loss`, with respect to the outputs [n, D] of each of this rank's micro-batches.

    The numbers are zeros on all ranks but rank 0, because they will be summed over the ranks. All ranks must call this
    together.
    """
    ranks = trainee.ranks
    counts = ranks.each(sum(map(len, outputs)))
    wide = torch.promote_types(next(trainee.model.parameters()).dtype, torch.float32)

    def gather(parts: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
        return _gather(ranks, parts, counts, torch.empty(0, 0, dtype=dtype, device=trainee.precision.device))

    outputs_ND = gather([output.detach() for output in outputs], wide)
    labels_NK = gather([batch.sequence_labels for batch in batches], torch.int64)
    weights_N1 = gather([batch.sequence_weights[:, None] for batch in batches], torch.float32)
    with torch.enable_grad():
        terms = objective.compare(outputs_ND.requires_grad_(), labels_NK, weights_N1[:, 0])
        means = {name: total / scales.divisors[name] for name, total in loss_sums(terms).items()}
        loss = total_loss(means, terms)
        (gradient_ND,) = torch.autograd.grad(loss * scales.loss, outputs_ND)
    right = [terms[name].correct_sum for name in means]
    shares = [
        torch.full_like(loss, torch.nan) if correct is None else correct.to(loss) / divisor
        for correct, divisor in zip(right, scales.divisors.values(), strict=True)
    ]
    numbers = torch.stack([*means.values(), *shares, loss]).detach().double()
    first = sum(counts[: ranks.rank])
    own_nD = gradient_ND[first : first + counts[ranks.rank]]
    return numbers if ranks.first else torch.zeros_like(numbers), list(
        torch.split(own_nD, [len(part) for part in outputs])
    )


def _gather(ranks: Ranks, parts: Sequence[Tensor], counts: Sequence[int], none: Tensor) -> Tensor:
    """Return the rows of all ranks [N, D], in their order, of which this rank has `parts`, [n, D] together; `none` is
    what it has instead, of the same kind, if it has none."""
    own_nD = torch.cat([*parts]) if parts else none
    if ranks.world == 1:
        return own_nD
    # A rank without rows does not know how long they are.
    width = own_nD.shape[1] if min(counts) else max(ranks.each(own_nD.shape[1]))
    rows_ND = own_nD.new_zeros(sum(counts), width)
    if parts:
        first = sum(counts[: ranks.rank])
        rows_ND[first : first + len(own_nD)] = own_nD
    # Each row is added to zeros, so its sum over the ranks is exact.
    ranks.all_reduce([rows_ND])
    return rows_ND
