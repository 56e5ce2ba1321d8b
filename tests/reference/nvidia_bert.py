"""NVIDIA's BERT and one update of its training, restated plainly in float64: a rectangle, a mask, autograd, LAMB.

DeepLearningExamples, PyTorch/LanguageModeling/BERT: modeling.py (post-norm encoder, GELU by erf, tanh pooler, tied
decoder, -10,000 on what is padding), run_pretraining.py (the sum of two means, of the masked tokens and of the pairs),
schedulers.py (PolyWarmUp). Names of tensors are those of `BertForPreTraining`.
"""

from collections.abc import Callable, Mapping

import torch
from tests.reference.lamb import ReferenceLamb
from torch import Tensor
from torch.nn import functional as F

Weights = dict[str, Tensor]
Losses = Callable[[Weights, Mapping[str, Tensor], Tensor, Tensor], tuple[Tensor, Tensor]]
NO_DECAY = ("bias", "gamma", "beta", "LayerNorm")
"""What the names of tensors that do not decay contain (run_pretraining.py, prepare_model_and_optimizer)."""


def poly_warm_up(updates: int, total: int, warmup: float, peak: float) -> float:
    """The rate of the update after `updates` applied ones (PolyWarmUpScheduler.get_lr)."""
    progress = (updates + 1) / total
    return peak * progress / warmup if progress < warmup else peak * (1.0 - progress) ** 0.5


def losses(heads: int, layers: int) -> Losses:
    """The two means of a network of this shape, as a function of (weights, [B, S] inputs, labels, next labels)."""

    def both(w: Weights, inputs: Mapping[str, Tensor], labels: Tensor, next_labels: Tensor) -> tuple[Tensor, Tensor]:
        states = _encoder(w, inputs, heads, layers)
        pooled = torch.tanh(_linear(w, "bert.pooler.dense", states[:, 0]))
        masked = _norm(w, "cls.predictions.transform.LayerNorm", _gelu(_transformed(w, states)))
        scores = masked @ w["bert.embeddings.word_embeddings.weight"].T + w["cls.predictions.bias"]
        mlm = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return mlm, F.cross_entropy(_linear(w, "cls.seq_relationship", pooled), next_labels)

    return both


def lamb_of(weights: Weights) -> ReferenceLamb:
    """NVIDIA's LAMB over these weights, with its two groups."""
    decay = {name: 0.0 if any(part in name for part in NO_DECAY) else 0.01 for name in weights}
    return ReferenceLamb({name: tensor.detach().numpy() for name, tensor in weights.items()}, decay)


def _transformed(w: Weights, states: Tensor) -> Tensor:
    return _linear(w, "cls.predictions.transform.dense", states)


def _encoder(w: Weights, inputs: Mapping[str, Tensor], heads: int, layers: int) -> Tensor:
    tokens, mask = inputs["input_ids"], inputs["attention_mask"]
    words = w["bert.embeddings.word_embeddings.weight"][tokens]
    positions = w["bert.embeddings.position_embeddings.weight"][: tokens.shape[1]]
    segments = w["bert.embeddings.token_type_embeddings.weight"][inputs["token_type_ids"]]
    states = _norm(w, "bert.embeddings.LayerNorm", words + positions + segments)
    bias = (1.0 - mask[:, None, None, :].double()) * -10000.0
    for number in range(layers):
        name = f"bert.encoder.layer.{number}"
        attended = _attention(w, f"{name}.attention.self", states, bias, heads)
        states = _norm(
            w,
            f"{name}.attention.output.LayerNorm",
            states + _linear(w, f"{name}.attention.output.dense", attended),
        )
        inner = _gelu(_linear(w, f"{name}.intermediate.dense", states))
        states = _norm(w, f"{name}.output.LayerNorm", states + _linear(w, f"{name}.output.dense", inner))
    return states


def _attention(w: Weights, name: str, states: Tensor, bias: Tensor, heads: int) -> Tensor:
    def split(part: str) -> Tensor:
        return _linear(w, f"{name}.{part}", states).unflatten(-1, (heads, -1)).transpose(1, 2)

    query, key, value = split("query"), split("key"), split("value")
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5 + bias
    return (scores.softmax(-1) @ value).transpose(1, 2).flatten(-2)


def _linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _norm(w: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return centred / deviation * w[f"{name}.weight"] + w[f"{name}.bias"]


def _gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / 2**0.5))
