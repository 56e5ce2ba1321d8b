"""An encoder with its pre-training heads.

Names carry shapes: B sequences, T tokens of all sequences together, H hidden, V vocabulary, P predictions.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from bertwright.model.batch import PackedBatch
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.encoder import Encoder, build_encoder
from bertwright.model.heads import MaskedTokenHead, NextSentenceHead


class PreTrainingModel(nn.Module):
    """The encoder with its two pre-training heads; all weights drawn from torch's generator (seed it first).

    Matrices start from N(0, initializer_range) without truncation as in NVIDIA's PyTorch BERT (Google's truncates
    at two standard deviations), biases from 0, layer norms from 1 and 0. `kernel` says how attention is computed;
    it changes the speed, not the function, and may be set at any time.
    """

    def __init__(self, config: NetworkConfig, kernel: Kernel = "sequences") -> None:
        super().__init__()
        self.config = config
        self.add_module(config.family, build_encoder(config, kernel))
        self.mlm = MaskedTokenHead(config)
        self.nsp = NextSentenceHead(config) if config.next_sentence else None
        self.apply(self._initialise)

    def _initialise(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    @property
    def encoder(self) -> Encoder:
        """The encoder; its tensors are named after its family."""
        return cast(Encoder, self.get_submodule(self.config.family))

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor | None]:
        """Logits [P, V] of the masked tokens, and [B, 2] of the sequences (None without a next-sentence head)."""
        encoder = self.encoder
        hidden_TH = encoder(batch)
        masked_PH = hidden_TH.index_select(0, batch.prediction_positions)
        mlm_PV = self.mlm(masked_PH, encoder.token_weight)
        return mlm_PV, None if self.nsp is None else self.nsp(encoder.pool(hidden_TH, batch.cu_seqlens))
