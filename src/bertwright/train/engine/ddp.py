"""Every rank has all weights; gradients are all-reduced in buckets, as soon as the last micro-batch has them.

The order of the buckets is that of the network's parameters in reverse, which is about the order in which gradients
become available, and the same on every rank, whatever it computes (Li et al. 2020, section 3.2.3). torch's own
DistributedDataParallel requires the same number of backward passes on every rank, but a rank may have no sequence in a
step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from bertwright.optim.config import LambConfig
from bertwright.optim.norms import clip_part
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.config import DdpConfig, ZeroConfig
from bertwright.train.engine.partition import Share
from bertwright.train.engine.single import Single, gradient_of
from bertwright.train.ranks.ranks import Ranks, Sum

LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Dtypes to which gradients are rounded for sending, by their names in recipes; otherwise they are sent unchanged."""


class DataParallel:
    """The engine of several ranks, each with a full copy; see `Engine`."""

    def __init__(self, single: Single, ranks: Ranks, config: DdpConfig | ZeroConfig) -> None:
        self.single, self.ranks = single, ranks
        self._low = LOW.get(config.reduction)
        self._clips_first = isinstance(single.optim, LambConfig) and single.optim.clip_before_reduction
        self._bucket_bytes = config.bucket_mb * 1e6
        trained = self._fill_buckets()
        self._ready: set[nn.Parameter] = set()
        self._sums: list[Sum] = []
        if ranks.world > 1:
            for parameter in trained:
                parameter.register_post_accumulate_grad_hook(self._known)  # type: ignore[no-untyped-call]
        self._last = False
        self.share = Share({n: p.numel() for n, p in single.parameters.items()}, ranks.world, ranks.rank)

    @property
    def has_full_weights(self) -> bool:
        """As `Engine.whole`."""
        return True

    def root(self, loss: Tensor, last: bool = True) -> Tensor:
        """As `Engine.root`: the loss itself, a scalar."""
        self._last = last and not self._clips_first
        return loss

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`, a scalar; a rank without sequences takes part in the all-reduce."""
        if self.ranks.world > 1:
            if self._clips_first:
                clip_part(self.single.gradients(), self.single.optim.max_grad_norm, self.ranks.world, loss_scale)
                loss_scale = 1.0
            # Once per step, after the last micro-batch: reducing after each micro-batch would send as much every time.
            for bucket in self._buckets[len(self._sums) :]:
                self._sums.append(self._start(bucket))
            for bucket, started in zip(self._buckets, self._sums, strict=True):
                flat = started.result()
                for parameter, part in zip(bucket, torch.split(flat, [p.numel() for p in bucket]), strict=True):
                    gradient_of(parameter).copy_(part.view_as(parameter))
            self._sums.clear()
            self._ready.clear()
        return self.single.reduce(loss_scale)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`."""
        self.single.update(learning_rate)

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        self.single.restart_steps()

    def train_rows(self, rows: Rows | None) -> None:
        """As `Engine.train_rows`."""
        self.single.train_rows(rows)
        self._fill_buckets()

    def choose(self, rows: Rows | None) -> None:
        """As `Single.choose`."""
        self.single.choose(rows)
        self._fill_buckets()

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`."""
        weights, moments = self.single.gather()
        return self.share.of(weights, moments) if own else (weights, moments)

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """As `Engine.load`."""
        self.single.load(moments, weights)

    def _fill_buckets(self) -> list[nn.Parameter]:
        """Put all parameters that are trained into buckets; returns them."""
        trained = [p for p in self.single.model.parameters() if p.requires_grad]
        self._buckets = list(buckets(trained[::-1], self._bucket_bytes))
        return trained

    def _known(self, parameter: nn.Parameter) -> None:
        """Start, in order, the all-reduce of each bucket whose gradients are all available."""
        if not self._last:
            return
        self._ready.add(parameter)
        while len(self._sums) < len(self._buckets) and self._ready.issuperset(self._buckets[len(self._sums)]):
            self._sums.append(self._start(self._buckets[len(self._sums)]))

    def _start(self, bucket: Sequence[nn.Parameter]) -> Sum:
        # One message for many tensors: each all-reduce costs a round trip.
        flat = torch.cat([gradient_of(p).flatten() for p in bucket])
        return self.ranks.start_sum(flat.to(self._low or flat.dtype))


def buckets(parameters: Sequence[nn.Parameter], size: float) -> Iterator[list[nn.Parameter]]:
    """Yield the parameters, of any shape, in lists of at most `size` bytes of gradients, or of a single parameter."""
    bucket, held = list[nn.Parameter](), 0
    for parameter in parameters:
        if bucket and held + parameter.nbytes > size:
            yield bucket
            bucket, held = [], 0
        bucket.append(parameter)
        held += parameter.nbytes
    if bucket:
        yield bucket
