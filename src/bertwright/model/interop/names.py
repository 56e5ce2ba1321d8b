"""Conversion of tensor names and class names to and from another program, for networks that are otherwise the same.

Imports torch only to convert tensors: names alone are matched when a recipe is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bertwright.core.errors import ArtifactError
from bertwright.model.family import ANSWERS, Described, Head, Labels

if TYPE_CHECKING:
    from torch import Tensor


_BIAS = "mlm.bias"


@dataclass(frozen=True)
class Names:
    """The names of a family's tensors here and in stock transformers. `to_ours` is the inverse of `to_theirs`."""

    what: str
    """Description of the networks that convert, for messages."""
    pairs: tuple[tuple[str, str], ...]
    """(ours, theirs), each the part of a name before its last dot; {} is a layer's number."""
    base: str
    """The first part of the names of the encoder's tensors in transformers' files; absent from the files of an encoder
    that was saved without a head."""
    embedding: str
    """This project's name of the token embedding."""
    tied: Mapping[str, str] = field(default_factory=dict)
    """Copies of tied tensors that transformers' files may have, and the tensor that each must equal."""
    span: str = "qa_outputs"
    """The name of the classifier of tokens in transformers' class for questions."""
    made_anew: tuple[str, ...] = ()
    """Tensors of transformers' files that hold no weights."""

    def to_theirs(self, state: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """Return the tensors of a `state_dict` under transformers' names.

        `vocab_size` removes the rows that pad the vocabulary, so that the softmax no longer includes them; the logits
        of real tokens are unchanged. If unset, all rows are kept.
        """
        # Without this check, the last entries of a larger vocabulary would have no embedding.
        rows = len(state[self.embedding])
        if vocab_size is not None and vocab_size > rows:
            raise ArtifactError(
                f"the model has {rows} vocabulary rows, not {vocab_size}; give the vocabulary of that model"
            )
        theirs = dict(self.pairs)
        renamed: dict[str, Tensor] = {}
        for name, tensor in state.items():
            if (there := _translated(name, theirs)) is None:
                raise ArtifactError(f"tensor {name!r} is not part of {self.what}; only such a model can be converted")
            renamed[there] = tensor[:vocab_size].clone() if name in (self.embedding, _BIAS) else tensor
        return renamed

    def our_names(self, names: Iterable[str]) -> dict[str, str | None]:
        """Map the names in a file of transformers to this project's names; None: not part of this network.

        Also reads the `gamma` and `beta` of files converted from TensorFlow, and files of an encoder alone. Copies of
        tied tensors, and tensors that hold no weights, are left out.
        """
        ours, dropped = {theirs: ours for ours, theirs in self.pairs}, {*self.tied, *self.made_anew}
        complete = self._completed(names)
        return {name: _translated(full, ours) for name, full in complete.items() if full not in dropped}

    def to_ours(self, tensors: Mapping[str, Tensor], vocab_size: int | None = None) -> dict[str, Tensor]:
        """Return transformers' tensors under this project's names, as `our_names` maps them.

        Raises `ArtifactError` for a copy of a tied tensor that differs from it, a name of another network, and a tensor
        with values that are no numbers or are infinite, which would spread to every state.
        `vocab_size` pads the vocabulary to that size with zero embeddings, whose bias of -10000 gives them no
        probability.
        """
        import torch

        complete = {full: tensors[name] for name, full in self._completed(tensors).items()}
        for copy, original in self.tied.items():
            if copy in complete and not torch.equal(complete[copy], complete[original]):
                raise ArtifactError(
                    f"{copy} differs from {original}; only a model with a tied decoder can be converted"
                )
        state: dict[str, Tensor] = {}
        for name, ours in self.our_names(tensors).items():
            if ours is None:
                raise ArtifactError(f"tensor {name!r} is not part of {self.what}; only such a model can be converted")
            if wrong := int((~torch.isfinite(tensors[name])).sum()):
                raise ArtifactError(
                    f"tensor {name!r} has {wrong:,} values that are infinite or not a number; give a checkpoint from "
                    "before its training diverged, or a copy that is not damaged"
                )
            state[ours] = tensors[name]
        return state if vocab_size is None else self._padded(state, vocab_size)

    def _completed(self, names: Iterable[str]) -> dict[str, str]:
        """Map each name in a file to its present form, with the part that the files of an encoder alone leave out."""
        present = {name: _today(name) for name in names}
        if any(name.startswith(f"{self.base}.") for name in present.values()):
            return present
        encoder = {
            theirs.removeprefix(f"{self.base}.") for _, theirs in self.pairs if theirs.startswith(f"{self.base}.")
        }
        encoder |= {name.removeprefix(f"{self.base}.").rpartition(".")[0] for name in self.made_anew}
        return {name: f"{self.base}.{full}" if _pattern(full)[0] in encoder else full for name, full in present.items()}

    def _padded(self, state: dict[str, Tensor], vocab_size: int) -> dict[str, Tensor]:
        import torch

        embeddings = state[self.embedding]
        rows = vocab_size - len(embeddings)
        if rows < 0:
            raise ArtifactError(f"the model has {-rows} more vocabulary rows than {vocab_size}; request all of them")
        if rows and _BIAS not in state:
            # The logits of padding rows would be 0, and nothing would exclude them from the softmax.
            raise ArtifactError(f"the model has no decoder bias, so its vocabulary cannot be padded to {vocab_size}")
        padded = {self.embedding: torch.cat([embeddings, embeddings.new_zeros(rows, embeddings.shape[1])])}
        if _BIAS in state:
            # With a bias of 0, rows without a token would get a share of every softmax.
            bias = state[_BIAS]
            padded[_BIAS] = torch.cat([bias, bias.new_full((rows,), -10000.0)])
        return state | padded


def _today(name: str) -> str:
    return re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name))


def _translated(name: str, names: Mapping[str, str]) -> str | None:
    pattern, layer, parameter = _pattern(name)
    return f"{names[pattern].format(layer)}.{parameter}" if pattern in names else None


def _pattern(name: str) -> tuple[str, str, str]:
    """Split a name into the module's pattern, with {} for a layer's number; that number; and the parameter."""
    module, _, parameter = name.rpartition(".")
    layer = re.search(r"\.(\d+)\.", module)
    return (module.replace(layer[0], ".{}."), layer[1], parameter) if layer else (module, "", parameter)


TASKS: Mapping[Head, str] = MappingProxyType(
    {
        "sequence": "SequenceClassification",
        "several": "SequenceClassification",
        "token": "TokenClassification",
        "span": "QuestionAnswering",
        "choice": "MultipleChoice",
    }
)
"""The ends of the names of transformers' classes with a classifier."""
SEVERAL = "multi_label_classification"
"""The `problem_type` of transformers' configurations of the head `several`."""


_TASK = re.compile(rf"For({'|'.join(TASKS.values())})$")


def task_in(settings: Mapping[str, Any]) -> str:
    """The task of a configuration of transformers, as it names classes ("SequenceClassification"); "" for
    pre-training, for vectors, and if no class is named."""
    names = settings.get("architectures")
    found = (_TASK.search(str(name)) for name in names) if isinstance(names, list) else iter(())
    return next((match[1] for match in found if match), "")


def head_in(settings: Mapping[str, Any], task: str) -> Head:
    """The classifier that a configuration of transformers describes, given its task."""
    if settings.get("problem_type") == SEVERAL and task == TASKS["several"]:
        return "several"
    return next((head for head, name in TASKS.items() if name == task), "sequence")


def labels_in(settings: Mapping[str, Any], head: Head, rows: int) -> Labels:
    """What a classifier with so many rows predicts, named as in a configuration of transformers: the inverse of
    `classes`."""
    if head in ANSWERS:
        return ANSWERS[head]
    given = settings.get("id2label")
    names = given if isinstance(given, dict) else {}
    return tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(rows))


def classes(labels: Labels, head: Head) -> Mapping[str, Any]:
    """Return the keys of config.json that name the classes and say how to interpret their logits."""
    if head not in ("sequence", "several", "token"):
        return {}
    named = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if head == "token":
        return named
    one = "regression" if len(labels) == 1 else "single_label_classification"
    return {**named, "problem_type": SEVERAL if head == "several" else one}


def architecture(network: str, config: Described) -> str:
    """Return the name of transformers' class of a family, such as "Bert", with the heads that a network has."""
    if config.gives_vectors:
        return f"{network}Model"
    return f"{network}For{TASKS[config.head] if config.labels else 'MaskedLM'}"


def of_encoder(names: Names) -> Names:
    """Return the names of an encoder's tensors in the file of transformers' class without a head."""
    prefix = f"{names.base}."
    pairs = tuple((ours, theirs.removeprefix(prefix)) for ours, theirs in names.pairs if theirs.startswith(prefix))
    return replace(names, pairs=pairs, tied={}, made_anew=())


def of_task(names: Names, task: str) -> Names:
    """Return the names of a classifier's tensors for the `task` by which transformers' class is named."""
    if task != TASKS["span"]:
        return names
    pairs = tuple((ours, names.span if theirs == "classifier" else theirs) for ours, theirs in names.pairs)
    return replace(names, pairs=pairs)
