"""Names of the variables of BERT in TensorFlow's checkpoints, and of the same tensors in files of transformers.

There are two programs. **Google's** of 2018, and those that come from it (NVIDIA's, MLCommons'), saves variables by
their names: `bert/encoder/layer_0/attention/self/query/kernel`. **TensorFlow's Model Garden** saves objects by the path
to them: `model/encoder_network/_transformer_layers/0/_attention_layer/_query_dense/kernel/.ATTRIBUTES/VARIABLE_VALUE`;
encoders made before version 2.4 number their layers (`layer_with_weights-4` is the first layer after the four parts of
the embeddings), and in all of them each head has a dimension of its own.

A `kernel` is stored as [inputs, outputs], the transpose of what torch multiplies with; `output_weights` are not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_PARAMETERS = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "output_weights": "weight"}
_PARAMETERS |= {"bias": "bias", "beta": "bias", "output_bias": "bias"}
_GOOGLE = {
    f"bert/encoder/layer_{{}}/{part}": f"bert.encoder.layer.{{}}.{part.replace('/', '.')}"
    for part in (
        "attention/self/query",
        "attention/self/key",
        "attention/self/value",
        "attention/output/dense",
        "attention/output/LayerNorm",
        "intermediate/dense",
        "output/dense",
        "output/LayerNorm",
    )
}
_GOOGLE |= {
    name: name.replace("/", ".")
    for name in (
        "bert/embeddings/LayerNorm",
        "bert/pooler/dense",
        "cls/predictions",
        "cls/predictions/transform/dense",
        "cls/predictions/transform/LayerNorm",
        "cls/seq_relationship",
    )
}
_GOOGLE |= {"": "classifier", "cls/squad": "qa_outputs"}
_GOOGLE_TABLES = {
    f"bert/embeddings/{table}": f"bert.embeddings.{table}.weight"
    for table in ("word_embeddings", "position_embeddings", "token_type_embeddings")
}
_GARDEN = {
    f"_transformer_layers/{{}}/{theirs}": f"bert.encoder.layer.{{}}.{ours}"
    for theirs, ours in {
        "_attention_layer/_query_dense": "attention.self.query",
        "_attention_layer/_key_dense": "attention.self.key",
        "_attention_layer/_value_dense": "attention.self.value",
        "_attention_layer/_output_dense": "attention.output.dense",
        "_attention_output_dense": "attention.output.dense",
        "_attention_layer_norm": "attention.output.LayerNorm",
        "_intermediate_dense": "intermediate.dense",
        "_output_dense": "output.dense",
        "_output_layer_norm": "output.LayerNorm",
    }.items()
}
_GARDEN |= {
    "_embedding_layer": "bert.embeddings.word_embeddings",
    "_position_embedding_layer": "bert.embeddings.position_embeddings",
    "_type_embedding_layer": "bert.embeddings.token_type_embeddings",
    "_embedding_norm_layer": "bert.embeddings.LayerNorm",
    "_pooler_layer": "bert.pooler.dense",
    "masked_lm/dense": "cls.predictions.transform.dense",
    "masked_lm/layer_norm": "cls.predictions.transform.LayerNorm",
}
_GARDEN_TABLES = {
    "masked_lm/embedding_table": "bert.embeddings.word_embeddings.weight",
    "masked_lm/output_bias.Sbias": "cls.predictions.bias",
}
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
"""The end of the name of an object's variable."""
_NUMBERED = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer", "_embedding_norm_layer")
"""What the first of the numbered layers are."""
_NEXT_SENTENCE = {
    "classification_heads/0/dense": "bert.pooler.dense",
    "classification_heads/0/out_proj": "cls.seq_relationship",
    "next_sentence..pooler_dense": "bert.pooler.dense",
}
"""The head for next sentences has its own pooler in the Model Garden, and the one of the encoder is not trained."""

_MOMENT = re.compile(
    r"/(adam|lamb|adafactor|adagrad|momentum|rmsprop)\w*$|^optimizer/|/\.OPTIMIZER_SLOT/", re.IGNORECASE
)
_COUNTER = re.compile(
    r"^(global_step|save_counter|step|_CHECKPOINTABLE_OBJECT_GRAPH|beta[12]_power|\w*loss_scale\w*|good_steps|bad_steps"
    rf"|local_step|batch_finite|optimizer/_?(iter|iterations|learning_rate|decay|beta_[12]))({_VALUE})?$|/loss_scale\w*$"
)
_COPY = re.compile(r"/(accum|shadow|ExponentialMovingAverage)$")
_LEFT_OUT = (
    ("counters of the training", _COUNTER),
    ("moments of the optimizer", _MOMENT),
    ("averages, gradients and copies of weights", _COPY),
)
_FAMILIES = (
    ("an ALBERT", re.compile(r"/group_0/inner_group_0/|embedding_hidden_mapping_in|^albert/")),
    ("an ELECTRA", re.compile(r"^(electra|generator|discriminator)\w*/")),
    ("a MobileBERT", re.compile(r"^bert/encoder/layer_0/bottleneck/")),
    ("an XLNet", re.compile(r"^model/transformer/layer_0/rel_attn/")),
    ("a T5", re.compile(r"^(encoder|decoder)/block_000/")),
    ("a GPT-2", re.compile(r"^model/h0/")),
)


_POOLER = "_pooler_layer"


@dataclass(frozen=True)
class Named:
    """The variables of a checkpoint by what they are."""

    tensors: Mapping[str, str]
    """The variable of each tensor by transformers' name; a variable that belongs to no BERT has its own name."""
    left_out: Mapping[str, int]
    """What is no weight of the network, and how many variables of it there are."""


def name_all(variables: Mapping[str, tuple[int, ...]]) -> Named:
    """Sort variables, given with their shapes, by what they are.

    Raises `ValueError` if they are those of another network than BERT, or if two are the same tensor.
    """
    kinds = {name: next((kind for kind, pattern in _LEFT_OUT if pattern.search(name)), "") for name in variables}
    if own_pooler := _has_own_pooler(variables):
        kinds |= {name: "pooler that no head uses" for name in variables if _path(name).startswith(f"{_POOLER}/")}
    weights = [name for name, kind in kinds.items() if not kind]
    if family := next((family for family, pattern in _FAMILIES if any(map(pattern.search, weights))), None):
        raise ValueError(f"it is {family}, and of TensorFlow's checkpoints only those of BERT are read")
    tensors: dict[str, str] = {}
    for name in weights:
        theirs = _translated(name, own_pooler) or name
        if theirs in tensors:
            raise ValueError(f"{tensors[theirs]} and {name} are both {theirs}")
        tensors[theirs] = name
    if all(theirs == name for theirs, name in tensors.items()):
        some = ", ".join(weights[:3]) or "none"
        raise ValueError(f"none of its {len(weights):,} variables is known of a BERT; the first are {some}")
    return Named(tensors, Counter(filter(None, kinds.values())))


def stored_shape(theirs: str, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that a variable has in files of transformers, without a dimension for heads and transposed.

    Raises `ValueError` if the variable has too few dimensions.
    """
    if theirs == name:
        return shape
    if not is_transposed(name):
        return (math.prod(shape),) if theirs.endswith(".bias") else shape
    if len(shape) < 2:
        raise ValueError(f"{name} has the shape {shape}, but a kernel has two dimensions or more")
    inputs = math.prod(shape[:-1]) if theirs.endswith("attention.output.dense.weight") else shape[0]
    return (math.prod(shape) // inputs if inputs else 0, inputs)


def is_transposed(name: str) -> bool:
    """Whether a variable of a BERT is stored as the transpose of what files of transformers have."""
    return name.removesuffix(_VALUE).endswith("/kernel")


def _has_own_pooler(variables: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the head for next sentences of a pre-training of the Model Garden has a pooler of its own."""
    paths = {_path(name): shape for name, shape in variables.items() if name.endswith(_VALUE)}
    if any(path.startswith("next_sentence..pooler_dense/") for path in paths):
        return True
    heads = {path.split("/")[1] for path in paths if path.startswith("classification_heads/")}
    classes = paths.get("classification_heads/0/out_proj/bias")
    return heads == {"0"} and classes == (2,) and any(path.startswith("masked_lm/") for path in paths)


def _translated(name: str, own_pooler: bool) -> str | None:
    """Return transformers' name of the tensor of a variable; None if it belongs to no BERT."""
    if name.endswith(_VALUE):
        path, modules, tables = _path(name), _GARDEN | (_NEXT_SENTENCE if own_pooler else {}), _GARDEN_TABLES
    else:
        path, modules, tables = name, _GOOGLE, _GOOGLE_TABLES
    if path in tables:
        return tables[path]
    module, _, parameter = path.rpartition("/")
    pattern, layer = module, ""
    if number := re.search(r"(?<=layer_)\d+(?=/)|(?<=_transformer_layers/)\d+(?=/)", module):
        pattern, layer = f"{module[: number.start()]}{{}}{module[number.end() :]}", number[0]
    if pattern not in modules or parameter not in _PARAMETERS:
        return None
    return f"{modules[pattern].format(layer)}.{_PARAMETERS[parameter]}"


def _path(name: str) -> str:
    """Return the path of an object's variable from the encoder or from its heads, with names for numbered layers."""
    path = re.sub(r"^(model/)?((encoder_network|encoder)/)?", "", name.removesuffix(_VALUE))
    found = re.match(r"layer_with_weights-(\d+)/", path)
    if not found:
        return path
    number, rest = int(found[1]), path[found.end() :]
    if number < len(_NUMBERED):
        return f"{_NUMBERED[number]}/{rest}"
    return f"{_POOLER}/{rest}" if "/" not in rest else f"_transformer_layers/{number - len(_NUMBERED)}/{rest}"
