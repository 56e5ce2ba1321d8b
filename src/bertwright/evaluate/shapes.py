"""The types of the counts in the manifest of `evaluate`, and of `predictions.json`."""

from __future__ import annotations

from typing import Annotated, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Score, Text, Unfinished
from bertwright.corpus.shapes import Overlap


class _OfType(TypedDict):
    precision: Score
    recall: Score
    f1: Score
    entities: Count


class _OfClass(TypedDict):
    precision: Score
    recall: Score
    f1: Score
    support: Count
    """Held-out texts, or words, with the class, label or tag."""


class _Confused(TypedDict):
    right: Text
    answer: Text
    count: Count


class _OfVectors(TypedDict):
    recall_at_1: Score
    recall_at_10: Score
    mrr: Score


class _OfQuestions(TypedDict):
    exact: Score
    f1: Score
    questions: Count


class _OfText(TypedDict):
    text: Text
    """Name of a source of the corpus, or of a text of `evaluate.general`."""
    documents: Count
    """Held-out documents, or those of a general text that training did not read; 0 if they were not counted."""
    predictions: Count
    loss: Score
    """Cross-entropy of the masked tokens after training."""
    before: Score
    """That of the network that training started from, on the same masked tokens; None if there is none."""


class Counts(TypedDict, total=False):
    """The held-out scores of the finished model with their baselines, on the same tokens, pairs or texts: those of
    pre-training, of classes, or of numbers. `scores.json` has the same.

    Losses are in nats, accuracies and shares from 0 to 1; None means not a number (NaN), or without such pairs.
    """

    sequences: Count
    """Held-out sequences scored."""
    predictions: Count
    """Masked tokens scored."""
    pairs: Count
    """Pairs scored."""
    mlm_loss: Score
    """Cross-entropy of the masked tokens."""
    mlm_accuracy: Score
    """Share of masked tokens whose best guess is correct."""
    perplexity: Score
    """e to the power of `mlm_loss`."""
    bits_per_character: Score
    """The loss in bits per character of the masked tokens, white space not counted."""
    unigram_loss: Number
    """`mlm_loss` of predicting the training tokens' frequencies."""
    most_common_token: Text
    most_common_token_accuracy: Score
    """`mlm_accuracy` of always guessing the most common token."""
    nsp_loss: Score
    nsp_accuracy: Score
    """Share of pairs labelled correctly."""
    nsp_majority: Score
    """Share of pairs with the more common label."""
    nsp_label_share: Score
    sop_loss: Score
    sop_accuracy: Score
    """Share of sentence-order pairs labelled correctly."""
    sop_majority: Score
    """Share of those pairs with the more common label."""
    sop_label_share: Score
    by_text: list[_OfText]
    """Each text by itself, if there are several or if training started from another network."""
    no_before: Text
    """Why that network is not scored."""
    unrelated_cosine: Score
    """Mean cosine of the vectors of different held-out sentences: means of the last hidden states."""
    overlap: Overlap
    """Held-out sentences that the training text has too."""
    classification_loss: Score
    """Cross-entropy of the classes of texts."""
    accuracy: Score
    """Share of texts whose class is predicted correctly."""
    f1: Score
    """F1 of class 1 if there are two classes, else the mean over all (macro)."""
    f1_weighted: Score
    """The mean of the F1 of more than two classes, weighted by their held-out texts."""
    f1_micro: Score
    """F1 over all labels of all texts, where a text may have several."""
    f1_macro: Score
    """The mean of the F1 of the labels."""
    labels_loss: Score
    """Binary cross-entropy, the mean over the labels of all texts."""
    classes: dict[Text, _OfClass]
    """Each class, or label, by itself."""
    confused: list[_Confused]
    """The pairs of a right class and another that was answered, in most texts first; with several labels, of one that
    was missed and one that was wrongly given to the same text."""
    confusion_matrix: list[list[Count]]
    """Texts by right class (rows) and answer, if the classes are few."""
    precision: Score
    recall: Score
    f1_conlleval: Score
    types: dict[Text, _OfType]
    tagging_loss: Score
    choice_loss: Score
    """Cross-entropy of the choices of questions."""
    chance: Score
    """`accuracy`, or `recall_at_1`, of choosing at random."""
    recall_at_1: Score
    """Share of anchors whose positive is the nearest of all held-out positives."""
    recall_at_10: Score
    mrr: Score
    """The mean of 1 / rank of the positive."""
    sizes: dict[Text, _OfVectors]
    """The same by the first numbers of the vectors, if several sizes were trained."""
    start_loss: Score
    """Cross-entropy of the first token of answers, per window."""
    end_loss: Score
    start_accuracy: Score
    end_accuracy: Score
    exact: Score
    """Share of questions whose answer is exactly right by SQuAD's rules; `f1` is that of words."""
    questions: Count
    threshold: Score
    """How much higher no answer must score than the best answer to be given, tuned on the same questions."""
    exact_no_threshold: Score
    f1_no_threshold: Score
    has_answer: _OfQuestions
    no_answer: _OfQuestions
    matthews: Score
    """Matthews' correlation of classes, from -1 to 1."""
    majority: Score
    """`accuracy` of always guessing the most common class of the training texts."""
    majority_label: Text
    """That class."""
    majority_f1: Score
    majority_f1_weighted: Score
    majority_f1_micro: Score
    """`f1_micro` of always answering `frequent`."""
    majority_f1_macro: Score
    frequent: Text
    """The most frequent labels of the training texts, as many as have the highest `f1_micro` there as a constant
    answer."""
    frequency_loss: Score
    answered: dict[Text, Count]
    answers: Count
    """Different sets of labels that were answered."""
    repeated: Count
    regression_loss: Score
    """Mean squared error of predicted numbers."""
    pearson: Score
    """Pearson's correlation, from -1 to 1."""
    spearman: Score
    """Spearman's correlation of ranks, from -1 to 1."""
    constant_loss: Score
    """`regression_loss` of always predicting the mean of the training labels."""
    lowest: Score
    highest: Score
    untrained: Flag
    unfinished: Unfinished


class _Evaluate(TypedDict, total=False):
    length: Count
    mask_rate: Number
    samples: Count
    cloze: list[Text]


class Settings(TypedDict, total=False):
    """The settings of an evaluation that others read."""

    evaluate: _Evaluate


class _Guess(TypedDict):
    token: Text
    probability: Annotated[Number, Field(ge=0, le=1)]


class _Prediction(TypedDict, total=False):
    source: Text
    text: Required[Text]
    gold: Required[Text | None]
    top: Required[list[_Guess]]


class _Error(_Prediction):
    """A wrong answer, a line of `errors.jsonl`; the worst come first."""

    answer: Required[Text]
    loss: Required[Number]
    """That of the right answer, in nats; of a number the squared error."""


PREDICTIONS = TypeAdapter(list[_Prediction])
ERROR = TypeAdapter(_Error)
