"""The presentation of masked-language modelling: its scores beside those of word frequencies, its curves, examples and
guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.page.chart import Chart, Series, histogram
from bertwright.page.markup import Content, Element, code, definitions, div, p, plain_table, table
from bertwright.tasks.pretraining.table import table_by_text
from bertwright.tasks.pretraining.verdict import untrained, verdict_on_tokens
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points
from bertwright.vocab.entries import MASK

SUMMARY = (
    "mlm_loss",
    "mlm_accuracy",
    "perplexity",
    "unigram_loss",
    "most_common_token_accuracy",
    "nsp_accuracy",
    "nsp_majority",
)
"""The scores of a summary."""
_SENTENCE_ORDER = ("sop_accuracy", "sop_majority")
"""Additional scores of a summary if the pair task is sentence order."""
_TAKEN = ("mlm_loss", "mlm_accuracy", "nsp_accuracy", "sop_accuracy", "predictions")
"""The scores that training takes."""
COLUMNS = ("documents", "sentences", "tokens")
_ONE_HEAD = "The folder holds the encoder with the masked-token head"
_NO_SEGMENTS = "It has no segments: only the separator marks the two parts of a pair."
_HOLDS = {
    "BertForPreTraining": "The folder holds the encoder with both pre-training heads: masked tokens, {task}.",
    "BertForMaskedLM": f"{_ONE_HEAD}; there is no next-sentence head.",
    "ModernBertForMaskedLM": f"{_ONE_HEAD}. {_NO_SEGMENTS}",
    "DistilBertForMaskedLM": f"{_ONE_HEAD}. {_NO_SEGMENTS} {{learnt}}",
}
_BOTH_HEADS = (
    *(" ", code("BertForPreTraining"), " loads both. ", code("config.json"), " names ", code("BertForMaskedLM")),
    ", which more programs know.",
)
_ORDER = "sentence order (in the head that transformers names next sentence: 1 says that the segments are swapped)"


class PreTrainingSection(TaskSection):
    """See `TaskSection`."""

    compared: ClassVar[Sequence[Score]] = (
        Score("mlm_loss", "masked-token loss (nats)", min, per_token=True),
        Score("mlm_accuracy", "masked-token accuracy", max, per_token=True),
        Score("perplexity", "perplexity", min, per_token=True),
        Score("unigram_loss", "loss of word frequencies alone (nats)"),
        Score("most_common_token_accuracy", "accuracy of the commonest token"),
        Score("nsp_accuracy", "sentence-pair accuracy", max, per_token=True),
        Score("nsp_majority", "accuracy of the commoner label"),
        Score("sop_accuracy", "sentence-order accuracy", max, per_token=True),
        Score("sop_majority", "accuracy of the commoner order"),
    )
    pipeline: ClassVar[str] = "fill-mask"
    answered: ClassVar[tuple[str, str]] = ("sentence", "word")
    learnt: ClassVar[str] = "It learned from text like a BERT, not from a larger network (it is not distilled)."
    """What a card says of a network of DistilBERT's shape."""

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        return "To fill in masked words, and to start from for a task of your own."

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        phases = examples["heldout"].get("phases", {}).values()
        # With a corpus there are no phases here, and documents are held out.
        return "documents" if all("documents" in phase for phase in phases) else "examples"

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`; scores have the `overlap` of the held-out sentences with the training text."""
        if scores.get("step", 0) is None:
            return "It has not been scored yet."
        return " ".join(verdict_on_tokens(scores))

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`; every score that `compared` names, None if training does not take it."""
        row: Mapping[str, Any] = next((row for row in reversed(rows) if "heldout_mlm_loss" in row), {})
        scores = dict.fromkeys(score.key for score in cls.compared)
        return row, scores | {name: row.get(f"heldout_{name}") for name in _TAKEN if name in scores}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the unigram loss of the complete held-out text."""
        row, _ = self.last(rows)
        # Scores that only the stage evaluate takes are None, so the page need not distinguish the two sources.
        scores = dict.fromkeys(SUMMARY) | {name: row.get(f"heldout_{name}") for name in _TAKEN}
        scores["unigram_loss"] = unigram = examples["heldout"]["unigram_loss"]
        scores["overlap"] = examples["heldout_contamination"]
        scores["untrained"] = bool(row) and untrained(row["heldout_mlm_loss"], unigram)
        return scores | {"step": row.get("total_steps"), "phase": row.get("phase", 0)}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`."""
        return {
            **{name: scores[name] for name in SUMMARY},
            # Older scores do not have it.
            "bits_per_character": scores.get("bits_per_character"),
            **({name: scores.get(name) for name in _SENTENCE_ORDER} if _pair_task(scores) == "sop" else {}),
            **({"by_text": scores["by_text"]} if "by_text" in scores else {}),
            "heldout_overlap": scores.get("overlap", {}).get("share"),
        }

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores = run.scores
        loss, unigram = scores["mlm_loss"], scores["unigram_loss"]
        shown = NAN if loss is None else f"{loss:.2f} nats"
        cards = [
            ("masked-token loss", shown, _gap(loss, unigram)),
            ("masked-token accuracy", percent(scores["mlm_accuracy"]), f"{_commonest(scores)}{_overlap(scores)}"),
        ]
        if (accuracy := scores.get(f"{_pair_task(scores)}_accuracy")) is not None:
            order = _plan(run) == "sentence-order"
            name = "sentence-order" if order else "next-sentence"
            cards.append((f"{name} accuracy", percent(accuracy), _labels(run, order)))
        return cards

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        scores, unit = run.scores, self.unit(run.counts("examples"))
        if "evaluate" in run.stages:
            sentence = (
                f"Scores are of {scores['predictions']:,} masked tokens in {scores['sequences']:,} sequences from "
                f"held-out {unit}, which training never saw."
            )
            # Older runs do not have this score; for a NaN loss it is None.
            if (bits := scores.get("bits_per_character")) is not None:
                sentence += f" Their loss is {bits:.2f} bits a character, white space not counted."
            return sentence
        if scores["step"] is None:
            return "The model has not been scored yet."
        return f"Scores are those measured during training on held-out {unit} at step {scores['step']:,}."

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`, with the scores of word frequencies."""
        losses = [key for row in rows[:1] for key in row if key.endswith("_loss") and not key.startswith("heldout_")]
        further = [loss.removesuffix("_loss") for loss in losses if loss not in ("mlm_loss", "nsp_loss", "sop_loss")]
        return [
            _loss(rows, scores["unigram_loss"], boundaries),
            _accuracy(rows, scores, boundaries),
            *(self.loss_chart(term, rows, boundaries) for term in further),
        ]

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how much text there is, and the sequences built from it."""
        return _examples(run)

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """As `TaskSection.right_answers`."""
        return f"{super().right_answers(ranks, of)}, and the word is among the five best in {len(ranks):,}"

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        return (
            "The marked word was hidden from the model. Its five best guesses are shown with their probability; the "
            "right one is set in bold."
        )

    def no_answers(self, settings: Mapping[str, Any]) -> str:
        """As `TaskSection.no_answers`."""
        if not settings.get("samples") and not settings.get("cloze"):
            return "None were requested (evaluate.cloze, evaluate.samples)."
        return (
            "None of the held-out sentences that were tried is suitable: neither short nor long, without unknown "
            "words, and with a word that is one entry of the vocabulary."
        )

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        order = scores.get("sop_accuracy") is not None
        task = _ORDER if order else "next sentence"
        what = _HOLDS[architecture].format(task=task, learnt=self.learnt).rstrip()
        return (what, *_BOTH_HEADS) if architecture == "BertForPreTraining" else what

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        masked = next((text for text in texts if text.count(MASK) == 1), MASK)
        return [f"for guess in model({masked!r}):", "    print(guess['token_str'], guess['score'])"]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        yield p(
            f"{scores['predictions']:,} masked tokens in {scores['sequences']:,} sequences that training never saw."
        )
        yield plain_table(self._score_rows(architecture, scores, counts), ("score", "model", "baseline"))

    def tables(self, scores: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.tables`: the loss of each text, before and after training."""
        yield from table_by_text(scores)

    def _score_rows(
        self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]
    ) -> list[tuple[str, str, str]]:
        commonest = f"{scores['most_common_token_accuracy']:.1%} (commonest token)"
        loss = "NaN" if scores["mlm_loss"] is None else f"{scores['mlm_loss']:.3f}"
        rows = [
            ("masked-token loss (nats)", loss, f"{scores['unigram_loss']:.3f} (unigram)"),
            ("masked-token accuracy", f"{scores['mlm_accuracy']:.1%}", commonest),
        ]
        pairs = (("nsp", "next-sentence"), ("sop", "sentence-order")) if architecture == "BertForPreTraining" else ()
        for task, name in pairs:
            # Held-out documents may be too short for a single pair.
            if (accuracy := scores.get(f"{task}_accuracy")) is not None:
                label = f"{scores[f'{task}_label_share']:.1%} have the label 1"
                majority = f"{scores[f'{task}_majority']:.1%} (commoner label; {label})"
                rows.append((f"{name} accuracy", f"{accuracy:.1%}", majority))
        return rows


def _pair_task(scores: Mapping[str, Any]) -> str:
    """Prefix of the pair scores: sop or nsp (older versions also used nsp for sentence order)."""
    return "sop" if scores.get("sop_accuracy") is not None else "nsp"


def _plan(run: Run) -> str:
    return str(run.stages["examples"].manifest["config"]["examples"]["plan"])


def _gap(loss: float | None, unigram: float) -> str:
    words = f"word frequencies alone: {unigram:.2f}"
    if loss is None:
        return words
    return f"{words}, so {abs(unigram - loss):.2f} {'better' if loss <= unigram else 'worse'}"


def _commonest(scores: Mapping[str, Any]) -> str:
    # Training does not take this score.
    if scores["most_common_token_accuracy"] is None:
        return "of the best guess"
    return f"always guessing “{scores['most_common_token']}”: {percent(scores['most_common_token_accuracy'])}"


def _overlap(scores: Mapping[str, Any]) -> str:
    """How much of the scored text the model may have read: an accuracy on repeated text shows memory."""
    overlap = scores.get("overlap", {})
    if not overlap.get("sentences"):
        return ""
    share, run = percent(overlap["share"]), overlap.get("run", "13 words")
    return f"; {share} of the longer held-out sentences share {run} in a row with the training text"


def _labels(run: Run, order: bool) -> str:
    """The share of the labels in scored and training pairs: an accuracy means nothing without it."""
    label, scores = "swapped" if order else "random", run.scores
    task, length = _pair_task(scores), scored_length(run)
    held, trained = scores.get(f"{task}_label_share"), label_share(run, "train", length)
    # Scores taken during training have no label share; the held-out examples do.
    held = held if held is not None else label_share(run, "heldout", length)
    notes = [] if held is None else [f"{percent(held)} of these pairs are {label}"]
    notes += [] if trained is None else [f"{percent(trained)} of training's"]
    accuracy, majority = scores[f"{task}_accuracy"], scores.get(f"{task}_majority")
    if majority is not None:
        # An accuracy looks like success until the share of the more common label is known.
        than = ", so no better than that" if accuracy <= majority else ""
        notes.append(f"always guessing the more common label: {percent(majority)}{than}")
    return "; ".join(notes)


def scored_length(run: Run) -> int:
    """Maximum length, in tokens, of the held-out sequences that were scored."""
    if "evaluate" in run.stages:
        return int(run.stages["evaluate"].manifest["config"]["evaluate"]["length"])
    return int(run.stages["train"].manifest["config"]["train"]["phases"][run.scores["phase"]]["length"])


def label_share(run: Run, split: str, length: int) -> float | None:
    """The share of pairs of this length whose second segment is random (or swapped), over all passes."""
    sequences = run.counts("examples")[split]["sequences"]
    own: Mapping[str, Any] = sequences.get(f"{length}") or next(
        (of_length for name, of_length in sequences.items() if name.startswith(f"{length}-")), {}
    )
    return own.get("label_share")


def _loss(rows: Rows, unigram: float, boundaries: Sequence[float]) -> Chart:
    last = float(rows[-1]["total_steps"]) if rows else 1.0
    return Chart(
        "Loss of masked tokens",
        "loss (nats)",
        "How surprised the model is by the masked tokens. Below the dashed line it uses the context: "
        "that line is what word frequencies alone achieve on the held-out text." + _not_numbers(rows),
        [
            Series("training", points(rows, "mlm_loss"), "train"),
            Series("held-out", points(rows, "heldout_mlm_loss"), "heldout"),
            Series("word frequencies", [(0.0, unigram), (last, unigram)], "baseline"),
        ],
        lambda y: f"{y:.3g}",
        boundaries=boundaries,
    )


def _accuracy(rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> Chart:
    last, baseline_accuracy = (float(rows[-1]["total_steps"]) if rows else 1.0), scores["most_common_token_accuracy"]
    series = [Series("masked tokens", points(rows, "heldout_mlm_accuracy"), "heldout")]
    # A run without sentence pairs has no such score; an empty curve would look like a failure.
    for task, name in (("nsp", "next sentence"), ("sop", "sentence order")):
        if any(row.get(f"heldout_{task}_accuracy") is not None for row in rows):
            series.append(Series(name, points(rows, f"heldout_{task}_accuracy"), "heldout second"))
    constant = [(0.0, baseline_accuracy), (last, baseline_accuracy)]
    training = Series("masked tokens, in training", points(rows, "mlm_accuracy"), "train")
    # Only the stage evaluate takes this score: an unfinished training does not have it.
    baseline = [] if baseline_accuracy is None else [Series("commonest token", constant, "baseline")]
    return Chart(
        "Accuracy",
        "accuracy",
        "How often the best guess is right on text that training never saw"
        + (", and in single steps of training, with dropout." if training.points else ".")
        + (" The dashed line always guesses the commonest token." if baseline else ""),
        [*([training] if training.points else []), *series, *baseline],
        percent,
        from_zero=True,
        boundaries=boundaries,
    )


def _not_numbers(rows: Rows) -> str:
    """A sentence saying where there is no loss, "" if nowhere; the curve has gaps there."""
    steps = [
        row["total_steps"] for row in rows for name in ("mlm_loss", "heldout_mlm_loss") if row.get(name, 0) is None
    ]
    where = f"in {len(steps):,} rows, first at step {steps[0]:,}" if steps else ""
    return f" It is not a number (NaN), or nothing was predicted, {where}." if steps else ""


def _examples(run: Run) -> Content:
    """How much text is trained on and held out, and the sequences built from it."""
    counts = run.counts("examples")
    rows = [
        (
            {"train": "training", "heldout": "held out"}[split],
            # Imported examples carry no counts of documents and sentences.
            *(number(counts[split][name]) if name in counts[split] else "–" for name in COLUMNS),
        )
        for split in ("train", "heldout")
    ]
    plans = [
        (f"sequences of set {name}", f"{short_count(sum(per_pass))} in {len(per_pass)} passes")
        for name, per_pass in counts["train"]["rows"].items()
    ]
    imported = [
        (f"{key}.data", f"{short_count(data['examples'])} examples made elsewhere ({data['kind']})")
        for key, data in counts.get("imported", {}).items()
    ]
    # Imported data has segments that need not be sentences.
    overlap, segments = counts["heldout_contamination"], "sentences" if "corpus" in run.stages else "segments"
    repeated = overlap.get("run", "13 words")  # earlier artifacts count words in any language
    return (
        table(("part", *COLUMNS), rows),
        definitions([*plans, *imported, *_held_out(counts["heldout"])]),
        div(_lengths(run), class_="charts"),
        p(
            f"Of {overlap['sentences']:,} held-out {segments} of {repeated} or more, {overlap['found']:,} "
            f"({percent(overlap['share'])}) have {repeated} in a row in common with the training text."
        ),
    )


def _lengths(run: Run) -> Iterator[Element]:
    """A histogram of sequence lengths for each training set, with the share of labels of its pairs."""
    # For sentence order, a negative pair is two neighbours swapped, not a random second segment.
    label = "swapped" if _plan(run) == "sentence-order" else "random"
    for name, sequences in run.counts("examples")["train"]["sequences"].items():
        explanation = f"{sequences['mean_length']:,.1f} tokens in the mean, special ones counted, over all passes."
        if sequences["label_share"] is not None:
            explanation += f" The second segment of {percent(sequences['label_share'])} of the pairs is {label}."
        yield histogram(f"Lengths of set {name}", sequences["lengths"], int(name.partition("-")[0]), explanation)


def _held_out(heldout: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What each phase holds out if there is no corpus to hold documents out of."""
    for key, held in heldout.get("phases", {}).items():
        unit = "documents" if "documents" in held else "examples"
        where = f"a share of {held['share']:g}" if held["share"] else f"{len(held['files']):,} files for testing"
        yield f"{key}.data, held out", f"{short_count(held[unit])} {unit}, {where}"
