"""Every rank has all weights, but only the optimizer state of its own tensors (Rajbhandari et al. 2020, stage 1).

Tensors stay complete, so updates that use norms or entire matrices (LAMB, Muon) equal those of a single process. The
largest tensor is assigned first, each to the rank with the least, as in torch's ZeroRedundancyOptimizer, which however
would send the state for a checkpoint by pickle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bertwright.optim.build import moment_names
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.config import ZeroConfig
from bertwright.train.engine.ddp import DataParallel
from bertwright.train.engine.partition import deal_out
from bertwright.train.engine.single import Single
from bertwright.train.ranks.ranks import Ranks


class Zero:
    """The engine of several ranks that shard the optimizer state; see `Engine`."""

    def __init__(self, single: Single, ranks: Ranks, config: ZeroConfig) -> None:
        self._replicas = DataParallel(single, ranks, config)
        self._single, self._ranks = single, ranks
        self._optimizer, self._model = single.optimizer, single.model
        self._moments = moment_names(single.optim, single.model)
        trained = {name: p for name, p in single.model.named_parameters() if p.requires_grad}
        self._owned = deal_out({name: p.numel() for name, p in trained.items()}, ranks.world)
        self._tensors = [[trained[name] for name in names] for names in self._owned]
        own = set(self._tensors[ranks.rank])
        for group in self._optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p in own]

    @property
    def has_full_weights(self) -> bool:
        """As `Engine.whole`."""
        return True

    def root(self, loss: Tensor, last: bool = True) -> Tensor:
        """As `Engine.root`: the loss itself, a scalar."""
        return self._replicas.root(loss, last)

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        """As `Engine.reduce`: a scalar."""
        return self._replicas.reduce(loss_scale)

    def update(self, learning_rate: float) -> None:
        """As `Engine.update`; each rank updates its own tensors, and sends them to the others."""
        self._replicas.update(learning_rate)
        for owner, tensors in enumerate(self._tensors):
            self._ranks.send([tensor for tensor in tensors if tensor.requires_grad], owner)

    def restart_steps(self) -> None:
        """As `Engine.restart_steps`."""
        self._replicas.restart_steps()

    def train_rows(self, rows: Rows | None) -> None:
        """As `Engine.train_rows`."""
        _, moments = self.gather()
        self._replicas.choose(rows)
        self.load(moments)

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As `Engine.gather`; the complete state is temporarily on every rank."""
        state = self._single.moments()
        # A rank may own no tensor, and then has no update count.
        steps = max(self._ranks.each(int(state["step"])))
        gathered = {"step": torch.tensor(steps, dtype=torch.int64)}
        # Not derived from the count, which is 0 after a hand-over, too.
        begun = self._ranks.any(len(state) > 1)
        if begun and len(state) == 1:  # of its tensors, none has been trained yet
            state |= self._zeros(self._owned[self._ranks.rank])
        for owner, names in enumerate(self._owned if begun and not own else []):
            parts = {key: state.get(key, tensor) for key, tensor in self._zeros(names).items()}
            self._ranks.send(list(parts.values()), owner)
            gathered |= parts
        if own:
            # The local moments, and the weights of the same tensors: nothing is sent.
            weights, counted = self._replicas.share.of(self._model.state_dict(), gathered)
            return weights, counted | {key: tensor for key, tensor in state.items() if key != "step"}
        return self._model.state_dict(), gathered

    def _zeros(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return moments of 0 for these tensors."""
        shapes = ((name, self._model.get_parameter(name)) for name in names)
        return {f"{moment}.{name}": torch.zeros_like(p) for name, p in shapes for moment in self._moments[name]}

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        """As `Engine.load`."""
        if weights is not None:
            self._model.load_state_dict(weights)
        # Tensors of other ranks are checked there.
        others = {name for names in self._owned for name in names} - set(self._owned[self._ranks.rank])
        own = {key: tensor for key, tensor in moments.items() if key.partition(".")[2] not in others}
        self._single.load_moments(own)
