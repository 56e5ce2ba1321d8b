"""This project's tensor names and configuration, to and from those of Hugging Face's BERT.

With a next-sentence head the other side is `BertForPreTraining`, without one `BertForMaskedLM`. The contract is both
directions: `from_hf` undoes `to_hf` and reads published models, so no weights are locked in here.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from bertwright.core.errors import ArtifactError
from bertwright.model.config import BertConfig

# (ours, theirs), each the start of a name up to its last dot; {} is a layer's number.
_NAMES = (
    ("bert.embeddings.token", "bert.embeddings.word_embeddings"),
    ("bert.embeddings.position", "bert.embeddings.position_embeddings"),
    ("bert.embeddings.segment", "bert.embeddings.token_type_embeddings"),
    ("bert.embeddings.norm", "bert.embeddings.LayerNorm"),
    ("bert.layers.{}.attention.query", "bert.encoder.layer.{}.attention.self.query"),
    ("bert.layers.{}.attention.key", "bert.encoder.layer.{}.attention.self.key"),
    ("bert.layers.{}.attention.value", "bert.encoder.layer.{}.attention.self.value"),
    ("bert.layers.{}.attention.output", "bert.encoder.layer.{}.attention.output.dense"),
    ("bert.layers.{}.attention.norm", "bert.encoder.layer.{}.attention.output.LayerNorm"),
    ("bert.layers.{}.feed_forward.inner", "bert.encoder.layer.{}.intermediate.dense"),
    ("bert.layers.{}.feed_forward.output", "bert.encoder.layer.{}.output.dense"),
    ("bert.layers.{}.feed_forward.norm", "bert.encoder.layer.{}.output.LayerNorm"),
    ("bert.pooler.dense", "bert.pooler.dense"),
    ("mlm.transform", "cls.predictions.transform.dense"),
    ("mlm.norm", "cls.predictions.transform.LayerNorm"),
    ("mlm", "cls.predictions"),
    ("nsp.classifier", "cls.seq_relationship"),
)
_THEIRS = dict(_NAMES)
_OURS = {theirs: ours for ours, theirs in _NAMES}

# Copies of tied tensors in files of older versions, and what each must equal.
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
_BY_VOCABULARY = ("bert.embeddings.token.weight", "mlm.bias")


def hf_config(config: BertConfig, vocab_size: int | None = None) -> dict[str, Any]:
    """The config.json of the same network at Hugging Face, with `vocab_size` rows where padding was cut."""
    values = config.model_dump(exclude={"next_sentence"})
    return {
        "architectures": ["BertForPreTraining" if config.next_sentence else "BertForMaskedLM"],
        "model_type": "bert",
        **values,
        "vocab_size": vocab_size or config.vocab_size,
    }


def to_hf(state: dict[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
    """The tensors of a `state_dict` under Hugging Face's names.

    `vocab_size` cuts the rows that padded the vocabulary, so that the softmax no longer runs over them; the logits of
    real tokens are unchanged. Unset keeps all rows.
    """
    # A larger vocabulary would be cut to the rows there are, and its last entries would have no embedding.
    _refuse_growth(state, vocab_size)
    return {
        _renamed(name, _THEIRS): tensor[:vocab_size].clone() if name in _BY_VOCABULARY else tensor
        for name, tensor in state.items()
    }


def from_hf(tensors: dict[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
    """The tensors of a Hugging Face `BertForPreTraining` or `BertForMaskedLM` under this project's names.

    Understands the `gamma` and `beta` of files converted from TensorFlow. Copies of tied tensors are dropped when
    they are equal; an untied decoder is an `ArtifactError`, as is a name of another network. `vocab_size` pads the
    vocabulary up to it with zero embeddings whose bias of -10000 gives them no probability.
    """
    modern = {_modern(name): tensor for name, tensor in tensors.items()}
    for copy, original in _TIED.items():
        if copy in modern and not torch.equal(modern[copy], modern[original]):
            raise ArtifactError(f"{copy} differs from {original}; only a model with a tied decoder converts")
    # A buffer of older versions with the numbers 0 to 511; transformers makes it anew.
    dropped = {*_TIED, "bert.embeddings.position_ids"}
    state = {_renamed(name, _OURS): tensor for name, tensor in modern.items() if name not in dropped}
    return state if vocab_size is None else _padded(state, vocab_size)


def _modern(name: str) -> str:
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name))


def _renamed(name: str, names: dict[str, str]) -> str:
    module, _, parameter = name.rpartition(".")
    layer = re.search(r"\.(\d+)\.", module)
    pattern = module.replace(layer[0], ".{}.") if layer else module
    if pattern not in names:
        raise ArtifactError(f"tensor {name!r} is no part of a BERT with pre-training heads; only such a model converts")
    return f"{names[pattern].format(layer[1] if layer else '')}.{parameter}"


def _refuse_growth(state: dict[str, Tensor], vocab_size: int | None) -> None:
    rows = len(state["mlm.bias"])
    if vocab_size is not None and vocab_size > rows:
        raise ArtifactError(f"the model has {rows} vocabulary rows, not {vocab_size}; give its own vocabulary")


def _padded(state: dict[str, Tensor], vocab_size: int) -> dict[str, Tensor]:
    rows = vocab_size - len(state["mlm.bias"])
    if rows < 0:
        raise ArtifactError(f"the model has {-rows} vocabulary rows more than {vocab_size}; ask for all of them")
    embeddings, bias = (state[name] for name in _BY_VOCABULARY)
    return state | {
        "bert.embeddings.token.weight": torch.cat([embeddings, embeddings.new_zeros(rows, embeddings.shape[1])]),
        # A bias of 0 would give the rows without a token a share of every softmax.
        "mlm.bias": torch.cat([bias, bias.new_full((rows,), -10000.0)]),
    }
