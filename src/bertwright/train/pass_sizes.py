"""What a forward pass keeps for its backward pass, as numbers: rules, those of layers within 15 %; with
activations checkpointed a whole training was measured to take 40 % more than it should (docs/results.md).

For each token of a micro-batch and layer what backward needs: twice the inner width and 9 times the hidden width, 2.5
more with dropout (of a DistilBERT 1), three numbers a head and token of the sequence with attention dropout; with the
padded kernel one less without attention dropout, and 4 for each place of the rectangle; of a ModernBERT, whose values
are gated, four times the inner width and 11 times the hidden width, and one more inner width with dropout. Of the last
layer all that follows attention is computed of the tokens alone that are read. Two rows of logits for each prediction.
Where activations are checkpointed it is one hidden width a layer, and all of the above for the layer that is computed
again. Numbers are counted as float32, also under autocast, which keeps some of both kinds. Knows no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.train.phase_config import PhaseConfig


@dataclass(frozen=True)
class Pass:
    """What a forward pass reads."""

    sequences: float
    tokens: float
    """Real ones of all sequences."""
    longest: int
    """Places of a row where sequences lie in a rectangle."""
    pairs: float
    """Of tokens that see each other: the squares of the lengths."""

    @classmethod
    def full(cls, sequences: float, length: int, tokens: float = 0.0) -> Pass:
        """Sequences (with packing, rows) as long as they may be; or so many `tokens` in place of their number."""
        tokens = tokens or sequences * length
        return cls(tokens / length, tokens, length, tokens * length)


def pass_numbers(network: NetworkConfig, phase: PhaseConfig, read: Pass, padded: bool, recompute: bool) -> float:
    """Numbers that a forward pass keeps for its backward pass, about; `recompute`: layers are computed again."""
    layers, hidden = network.num_hidden_layers, network.hidden_size
    layer, predictions = layer_numbers(network, read, padded), predictions_of(network, phase, read)
    embedded = (2 if network.hidden_dropout_prob else 1) * hidden * read.tokens
    logits = _logits(network, predictions, read)
    if recompute:
        # The layer is computed again when the logits are gone; its gradients are as wide as what they are of.
        layer += (network.intermediate_size + 2 * hidden) * read.tokens
        return embedded + layers * hidden * read.tokens + max(layer, logits)
    shown = predictions + read.sequences * (network.next_sentence or bool(network.labels))
    unread = max(0.0, read.tokens - shown)
    return embedded + layers * layer - unread * _read_numbers(network) + 5 * hidden * shown + logits


def scoring_bytes(network: NetworkConfig, phase: PhaseConfig, read: Pass) -> float:
    """Bytes that a forward pass without a way back takes at a time, about."""
    wide = 4 if isinstance(network, ModernConfig) else 2
    inner = (wide * network.intermediate_size + 3 * network.hidden_size) * read.tokens
    return 4 * max(inner, _logits(network, predictions_of(network, phase, read), read))


def _logits(network: NetworkConfig, predictions: float, read: Pass) -> float:
    """Two rows for each prediction, of entries; of a classifier for each sequence, of classes."""
    return 2 * predictions * network.vocab_size + 2 * read.sequences * len(network.labels)


def predictions_of(network: NetworkConfig, phase: PhaseConfig, read: Pass) -> float:
    """Masked tokens of a pass, at most; a classifier has none."""
    if network.labels:
        return 0.0
    # A coin for each token: the mean is the rate, not the bound of a fixed count.
    if phase.masking.count == "bernoulli":
        return phase.masking.rate_at(0) * read.tokens
    return phase.masking.most(phase.length) * read.tokens / phase.length


def kept_numbers(network: NetworkConfig, length: int, padded: bool) -> float:
    """Numbers that a layer keeps of each token for backward, of sequences that are all so long."""
    return layer_numbers(network, Pass.full(1, length), padded) / length


def layer_numbers(network: NetworkConfig, read: Pass, padded: bool) -> float:
    """Numbers that a layer, whose states are all read, keeps for backward."""
    inner, hidden = network.intermediate_size, network.hidden_size
    match network:
        case ModernConfig():
            kept, dropped = 4 * inner + 10.0 * hidden, float(inner)
        case DistilBertConfig():
            kept, dropped = 2 * inner + 8.0 * hidden, 1.0 * hidden
        case BertConfig():
            kept, dropped = 2 * inner + 8.0 * hidden, 2.5 * hidden
        case _:
            assert_never(network)
    if network.hidden_dropout_prob:
        kept += dropped
    # Sequences of several lengths are attended to apart and put together again.
    numbers = (
        read.tokens * kept + 4 * hidden * read.sequences * read.longest if padded else read.tokens * (kept + hidden)
    )
    if network.attention_probs_dropout_prob:
        pairs = read.sequences * read.longest**2 if padded else read.pairs
        numbers += (hidden * read.tokens if padded else 0) + 3 * network.num_attention_heads * pairs
    return numbers


def _read_numbers(network: NetworkConfig) -> float:
    """Numbers of a token that the last layer keeps only where its state is read: all that follows its attention."""
    wide = 4 if isinstance(network, ModernConfig) else 2
    return wide * network.intermediate_size + 4 * network.hidden_size
