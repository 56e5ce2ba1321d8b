"""What is said of models, good and bad, from their scores alone."""

from typing import Any

from tests.rows import each_row

from bertwright.examples.labelled.config import Columns, LabelledTexts
from bertwright.tasks.classification.section import ClassificationSection
from bertwright.tasks.classification.verdict import by_chance, one_answer
from bertwright.tasks.pretraining.section import PreTrainingSection
from bertwright.tasks.section import TaskSection
from bertwright.tasks.title import model_title

TOKENS = {"mlm_loss": 2.3, "unigram_loss": 6.0, "mlm_accuracy": 0.628, "most_common_token_accuracy": 0.06}
CLASSES = {
    "classification_loss": 0.5,
    "accuracy": 0.9,
    "f1": 0.9,
    "matthews": 0.7,
    "majority": 0.6,
    "majority_label": "neg",
    "answered": {"neg": 550, "pos": 450},
    "sequences": 1000,
}
NUMBERS = {
    "regression_loss": 1.0,
    "constant_loss": 4.0,
    "pearson": 0.8,
    "lowest": 0.5,
    "highest": 4.5,
    "sequences": 1000,
}


def said(scores: dict[str, Any], **changes: Any) -> str:
    texts = LabelledTexts(("neg", "pos"), (Columns("label", "text"),))
    tokens = "mlm_loss" in scores
    section: TaskSection = PreTrainingSection() if tokens else ClassificationSection(texts)
    return section.verdict(scores | changes).replace("\u00a0", " ")


@each_row(
    ("changes", "begins"),
    [
        ({}, "A good model of its kind of text. Its first guess is right for 62.8 % of the masked tokens, where the"),
        ({"mlm_accuracy": 0.45}, "Fit for experiments"),
        ({"mlm_accuracy": 0.2}, "A beginning"),
        ({"mlm_loss": 5.9}, "The model has not learned to use the context. Its held-out loss, 5.90 nats, is not clear"),
        ({"mlm_loss": None}, "The model has not learned to use the context. Its held-out loss, NaN, is not clearly be"),
        ({"step": None, "mlm_loss": None}, "It has not been scored yet."),
    ],
)
def test_masked_tokens(changes: dict[str, Any], begins: str) -> None:
    assert said(TOKENS, **changes).startswith(begins)


def test_vectors_that_hardly_differ_are_named_with_the_remedy() -> None:
    assert said(TOKENS, unrelated_cosine=0.934).endswith(
        "Unrelated sentences have a mean cosine of 0.93: do not compare them by it; train vectors with "
        "`bertwright embed RUN`, or subtract the mean vector."
    )
    assert all("cosine" not in said(TOKENS, unrelated_cosine=value) for value in (0.9, None))


def test_repeated_text_is_reported_beside_the_score() -> None:
    few, many = ({"overlap": {"share": share, "sentences": 9, "run": "26 characters"}} for share in (0.02, 0.435))
    assert "memory" not in said(TOKENS, **few)
    assert said(TOKENS, **many).endswith(
        "But 43.5 % of the held-out sentences of 26 characters or more share 26 characters in a row with the training "
        "text, so a part of this is memory."
    )


RIGHT = "right for 60 % of 1,000 held-out texts, where always answering “neg” would be right for 60 %."


@each_row(
    ("changes", "wanted"),
    [
        ({}, "The model clearly beats a constant answer: it is right for 90 % of 1,000 held-out texts, where always"),
        ({"accuracy": 0.65}, "The model is a little better than a constant answer: it is right for 65 %"),
        ({"accuracy": 0.6, "matthews": 0.2}, "learned something, but is no more often right than a constant answer"),
        ({"accuracy": 0.6, "matthews": 0.06}, f"Chance explains the answers of the model, so it has learned nothing "
         f"that can be shown: it is {RIGHT}"),
        ({"accuracy": 0.6, "matthews": None, "answered": {"neg": 1000, "pos": 0}}, f"The model has learned nothing: it "
         f"answers “neg” to every text, and no second class is predicted. It is {RIGHT}"),
        ({"accuracy": None, "matthews": None}, "Not usable: its answers are not numbers (NaN)."),
        ({"answered": {"neg": 1, "pos": 999, "a": 0, "b": 0}}, "It never answers “a” or “b”."),
        ({"sequences": 49, "accuracy": 1.0, "matthews": 1.0}, "The held-out texts are too few to judge the model: it "
         "is right for 100 % of 49 held-out texts, where always"),
        ({"sequences": 50}, "The model clearly beats a constant answer: it is right for 90 % of 50"),
        ({"sequences": 4, "matthews": None, "answered": {"neg": 4, "pos": 0}}, "it answers “neg” to every text"),
        ({"repeated": 43}, "43 of the held-out texts also occur in the training texts, word for word."),
    ],
)  # fmt: skip
def test_classes(changes: dict[str, Any], wanted: str) -> None:
    assert wanted in said(CLASSES, **changes)


def test_before_the_stage_evaluate_nothing_is_invented() -> None:
    scores = {"classification_loss": 0.5, "accuracy": 0.9, "sequences": 100}
    assert said(scores) == "The model is right for 90 % of 100 held-out texts."
    assert not by_chance(scores)


@each_row(
    ("changes", "wanted"),
    [
        ({}, "The model clearly beats a constant answer: its mean squared error on 1,000 held-out texts is 1.000, that "
         "of always answering the mean of the training texts 4.000."),
        ({"regression_loss": 3.5}, "is a little better than a constant answer"),
        ({"regression_loss": 4.5}, "has learned something, but is no better than a constant answer"),
        ({"sequences": 9, "pearson": 1.0}, "The held-out texts are too few to judge the model: its mean squared error"),
        ({"pearson": 0.05}, "Chance explains the answers"),
        ({"pearson": None, "lowest": 2.31, "highest": 2.32}, "has learned nothing: it answers 2.32 to every text"),
        ({"regression_loss": None, "pearson": None}, "Not usable"),
    ],
)  # fmt: skip
def test_numbers(changes: dict[str, Any], wanted: str) -> None:
    assert wanted in said(NUMBERS, **changes)


def test_one_answer_is_one_class_or_numbers_that_hardly_differ() -> None:
    assert one_answer({"answered": {"a": 0, "b": 7}}) and not one_answer({"answered": {"a": 1, "b": 7}})
    assert one_answer(NUMBERS | {"lowest": 1.0, "highest": 1.05}) and not one_answer(NUMBERS)
    assert not one_answer(NUMBERS | {"lowest": None}) and not one_answer({"mlm_loss": 1.0})


COUNTS = {"parameters": 1_021_000, "hours": 0.0333}


@each_row(
    ("changes", "language", "labels", "wanted"),
    [
        ({}, "hu", (), "Hungarian BERT of 1.02 M weights, trained for 2 minutes"),
        ({"hours": 30.0}, "", (), "BERT of 1.02 M weights, trained for 30 hours"),
        ({"parameters": 900}, "qqq", (), "BERT for the language “qqq” of 900 weights, trained for 2 minutes"),
        ({"unfinished": {"step": 3}}, "hu", (), "Hungarian BERT of 1.02 M weights, trained for 2 minutes so far"),
        ({"init": {"folder": "x"}}, "hu", (), "Hungarian BERT of 1.02 M weights, trained further for 2 minutes"),
        ({"init": {"folder": "x"}}, "", ("a", "b"),
         "BERT of 1.02 M weights that tells “a” and “b” apart, fine-tuned for 2 minutes"),
        ({}, "", ("stars",), "BERT of 1.02 M weights that predicts “stars”, trained for 2 minutes"),
        ({"hours": 100.0}, "", tuple("abcdef"),
         "BERT of 1.02 M weights that tells “a”, “b”, “c”, “d” and 2 more classes apart, trained for 4.2 days"),
    ],
)  # fmt: skip
def test_the_title_describes_the_model(
    changes: dict[str, Any], language: str, labels: tuple[str, ...], wanted: str
) -> None:
    task = {"train": {"objective": {"kind": "classification", "labels": labels}}} if labels else {}
    assert model_title({"counts": COUNTS | changes, "config": task}, language) == wanted


def test_the_family_and_the_teacher_are_in_the_title() -> None:
    config = {
        "model": {"kind": "distilbert"},
        "train": {"objective": {"kind": "distillation", "teacher": "runs/hu/train"}},
    }
    title = model_title({"counts": COUNTS | {"hours": 0.01}, "config": config}, "eu")
    assert title == "Basque DistilBERT of 1.02 M weights, taught by another network for 36 seconds"
