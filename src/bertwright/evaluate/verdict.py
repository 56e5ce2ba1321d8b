"""What a model is, in a title, and how good it is, in a sentence: from its numbers, by the rules stated here; decision
0060 has the measurements behind their thresholds.

Masked tokens: a loss less than 0.2 nats below that of word frequencies is no use of the context (`untrained`).
Otherwise the share of masked tokens that are guessed right decides: below 30 % a beginning, below 50 % fit for
experiments, above it a good model of its kind of text. (MLPerf's BERT-large is trained to 72 % on Wikipedia.)
An overlap of held-out and training sentences of 10 % or more is always said with it, because scores of repeated text
show memory.

Classes and numbers: one answer to every text has learned nothing. Scores on fewer than 50 texts decide nothing else. A
correlation of answers and labels (Matthews', Pearson's) of less than 2 / sqrt(texts) is explained by chance. Otherwise
the share of the baseline's errors that the model avoids decides: none, below 25 % little, above it good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.corpus.wikis import wikis
from bertwright.evaluate.shapes import by_chance, one_answer, untrained
from bertwright.examples.information import FEW_TEXTS

FAMILIES = {"bert": "BERT", "modern": "ModernBERT", "distilbert": "DistilBERT"}
"""The name of each family, a value of `model.kind`."""
BEGINNING, EXPERIMENTS = 0.3, 0.5
OVERLAP = 0.1
LITTLE = 0.25
MOST_LABELS = 4
_TOO_FEW = "The held-out texts are too few to judge the model"


def model_title(train: Mapping[str, Any], language: str, labels: Sequence[str]) -> str:
    """What a model is, such as "Hungarian BERT of 4.4 M weights, trained for 2 minutes"; `train` is the manifest of its
    training, `language` its language's code ("": unknown), `labels` a classifier's classes."""
    counts, settings = train["counts"], train["config"]
    # Missing for a BERT, whose kind is the default.
    family = FAMILIES.get(settings.get("model", {}).get("kind", "bert"), "network")
    named = f"{wikis()[language]} {family}" if language in wikis() else family
    if language and language not in wikis():
        named += f" for the language “{language}”"
    size = f"{named} of {_weights(counts['parameters'])} weights"
    if labels:
        size += f" that predicts “{_short(labels[0])}”" if len(labels) == 1 else f" that tells {_listed(labels)} apart"
    how = "trained"
    if counts.get("init"):
        how = "fine-tuned" if labels else "trained further"
    if settings.get("train", {}).get("objective", {}).get("kind") == "distillation":
        how = "taught by another network"
    return f"{size}, {how} for {_time(training_seconds(counts))}{' so far' if counts.get('unfinished') else ''}"


def training_seconds(counts: Mapping[str, Any]) -> float:
    """The seconds of a training with these counts, scoring and saving included if they were measured."""
    return float(3600 * counts["hours"] if "hours" in counts else counts["train_seconds"])


def start_of(init: Mapping[str, str] | None) -> str:
    """What training started from, and which parts were drawn or left out; `init` is the count of the training."""
    if init is None:
        return "random weights"
    drawn = f"; random weights for {init['drawn']}" if "drawn" in init else ""
    left_out = f"; without its {init['left_out']}" if "left_out" in init else ""
    # A folder may be moved; the fingerprint identifies the training.
    return f"{init['folder']} (fingerprint {init['fingerprint'][:12]}){drawn}{left_out}"


def verdict(scores: Mapping[str, Any]) -> str:
    """How good a model with these scores is; for masked tokens they have the `overlap` of the held-out sentences with
    the training text."""
    if "regression_loss" in scores:
        return " ".join(_of_numbers(scores))
    if "classification_loss" in scores or "accuracy" in scores:
        return " ".join(_of_classes(scores))
    if scores.get("step", 0) is None:
        return "It has not been scored yet."
    return " ".join(_of_tokens(scores))


def _of_tokens(scores: Mapping[str, Any]) -> Iterator[str]:
    loss, unigram, accuracy = scores["mlm_loss"], scores["unigram_loss"], scores["mlm_accuracy"]
    if untrained(loss, unigram):
        said = "NaN" if loss is None else f"{loss:.2f} nats"
        yield "The model has not learned to use the context."
        yield (
            f"Its held-out loss, {said}, is not clearly below {unigram:.2f}, the loss of word frequencies alone: its "
            "guesses are those of an untrained model."
        )
        return
    if accuracy < BEGINNING:
        yield "A beginning: the model uses the context, but knows little of the language."
    elif accuracy < EXPERIMENTS:
        yield "Fit for experiments: the model knows common words and phrases, but no more."
    else:
        yield "A good model of its kind of text."
    common = scores.get("most_common_token_accuracy")
    beside = "" if common is None else f", where the commonest token alone would be right for {_percent(common)}"
    yield f"Its first guess is right for {_percent(accuracy)} of the masked tokens{beside}."
    overlap = scores.get("overlap", {})
    if (share := overlap.get("share", 0)) >= OVERLAP:
        run = overlap.get("run", "13 words")
        yield (
            f"But {_percent(share)} of the held-out sentences of {run} or more share {run} in a row with the training "
            "text, so a part of this is memory."
        )


def _of_classes(scores: Mapping[str, Any]) -> Iterator[str]:
    accuracy, answered = scores.get("accuracy"), scores.get("answered", {})
    if accuracy is None:
        yield "Not usable: its answers are not numbers (NaN)."
        return
    texts, majority = scores["sequences"], scores.get("majority")
    always = f"always answering “{_short(scores.get('majority_label', ''))}” would be right for"
    beside = "" if majority is None else f", where {always} {_percent(majority)}"
    right = f"right for {_percent(accuracy)} of {texts:,} held-out texts{beside}"
    if one_answer(scores):
        given = next(label for label, count in answered.items() if count)
        yield (
            f"The model has learned nothing: it answers “{_short(given)}” to every text, and no second class is "
            f"predicted. It is {right}."
        )
    elif texts < FEW_TEXTS:
        yield f"{_TOO_FEW}: it is {right}."
    elif by_chance(scores):
        yield f"Chance explains the answers of the model, so it has learned nothing that can be shown: it is {right}."
    elif majority is None:
        yield f"The model is {right}."
    elif accuracy <= majority:
        yield f"The model has learned something, but is no more often right than a constant answer: it is {right}."
    else:
        yield f"{_better((accuracy - majority) / (1 - majority))}: it is {right}."
    never = [label for label, count in answered.items() if not count]
    if never and len(never) < len(answered) - 1:
        yield f"It never answers {_listed(never, 'or')}."
    yield from _repeated(scores)


def _of_numbers(scores: Mapping[str, Any]) -> Iterator[str]:
    loss, constant = scores["regression_loss"], scores.get("constant_loss")
    if loss is None:
        yield "Not usable: its answers are not numbers (NaN)."
        return
    beside = "" if constant is None else f", that of always answering the mean of the training texts {constant:.3f}"
    error = f"its mean squared error on {scores['sequences']:,} held-out texts is {loss:.3f}{beside}"
    if one_answer(scores):
        yield f"The model has learned nothing: it answers {scores['highest']:.3g} to every text; {error}."
    elif scores["sequences"] < FEW_TEXTS:
        yield f"{_TOO_FEW}: {error}."
    elif by_chance(scores):
        yield f"Chance explains the answers of the model, so it has learned nothing that can be shown: {error}."
    elif constant is None:
        yield f"{error[0].upper()}{error[1:]}."
    elif loss >= constant:
        yield f"The model has learned something, but is no better than a constant answer: {error}."
    else:
        yield f"{_better(1 - loss / constant)}: {error}."
    yield from _repeated(scores)


def _better(avoided: float) -> str:
    """How clearly a model beats a constant answer, of whose errors it avoids a share."""
    return f"The model {'is a little better than' if avoided < LITTLE else 'clearly beats'} a constant answer"


def _repeated(scores: Mapping[str, Any]) -> Iterator[str]:
    if scores.get("repeated"):
        yield f"{scores['repeated']:,} of the held-out texts also occur in the training texts, word for word."


def _weights(number: int) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number}"


def _time(seconds: float) -> str:
    """Seconds in the unit that keeps the number small, such as "2 minutes"."""
    for size, unit in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            amount = seconds / size
            return f"{amount:.1f} {unit}" if amount < 9.95 and unit != "minutes" else f"{amount:.0f} {unit}"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def _listed(labels: Sequence[str], last: str = "and") -> str:
    """Classes in a row, of many only the first ones."""
    named = [f"“{_short(label)}”" for label in labels[:MOST_LABELS]]
    if len(labels) > MOST_LABELS:
        named.append(f"{len(labels) - MOST_LABELS:,} more classes")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} {last} {named[-1]}"


def _short(label: str) -> str:
    return label if len(label) <= 40 else f"{label[:39]}…"


def _percent(share: float) -> str:
    return f"{share * 100:.1f}\u00a0%"
