"""Estimates how many numbers a forward pass keeps for its backward pass. The rules for layers are right within 15 %;
those for `modern` in float16 may be a quarter too large.

Kept per layer and token of a micro-batch: what the family states in its configuration (`Activations`; BERT: twice the
inner width and 8 times the hidden width, with dropout 2 more hidden widths), and one hidden width for the output of
attention; with attention dropout also three numbers per head and token of the sequence. The padded kernel keeps one
hidden width less per token, and 4 per place of the rectangle, with attention dropout 3. In the last layer, everything
after attention is kept only for the tokens that are read. Each prediction keeps two rows of logits. With activation
checkpointing, a layer keeps one hidden width, and the layer being recomputed all of the above. Numbers count as
float32; `Kernels` has what differs in 16 bits and on a GPU. Does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bertwright.model.config import NetworkConfig
from bertwright.train.settings.phase_config import PhaseConfig

# Independent of recipe and number of ranks, because the batches determine the order in which scores are summed.
HELDOUT_MICRO_BATCH = 64
"""Sequences of a forward pass over held-out examples."""
_NARROW, _HALF = 0.625, 0.56
"""`Kernels.size` under autocast: 16 bits, but for norms; and if the stream between norms is in 16 bits, too."""


class Kernels(NamedTuple):
    """What a layer keeps otherwise than in float32 on a CPU. Counted like the rules for that, from the tensors that
    autograd saves, a GPU's with kernels of its kind in place of the CPU's; not measured on a GPU."""

    fused: bool = False
    """Whether attention is one kernel, which keeps no numbers for pairs of tokens, and a dropout mask has one byte per
    element."""
    autocast: bool = False
    """Whether layers compute in 16 bits from weights in float32."""
    half_stream: bool = False
    """Whether the residual stream is in 16 bits, as it is under autocast to bfloat16."""
    weighed: bool = False
    """Whether attention without dropout keeps the weight of each pair of tokens, as `sequences` does in 16 bits."""

    @property
    def size(self) -> float:
        """Size of the numbers that a layer keeps, relative to float32."""
        return (_HALF if self.half_stream else _NARROW) if self.autocast else 1.0


OF_A_CPU = Kernels()


@dataclass(frozen=True)
class Pass:
    """The input sizes of a forward pass."""

    sequences: float
    tokens: float
    """Real (not padding) tokens of all sequences."""
    longest: int
    """Length of a row, if sequences are padded to a rectangle."""
    pairs: float
    """Pairs of tokens that attend to each other: the sum of the squared lengths."""

    @classmethod
    def full(cls, sequences: float, length: int, tokens: float = 0.0) -> Pass:
        """Return a pass of sequences (with packing, rows) of maximum length; `tokens`, if not 0, determines their
        number instead."""
        tokens = tokens or sequences * length
        return cls(tokens / length, tokens, length, tokens * length)


def pass_numbers(
    network: NetworkConfig, phase: PhaseConfig, read: Pass, padded: bool, recompute: bool, kernels: Kernels = OF_A_CPU
) -> float:
    """Return about how many numbers of float32 a forward pass keeps for its backward pass; `recompute`: with activation
    checkpointing."""
    layers, hidden, size = network.num_hidden_layers, network.hidden_size, kernels.size
    layer = layer_numbers(network, read, padded, kernels)
    predictions = predictions_of(network, phase, read)
    embedded = (2 if network.hidden_dropout_prob else 1) * hidden * read.tokens
    logits = _logits(network, predictions, read)
    if recompute:
        # The layer is recomputed after the logits are freed; its gradients are as wide as the tensors they belong to.
        layer += size * (network.intermediate_size + 2 * hidden) * read.tokens
        inputs = (0.5 if kernels.half_stream else 1.0) * layers * hidden * read.tokens
        return embedded + inputs + max(layer, logits)
    if network.gives_vectors:  # of which all states are read, and only their means are kept
        return embedded + layers * layer + hidden * read.tokens
    shown = predictions + read.sequences * bool(network.sequence_logits)
    unread = max(0.0, read.tokens - shown)
    kept = layers * layer - size * unread * _read_numbers(network)
    return embedded + kept + 5 * hidden * shown + logits


def scoring_bytes(network: NetworkConfig, phase: PhaseConfig, read: Pass) -> float:
    """Return about how many bytes a forward pass without a backward pass needs at its peak."""
    inner = (network.activations.feed_forward + 3 * network.hidden_size) * read.tokens
    return 4 * max(inner, _logits(network, predictions_of(network, phase, read), read))


def _logits(network: NetworkConfig, predictions: float, read: Pass) -> float:
    """Return the numbers of the logits: two vocabulary-sized rows per prediction; for a classifier, two rows of class
    scores per sequence."""
    return 2 * predictions * network.vocab_size + 2 * read.sequences * (
        0 if network.predicts_tokens else network.sequence_logits
    )


def predictions_of(network: NetworkConfig, phase: PhaseConfig, read: Pass) -> float:
    """Return the maximum number of masked tokens in a pass; 0 for a classifier."""
    if not network.predicts_tokens:
        return 0.0
    # Each token is drawn independently: the expected count is the rate, not the bound of a fixed count.
    if phase.masking.count == "bernoulli":
        return phase.masking.rate_at(0) * read.tokens
    return phase.masking.most(phase.length) * read.tokens / phase.length


def kept_numbers(network: NetworkConfig, length: int, padded: bool, kernels: Kernels = OF_A_CPU) -> float:
    """Return the numbers per token that a layer keeps for the backward pass, for sequences of equal `length`."""
    return layer_numbers(network, Pass.full(1, length), padded, kernels) / length


def layer_numbers(network: NetworkConfig, read: Pass, padded: bool, kernels: Kernels = OF_A_CPU) -> float:
    """Return the numbers of float32 that a layer keeps for the backward pass, if all of its output states are read."""
    hidden, layer = network.hidden_size, network.activations
    kept = layer.feed_forward + layer.others
    if network.hidden_dropout_prob:
        kept += layer.masks / 4 if kernels.fused else layer.masks
    drops = network.attention_probs_dropout_prob and not kernels.fused
    if padded:
        # With dropout, attention is computed step by step, whose output is not kept in the rectangle.
        numbers = read.tokens * kept + (3 if drops else 4) * hidden * read.sequences * read.longest
    else:
        # Sequences of different lengths are attended to separately and then concatenated.
        numbers = read.tokens * (kept + hidden)
    numbers *= kernels.size
    if drops or kernels.weighed:
        pairs = network.num_attention_heads * (read.sequences * read.longest**2 if padded else read.pairs)
        # Autocast keeps the padded kernel's weights of pairs, and what dropout makes of them, in float32.
        numbers += (1.0 if padded else kernels.size) * (3 if drops else 1) * pairs
    return numbers


def _read_numbers(network: NetworkConfig) -> float:
    """Return the numbers per token that the last layer keeps only if the token's state is read: everything after
    attention."""
    return network.activations.feed_forward + 4 * network.hidden_size
