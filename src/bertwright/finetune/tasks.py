"""The tasks that `finetune` knows, and the defaults of each with their source: the one table of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.core.validation_messages import nearest
from bertwright.examples.labelled.config import GLUE
from bertwright.tasks.choice.layout import CAUSES, Layout

Kind = Literal["glue", "tagging", "span", "choice", "classify", "hulu", "embedding"]


class Key(NamedTuple):
    """The value of a recipe's key, and the reason for it, which becomes a comment."""

    value: Any
    why: str = ""


@dataclass(frozen=True)
class FinetuneTask:
    """A task by the name that users give it."""

    name: str
    kind: Kind
    metrics: tuple[str, ...]
    """The scores that are published for it, by their names in `evaluate/scores.json`, the official one first."""
    columns: tuple[tuple[str, ...], ...] = ()
    """For HuLU: alternatives of the keys of text, second text (where texts are pairs) and label."""
    labels: tuple[str, ...] = ()
    """For HuLU: the names of the classes, in the order of their numbers."""
    layout: Layout = field(default_factory=Layout)
    """For choices: the columns that are not guessed."""


_ACCURACY, _MATTHEWS, _F1 = ("accuracy",), ("matthews",), ("f1", "accuracy")
_GLUE = {"cola": _MATTHEWS, "mrpc": _F1, "qqp": _F1, "stsb": ("pearson", "spearman")}
_PAIR = (("premise", "hypothesis", "label"), ("sentence1", "sentence2", "label"))
_NLI = ("not_entailment", "entailment")
TASKS: Mapping[str, FinetuneTask] = {
    task.name: task
    for task in (
        # Wang et al. 2019, table 1.
        *(FinetuneTask(name, "glue", _GLUE.get(name, _ACCURACY)) for name in GLUE),
        FinetuneTask("ner", "tagging", ("f1", "accuracy")),
        FinetuneTask("pos", "tagging", _ACCURACY),
        FinetuneTask("squad", "span", ("f1", "exact")),
        FinetuneTask("swag", "choice", _ACCURACY),
        FinetuneTask("copa", "choice", _ACCURACY, layout=Layout(("premise", "question"), words=CAUSES)),
        FinetuneTask("choice", "choice", _ACCURACY),
        FinetuneTask("classify", "classify", _ACCURACY),
        FinetuneTask("embed", "embedding", ("recall_at_1", "recall_at_10", "mrr")),
        # HuLU (github.com/nytud). The keys of HuCOLA's files differ from those that its README describes.
        FinetuneTask(
            "hucola",
            "hulu",
            _MATTHEWS,
            tuple((text, label) for label in ("label", "sent_label") for text in ("Sent", "sent", "sentence")),
            ("unacceptable", "acceptable"),
        ),
        FinetuneTask("hurte", "hulu", _MATTHEWS, _PAIR, _NLI),
        FinetuneTask("huwnli", "hulu", _ACCURACY, _PAIR, _NLI),
        # SuperGLUE has the mean F1 of the classes for CommitmentBank; HuLU-evaluate prints the weighted one.
        FinetuneTask(
            "hucb", "hulu", ("accuracy", "f1", "f1_weighted"), _PAIR, ("entailment", "contradiction", "neutral")
        ),
        # HuLU-evaluate joins premise, conjunction and choice.
        FinetuneTask(
            "hucopa",
            "choice",
            (*_MATTHEWS, *_ACCURACY),
            layout=Layout(("premise",), ("question",), words={"cause": "mert", "effect": "ezért"}),
        ),
    )
}

_RUN_GLUE = "transformers' run_glue"
_DEVLIN = "Devlin et al. 2019"
_HULU = "HuLU-evaluate"
_USUAL = {
    "length": Key(128, f"{_RUN_GLUE} and run_ner (tokens)"),
    "batch": Key(32, f"{_RUN_GLUE}; {_DEVLIN} §A.3 tries 16 and 32"),
    "learning_rate": Key(2e-5, f"{_RUN_GLUE}; {_DEVLIN} §A.3 tries 5e-5, 3e-5 and 2e-5"),
    "schedule": Key("linear", f"{_DEVLIN} §A.2: down to 0"),
    "warmup": Key(0.1, "Google's run_classifier.py: a tenth of the steps"),
    "epochs": Key(3, f"{_RUN_GLUE}; {_DEVLIN} §A.3 tries 2 to 4"),
}
_RUN_QA = "transformers' run_qa"
_OF_SQUAD = {
    "length": Key(384, f"{_RUN_QA} and Google's run_squad.py (tokens)"),
    "batch": Key(12, f"{_RUN_QA}, for SQuAD"),
    "learning_rate": Key(3e-5, f"{_RUN_QA}, for SQuAD"),
    "warmup": Key(0.1, "Google's run_squad.py: a tenth of the steps"),
    "epochs": Key(2, f"{_RUN_QA}, for SQuAD"),
}
_OF_CHOICE = {
    "length": Key(128, "run_swag.py of pytorch-pretrained-BERT (tokens)"),
    "batch": Key(16, f"{_DEVLIN} §4.4, for SWAG"),
    "learning_rate": Key(2e-5, f"{_DEVLIN} §4.4, for SWAG"),
    "epochs": Key(3, f"{_DEVLIN} §4.4, for SWAG"),
}
_JIANT = "jiant's superglue_bert.conf"
_OF_COPA = {
    "length": Key(256, f"{_JIANT} (tokens)"),
    "batch": Key(4, _JIANT),
    "learning_rate": Key(1e-5, _JIANT),
    "epochs": Key(10, _JIANT),
}
_MINILM = "the card of all-MiniLM-L6-v2"
_OF_PAIRS = {
    "length": Key(128, f"{_MINILM} (tokens)"),
    "batch": Key(256, f"the more pairs are compared, the better; {_MINILM} has 1,024"),
    "micro_batch": Key(32, "bounds the memory, and changes nothing else (Gao et al. 2021, GradCache)"),
    "learning_rate": Key(2e-5, _MINILM),
    "warmup": Key(0.1, "sentence-transformers' examples: a tenth of the steps"),
    "epochs": Key(1, "sentence-transformers' examples of MultipleNegativesRankingLoss"),
}
TEMPERATURE = "Gao, Yao and Chen 2021 (SimCSE); the scale of 20 of sentence-transformers"
"""Where the temperature of pairs is from."""
STRIDE, MAX_QUERY = 128, 64
"""Tokens that windows of a text share, and tokens of a question: those of run_qa and run_squad.py."""
_OF_HULU = {
    "length": Key(256, f"{_HULU} (tokens)"),
    "batch": Key(8, _HULU),
    "learning_rate": Key(2e-5, _HULU),
    "warmup": Key(0.0, _HULU),
    "epochs": Key(6, _HULU),
}
_FEW_TEXTS = {"epochs": Key(5, f"{_RUN_GLUE} for this task")}
_OF_KIND: Mapping[Kind, Mapping[str, Key]] = {
    "hulu": _OF_HULU,
    "span": _OF_SQUAD,
    "choice": _OF_CHOICE,
    "embedding": _OF_PAIRS,
}
_OF_TASK: Mapping[str, Mapping[str, Key]] = {
    "mrpc": _FEW_TEXTS,
    "wnli": _FEW_TEXTS,
    "copa": _OF_COPA,
    "hucopa": _OF_HULU,
}
SMALL = 512
"""The hidden size up to which a network has the settings of Google's miniatures (BERT-Tiny to BERT-Medium)."""
_SMALL = {
    "learning_rate": Key(1e-4, f"Google's miniatures (hidden size up to {SMALL}) try 3e-4, 1e-4, 5e-5 and 3e-5"),
    "epochs": Key(4, f"Google's miniatures (hidden size up to {SMALL})"),
}
_RATES = Key(("2e-5", "3e-5", "5e-5"), f"{_DEVLIN} §A.3")
_SMALL_RATES = Key(
    (*_RATES.value, "1e-4", "3e-4"), f"{_RATES.why}, and Google's miniatures (hidden size up to {SMALL})"
)
_BATCHES = Key(("16", "32"), f"{_DEVLIN} §A.3")
_EPOCHS = Key(("3", "4", "5"), f"{_DEVLIN} §A.3 tries 2 to 4, {_RUN_GLUE} has 3, or 5 for small data")
_PAIR_BATCHES = Key(("256", "1024"), f"{_MINILM} has 1,024")
_PAIR_EPOCHS = Key(("1", "3"), "one pass over many pairs, more over few")
_SPAN_EPOCHS = Key(("2", "3"), f"{_DEVLIN} §4.2 and 4.3")
OPTIMIZER = {
    "kind": Key("adamw", f"{_DEVLIN} §A.2"),
    "weight_decay": Key(0.01, f"{_DEVLIN} §A.2"),
    "max_grad_norm": Key(1.0, "Google's optimization.py"),
}
"""The optimizer of every task."""


def find_task(name: str) -> FinetuneTask:
    """The task of that name; raises `RecipeError` with the similar names if there is none."""
    if name not in TASKS:
        similar = nearest(name, list(TASKS))
        raise RecipeError(f"there is no task {name!r}; {f'{similar}; ' if similar else ''}tasks: {', '.join(TASKS)}.")
    return TASKS[name]


def phase_of(task: FinetuneTask, hidden_size: int, positions: int) -> dict[str, Key]:
    """The keys of the phase for a network with this hidden size, and `positions` as the maximum length (tokens)."""
    keys = {**_USUAL, **_OF_KIND.get(task.kind, {}), **_OF_TASK.get(task.name, {})}
    if hidden_size <= SMALL:
        # No small network needs fewer epochs than a large one; pairs are often many, and one pass over them enough.
        enough = math.inf if task.kind == "embedding" else keys["epochs"].value
        keys |= {name: key for name, key in _SMALL.items() if name != "epochs" or key.value > enough}
    if keys["length"].value > positions:
        keys["length"] = Key(positions, "the model has no more positions (tokens)")
    return keys


def windows_of(length: int) -> dict[str, Key]:
    """The keys of `train.objective` for windows of `length` tokens."""
    if length > STRIDE + MAX_QUERY + 3:
        return {"stride": Key(STRIDE, f"{_RUN_QA}: doc_stride (tokens)")}
    # Three special tokens, and a window that is longer than what it shares with the next.
    quarter = (length - 3) // 4
    why = f"a quarter of {length} tokens; {_RUN_QA} has {STRIDE} with 384"
    return {"stride": Key(quarter, why), "max_query": Key(min(MAX_QUERY, quarter))}


def usual_grid(task: FinetuneTask, hidden_size: int) -> dict[str, Key]:
    """The values of the phase's keys among which papers choose for a network with this hidden size."""
    rates = _SMALL_RATES if hidden_size <= SMALL else _RATES
    if task.kind == "embedding":
        return {"learning_rate": rates, "batch": _PAIR_BATCHES, "epochs": _PAIR_EPOCHS}
    return {"learning_rate": rates, "batch": _BATCHES, "epochs": _SPAN_EPOCHS if task.kind == "span" else _EPOCHS}
