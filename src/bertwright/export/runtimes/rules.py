"""What servers that cannot run here would do with a published folder, by the loading rules in their sources.

The rules are restated, not run: a server may be newer than the version whose sources were read, which is named with
each. Sources, of 2026:

- text-embeddings-inference 1.9.3: router/src/lib.rs (classes, pooling, length), backends/candle/src/lib.rs and
  backends/candle/src/models/{bert,distilbert,modernbert}.rs (keys of config.json, names of tensors).
- vLLM, main branch of July: vllm/model_executor/models/registry.py, bert.py and modernbert.py,
  vllm/transformers_utils/config.py (pooling), pull requests 43896 (names of tensors) and 48463 (BertForMaskedLM).
- candle 0.11.0: candle-transformers/src/models/{bert,distilbert,modernbert}.rs, candle-examples/examples/bert/main.rs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bertwright.core.errors import BertwrightError
from bertwright.core.files import read_json
from bertwright.core.tensors import tensor_shapes
from bertwright.export.runtimes.runtime import Published
from bertwright.model.importers.safetensors_files import weight_files


@dataclass(frozen=True)
class Loading:
    """What one program does with a folder, by its rules."""

    program: str
    version: str
    """Of the sources that the rules were read in."""
    loads: bool
    sentence: str
    """As what it loads the folder, or why it refuses it."""


def loadings(model: Published) -> tuple[Loading, ...]:
    """What each server does with a published folder. Nothing of the folder but its descriptions is read."""
    rules = (
        ("text-embeddings-inference", "1.9.3", _tei_refuses, _tei_does),
        ("vLLM", "of July 2026", _vllm_refuses, _vllm_does),
        ("candle", "0.11.0", _candle_refuses, _candle_does),
    )
    return tuple(_loading(model, *each) for each in rules)


def _loading(
    model: Published,
    program: str,
    version: str,
    refuses: Callable[[Published], Iterator[str]],
    does: Callable[[Published], str],
) -> Loading:
    try:
        reason = next(refuses(model), "")
        return Loading(program, version, not reason, reason or does(model))
    except BertwrightError as error:  # a damaged file, or a class that nobody knows
        return Loading(program, version, False, str(error))


_BERT = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("hidden_dropout_prob", "max_position_embeddings", "type_vocab_size", "initializer_range", "layer_norm_eps"),
    "pad_token_id",
)
_DISTILBERT = (
    *("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim", "activation", "max_position_embeddings"),
    "pad_token_id",
)
_MODERNBERT = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("max_position_embeddings", "pad_token_id", "global_attn_every_n_layers", "global_rope_theta"),
    *("local_attention", "local_rope_theta"),
)
_TEI_KEYS = {
    "bert": _BERT,
    "distilbert": _DISTILBERT,
    "modernbert": (
        *_MODERNBERT,
        *("hidden_activation", "initializer_range", "initializer_cutoff_factor", "norm_eps", "norm_bias"),
        *("eos_token_id", "bos_token_id", "cls_token_id", "sep_token_id", "attention_bias", "attention_dropout"),
        "classifier_activation",
    ),
}
"""The keys of config.json without which the program does not read it, by family."""
_CANDLE_KEYS = {
    "bert": _BERT,
    "distilbert": (*_DISTILBERT, "initializer_range"),
    "modernbert": (*_MODERNBERT, "layer_norm_eps"),
}
_EMBEDDING = {
    "bert": ("bert.", "embeddings.word_embeddings.weight"),
    "distilbert": ("distilbert.", "embeddings.word_embeddings.weight"),
    "modernbert": ("model.", "embeddings.tok_embeddings.weight"),
}
"""The first part of an encoder's names, and the rest of the name of its embedding."""


def _tei_refuses(model: Published) -> Iterator[str]:
    yield from _unknown_family(model, _TEI_KEYS)
    if not (model.folder / "tokenizer.json").is_file():
        yield "it has no tokenizer.json, the only form of a tokenizer that it reads"
    yield from _lacks_keys(model, _TEI_KEYS[model.family])
    act = model.config.get("hidden_act", model.config.get("hidden_activation", model.config.get("activation")))
    if act not in ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swiglu", "tanh"):
        yield f"it has no activation {act!r}"
    limits = _json(model, "sentence_bert_config.json")
    if limits is not None and not isinstance(limits.get("max_seq_length"), int):
        yield "sentence_bert_config.json has no max_seq_length: sentence-transformers 6 no longer writes it"
    if _is_classifier(model):
        if not {"id2label", "label2id"} <= set(model.config):
            yield "config.json names no classes: it needs id2label and label2id"
        if model.family == "modernbert" and model.config.get("num_labels", 1) != len(model.config["id2label"]):
            yield f"config.json does not say num_labels = {len(model.config['id2label'])}, and it takes 1 for granted"
    else:
        yield from _tei_refuses_pooling(model)
    yield from _lacks_embedding(model, prefixes=("", _EMBEDDING[model.family][0]))


def _tei_refuses_pooling(model: Published) -> Iterator[str]:
    pooling = _json(model, "1_Pooling/config.json")
    if pooling is None:
        return
    if not {"pooling_mode_cls_token", "pooling_mode_mean_tokens"} <= set(pooling):
        yield (
            "1_Pooling/config.json lacks pooling_mode_cls_token and pooling_mode_mean_tokens: sentence-transformers 6 "
            "no longer writes them"
        )
    if _mode(pooling) not in ("cls_token", "mean_tokens", "lasttoken"):
        yield f"it has no pooling {_mode(pooling)}"
    if _mode(pooling) == "lasttoken" and model.family != "bert":
        yield f"it does not pool the last token of a {model.family}"


def _tei_does(model: Published) -> str:
    tanh = "; it computes GELU by tanh, so its numbers differ a little"
    if model.head == "token":
        return f"loads as a classifier of texts: it answers for [CLS] alone, not for each token{tanh}"
    if _is_classifier(model):
        return f"loads as a classifier of texts{tanh}"
    splade = model.head == "masked" and model.architecture.endswith("MaskedLM") and model.family != "modernbert"
    also = ", or with --pooling splade weights of words" if splade else ""
    pooling = _json(model, "1_Pooling/config.json")
    loads = "loads" if model.head in ("encoder", "masked") else "loads its encoder alone"
    if pooling is None:
        return (
            f"{loads}, but its vector is the state of [CLS]: without 1_Pooling/config.json it asks for --pooling{also}"
        )
    return f"{loads}, and its vector is {_vector(_mode(pooling))}{also}{tanh}"


_VLLM = {
    "bert": ("BertModel", "BertForMaskedLM", "BertForSequenceClassification", "BertForTokenClassification"),
    "modernbert": ("ModernBertModel", "ModernBertForSequenceClassification", "ModernBertForTokenClassification"),
    "distilbert": (),
}
"""The classes that it registers, by family."""


def _vllm_refuses(model: Published) -> Iterator[str]:
    yield from _unknown_family(model, _VLLM)
    if model.family == "distilbert":
        yield "it has no DistilBERT of its own; whether its adapter for transformers takes one is not known"
    base = _VLLM[model.family][0]
    if model.architecture not in _VLLM[model.family]:
        again = f"it registers no {model.architecture}"
        vectors = model.head in ("masked", "encoder")
        override = f'; for vectors serve it with --hf-overrides \'{{"architectures": ["{base}"]}}\''
        yield again + (override if vectors else "")
    yield from _lacks_embedding(model, prefixes=("", _EMBEDDING[model.family][0]))


def _vllm_does(model: Published) -> str:
    if model.head == "masked":
        return (
            "loads for the logits of words at each token (task token_classify); for vectors serve it with "
            f'--hf-overrides \'{{"architectures": ["{_VLLM[model.family][0]}"]}}\', '
            f"whose vector is {_vllm_vector(model)}"
        )
    if model.head == "encoder":
        return f"loads, and its vector is {_vllm_vector(model)}"
    return "loads as a classifier of " + ("tokens" if model.head == "token" else "texts")


def _vllm_vector(model: Published) -> str:
    """It compares the name of the class in modules.json with that of sentence-transformers before version 6."""
    for module in _json(model, "modules.json") or []:
        if module.get("type") == "sentence_transformers.models.Pooling":
            pooling = _json(model, f"{module['path']}/config.json") or {}
            return _vector(_mode(pooling) or "cls_token")
    return "the state of [CLS], because no modules.json that it understands says otherwise"


def _candle_refuses(model: Published) -> Iterator[str]:
    yield from _unknown_family(model, _CANDLE_KEYS)
    if model.head in ("token", "span", "choice") or (model.head == "sequence" and model.family != "modernbert"):
        yield f"it has no {model.architecture}"
    if not (model.folder / "tokenizer.json").is_file():
        yield "it has no tokenizer.json, which the package tokenizers reads"
    yield from _lacks_keys(model, _CANDLE_KEYS[model.family])
    labels = model.config.get("label2id", {}).values()
    if model.head == "sequence" and not all(isinstance(number, str) for number in labels):
        yield "it reads label2id only if its numbers are strings, and without it takes the classifier to have no class"
    prefix = _EMBEDDING[model.family][0]
    prefixes = (prefix,) if model.family == "modernbert" else ("", prefix)
    yield from _lacks_embedding(model, prefixes, pickles=False)


def _candle_does(model: Published) -> str:
    tanh = "; it computes DistilBERT's GELU by tanh" if model.family == "distilbert" else ""
    if model.head == "sequence":
        return "loads as a classifier of texts"
    loads = f"loads; its program chooses the vector, and the example takes the mean{tanh}"
    if model.head != "masked":
        return loads
    if model.family == "bert" and "cls.predictions.decoder.weight" not in _names(model):
        return f"{loads}; its BertForMaskedLM asks for a copy of the embedding, cls.predictions.decoder"
    return f"{loads}; its masked-token head loads, too"


def _unknown_family(model: Published, families: Iterable[str]) -> Iterator[str]:
    if model.family not in families:
        yield f"these rules cover {', '.join(families)}, not model_type = {model.family!r}"


def _lacks_keys(model: Published, keys: Iterable[str]) -> Iterator[str]:
    if lacking := [key for key in keys if model.config.get(key) is None]:
        newer = " (transformers 5 writes rope_parameters in their place)" if "global_rope_theta" in lacking else ""
        yield f"config.json lacks {', '.join(lacking)}, which it requires{newer}"


def _lacks_embedding(model: Published, prefixes: tuple[str, ...], pickles: bool = True) -> Iterator[str]:
    names, (_, name) = _names(model), _EMBEDDING[model.family]
    if not names and pickles and (model.folder / "pytorch_model.bin").is_file():
        return  # which only the program itself would read
    if not names:
        yield "it has no weights in safetensors"
    elif not any(f"{prefix}{name}" in names for prefix in prefixes):
        yield f"its weights have no {' or '.join(prefix + name for prefix in prefixes)}"


def _names(model: Published) -> set[str]:
    return {name for file in weight_files(model.folder) for name in tensor_shapes(file)}


def _is_classifier(model: Published) -> bool:
    return model.architecture.endswith("Classification")


def _mode(pooling: Any) -> str:
    """The first mode that a pooling configuration sets."""
    return next((key.removeprefix("pooling_mode_") for key, value in pooling.items() if value is True), "")


def _vector(mode: str) -> str:
    named = {"mean_tokens": "the mean of all tokens", "cls_token": "the state of [CLS]"}
    return named.get(mode, f"pooled by {mode}")


def _json(model: Published, name: str) -> Any:
    """The content of a JSON file of the folder; None if there is no such file."""
    path = model.folder / name
    return read_json(path) if path.is_file() else None
