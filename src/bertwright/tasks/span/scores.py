"""The scores of answers to the held-out questions, with those of never answering, and wrong answers.

Names carry shapes: T tokens of a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.json_values import json_number, parse_json
from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import FOLDER
from bertwright.examples.loader import Heldout
from bertwright.model.model import Model
from bertwright.tasks.classification.class_scores import cross_entropies
from bertwright.tasks.objective import outputs
from bertwright.tasks.span.answer_scores import Answered, AnswerScores, best_threshold, score
from bertwright.tasks.span.examples import NO_ANSWER, SpanExamples
from bertwright.tasks.span.windows import Read, by_window, guesses, read_answers
from bertwright.tasks.task import ERRORS, Evaluation, HeldOut, Scoring

CONTEXT = 120
"""Characters shown on each side of an answer."""


def evaluate(model: Model, heldout: HeldOut, max_answer: int, settings: Scoring) -> Evaluation:
    """Score the answers to the held-out questions; see `Task.evaluate`."""
    examples = SpanExamples.open(heldout.verified(f"{FOLDER}/"), "heldout", heldout.length, heldout.vocab)
    chosen = Heldout.evenly(examples, settings.max_sequences or None).rows
    # With all windows of their texts: only they together show whether there is an answer.
    questions = np.unique(examples.windows[chosen, 0])
    rows = np.flatnonzero(np.isin(examples.windows[:, 0], questions))
    scored = Heldout(examples, rows)
    batches = list(scored.batches(settings.batch))
    logits = by_window(list(outputs(model, batches, heldout.log)), batches)
    counted = {
        "questions": len(questions),
        "sequences": len(rows),
        "repeated": heldout.examples.counts["heldout"]["repeated"],
    }
    losses_W2 = _losses(logits, np.concatenate([batch.sequence_labels for batch in batches]))
    losses = dict(zip(("start_loss", "end_loss"), losses_W2.mean(0).tolist(), strict=True))
    if not all(np.isfinite(each).all() for each in logits):
        undefined = dict.fromkeys((*losses, "exact", "f1"))
        return Evaluation({**undefined, **counted, "untrained": True}, [], "the answers are not numbers (NaN)")
    replies = _replies(scored, logits, max_answer)
    answered = [each.answered for each in replies]
    scores, threshold = _scores(answered)
    scores |= {name: json_number(value) for name, value in losses.items()} | counted
    scores["untrained"] = scores["f1"] <= scores["majority"]
    # The mean over the windows of its text.
    owner_W = np.searchsorted(questions, examples.windows[rows, 0])
    losses_N = np.bincount(owner_W, losses_W2.mean(1)) / np.bincount(owner_W)
    wrong = list(_wrong(replies, losses_N.tolist(), threshold, ERRORS if settings.samples else 0))
    return Evaluation(scores, wrong[: settings.samples], _summary(scores), wrong)


def score_windows(
    logits: Sequence[NDArray[np.float64]], batches: Sequence[MicroBatch], heldout: Heldout, max_answer: int
) -> dict[str, float | None]:
    """Exact match and F1 of the answers to the questions of some windows, from the logits of their batches, [T, 2]
    each; a question of which only some windows are given is answered from these. None if a logit is not finite."""
    if not all(np.isfinite(each).all() for each in logits):
        return {"exact": None, "f1": None}
    scores, _ = _scores([each.answered for each in _replies(heldout, by_window(logits, batches), max_answer)])
    return {name: scores[name] for name in ("exact", "f1")}


class Reply(NamedTuple):
    """The reply to a question."""

    question: str
    context: str
    read: Read
    answered: Answered


def _replies(heldout: Heldout, logits: Sequence[NDArray[np.float64]], max_answer: int) -> list[Reply]:
    """The replies to the questions of held-out windows, in order."""
    examples = heldout.examples
    assert isinstance(examples, SpanExamples)
    known, replies = parse_json(examples.columns.texts.tobytes()), []
    for number, read in sorted(read_answers(examples, heldout.rows, logits, max_answer).items()):
        asked, context = known["questions"][number], known["contexts"][examples.columns.passages[number]]
        replies.append(Reply(asked["question"], context, read, _answered(read, context, asked["answers"])))
    return replies


def _summary(scores: Mapping[str, Any]) -> str:
    tuned = f", no answer above a threshold of {scores['threshold']:.2f} tuned on them" if "threshold" in scores else ""
    return (
        f"exact match {scores['exact']:.4f}, F1 {scores['f1']:.4f} (never answering {scores['majority']:.4f}) on "
        f"{scores['questions']:,} held-out questions{tuned}"
    )


def _scores(answered: Sequence[Answered]) -> tuple[dict[str, Any], float | None]:
    """The scores, from 0 to 1, and the threshold above which no answer is given; None: there is always an answer."""
    unanswerable = [each for each in answered if not each.known]
    majority = {"majority": len(unanswerable) / len(answered), "majority_label": NO_ANSWER}
    if not unanswerable:
        return {**_shares(score(answered)), **majority}, None
    threshold = best_threshold(answered)
    untuned = {f"{name}_no_threshold": value for name, value in _shares(score(answered, 0.0)).items()}
    parts = {"has_answer": [each for each in answered if each.known], "no_answer": unanswerable}
    of_parts = {
        name: {**_shares(found := score(some, threshold)), "questions": found.questions} for name, some in parts.items()
    }
    tuned = {**_shares(score(answered, threshold)), "threshold": threshold, **untuned, **of_parts}
    return {**tuned, **majority}, threshold


def _shares(found: AnswerScores) -> dict[str, float]:
    return {"exact": found.exact / 100, "f1": found.f1 / 100}


def _losses(logits: Sequence[NDArray[np.float64]], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """[W, 2] the cross-entropy of the first and the last token of each window; `labels` is [W, 2]."""
    return np.array([cross_entropies(each_T2.T, label_2) for each_T2, label_2 in zip(logits, labels, strict=True)])


def _answered(read: Read, context: str, known: Sequence[str]) -> Answered:
    if not read.candidates:
        return Answered("", math.inf, known)
    best = read.candidates[0]
    return Answered(context[best.begin : best.end], read.none - best.score, known)


def _wrong(
    replies: Sequence[Reply], losses: Sequence[float], threshold: float | None, most: int
) -> Iterator[dict[str, Any]]:
    """Yield the wrong answers with the highest of the `losses`, those that share no word with a right one first."""
    found = [score([each.answered], threshold) for each in replies]
    wrong = [number for number, each in enumerate(found) if each.exact == 0]
    for number in sorted(wrong, key=lambda number: (found[number].f1, -losses[number]))[:most]:
        question, context, read, given = replies[number]
        none = threshold is not None and given.none_margin > threshold
        yield {
            "source": "held-out",
            "text": f"{question} | {_excerpt(context, read, given.known)}",
            "gold": given.known[0] if given.known else NO_ANSWER,
            "answer": NO_ANSWER if none else given.text,
            "loss": losses[number],
            "top": guesses(context, read, threshold),
        }


def _excerpt(context: str, read: Read, known: Sequence[str]) -> str:
    """The text around the right answer, or around the one that the model prefers."""
    at = context.find(known[0]) if known else -1
    if at < 0:
        at = read.candidates[0].begin if read.candidates else 0
    begin, end = max(at - CONTEXT, 0), at + CONTEXT
    return ("…" if begin else "") + " ".join(context[begin:end].split()) + ("…" if end < len(context) else "")
