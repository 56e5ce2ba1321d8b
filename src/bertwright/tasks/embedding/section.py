"""The presentation of vectors of texts: how well held-out pairs are found, and the worst errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.examples.information import FEW_TEXTS
from bertwright.page.chart import Chart, Series
from bertwright.page.markup import Content, Element, code, definitions, p, plain_table, table
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points

_TITLES = {"recall_at_1": "recall@1", "recall_at_10": "recall@10", "mrr": "mean reciprocal rank"}


class EmbeddingSection(TaskSection):
    """See `TaskSection`."""

    compared: ClassVar[Sequence[Score]] = (
        *(Score(key, title, max) for key, title in _TITLES.items()),
        Score("contrast_loss", "loss in batches (nats)", min),
        Score("contrast_accuracy", "positives found in batches", max),
        Score("chance", "recall@1 of a guess"),
    )
    pipeline: ClassVar[str] = "sentence-similarity"
    material: ClassVar[str] = "pairs of texts"
    library: ClassVar[str] = "sentence-transformers"
    answered: ClassVar[tuple[str, str]] = ("anchor", "positive")
    all_right: ClassVar[str] = "Every positive is the nearest."

    def __init__(self, settings: EmbeddingConfig) -> None:
        self._settings = settings

    @property
    def official(self) -> str:
        """As `TaskSection.official`."""
        return "recall_at_1"

    @property
    def prompts(self) -> Mapping[str, str]:
        """As `TaskSection.prompts`."""
        prompts = {"query": self._settings.anchor_prompt, "document": self._settings.positive_prompt}
        return prompts if any(prompts.values()) else {}

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        return "pairs"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        return f"{network} that gives vectors of texts, {'fine-tuned' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """As `TaskSection.trained_on`."""
        return "pairs of texts that belong together"

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        return "To find texts that belong to a text, as the positives of its training pairs belong to their anchors."

    @property
    def limit(self) -> str:
        """As `TaskSection.limit`."""
        return "Similar means what its pairs had in common; a high cosine is no proof that two texts say the same."

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`."""
        if "recall_at_1" not in scores:
            return "It has not been scored yet."
        found, chance, pairs = scores["recall_at_1"], scores.get("chance", 0.0), scores.get("sequences", 0)
        if found is None:
            return "Not usable: its vectors are not numbers (NaN)."
        shares = (
            f"{percent(found)} of {pairs:,} held-out anchors have their positive as the nearest of all (chance: "
            f"{percent(chance)}), {percent(scores['recall_at_10'])} among the nearest 10"
        )
        if scores.get("untrained"):
            return f"Chance explains what the model finds, so it has learned nothing that can be shown: {shares}."
        if pairs < FEW_TEXTS:
            return f"The held-out pairs are too few to judge the model: {shares}."
        return f"The model finds texts that belong together: {shares}."

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the baseline that the examples have."""
        row, scores = self.last(rows)
        heldout = examples["heldout"]
        known = {"chance": heldout["chance"]} if scores else {}
        place = {"step": row.get("total_steps"), "phase": row.get("phase", 0)}
        return {**scores, **known, "sequences": heldout["examples"], **place}

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`."""
        row, scores = super().last(rows)
        known = {score.key for score in cls.compared}
        return row, {name: value for name, value in scores.items() if name in known}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`."""
        return super().summary(scores) | {name: scores[name] for name in ("sizes", "repeated") if name in scores}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores = run.scores
        note = f"chance: {percent(scores['chance'])}" if "chance" in scores else ""
        return [
            (_TITLES[key], NAN if scores[key] is None else percent(scores[key]), note if key == "recall_at_1" else "")
            for key in ("recall_at_1", "recall_at_10")
            if key in scores
        ]

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        return f"Scores are of {run.scores['sequences']:,} held-out pairs, which training never saw."

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`."""
        found = [
            Series("training", points(rows, "contrast_accuracy"), "train"),
            Series("held-out", points(rows, "heldout_contrast_accuracy"), "heldout"),
        ]
        about = (
            "How often the positive is the nearest of a batch. Batches of training and of scoring may have other "
            "sizes, and the more texts there are, the harder it is."
        )
        whole = "How often the positive is the nearest of all held-out positives."
        held = [Series("held-out", points(rows, "heldout_recall_at_1"), "heldout")]
        return [
            self.loss_chart("contrast", rows, boundaries),
            Chart("Positives found in batches", "share", about, found, percent, boundaries=boundaries),
            Chart("Recall@1", "recall@1", whole, held, percent, boundaries=boundaries),
        ]

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how many pairs there are, and how long they are."""
        counts = run.counts("examples")
        heldout = counts["heldout"]
        share = "a share of the pairs of the training file, selected by a hash of their groups or anchors"
        parts = {"train": "training", "heldout": "held out"}
        rows = [
            (name, number(counts[split]["examples"]), number(counts[split]["tokens"])) for split, name in parts.items()
        ]
        return (
            table(("part", "pairs", "tokens"), rows),
            definitions([("held out", ", ".join(heldout["files"]) or share)]),
            p(f"Of the held-out pairs, {short_count(heldout['repeated'])} also occur in training, word for word."),
        )

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """As `TaskSection.right_answers`: only errors are shown."""
        return f"The {of:,} pairs to which another text is nearest"

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        return (
            "The anchor, its positive, and the text that is nearer to it; the shares are those of a softmax over these "
            "two at the temperature of training."
        )

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        smaller = list(scores.get("sizes", {}))[1:]
        shorter = f" The first {', '.join(smaller)} numbers of a vector are vectors, too." if smaller else ""
        return (
            "The folder holds the encoder; the vector of a text is the mean of its tokens' states, of length 1.",
            shorter,
        )

    def load(self) -> list[str]:
        """As `TaskSection.load`."""
        return [
            "from sentence_transformers import SentenceTransformer",
            "",
            'model = SentenceTransformer(".")',
            *(
                [f"# model = SentenceTransformer('.', truncate_dim={min(small)})"]
                if (small := self._settings.dimensions)
                else []
            ),
        ]

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        some = [*texts[:3], "a text", "another text", "a third one"][:3]
        if self.prompts:
            return [
                f"query = model.encode_query({some[0]!r})",
                f"documents = model.encode_document({some[1:]!r})",
                "print(model.similarity(query, documents))",
            ]
        return [f"vectors = model.encode({some!r})", "print(model.similarity(vectors, vectors))"]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        yield p(
            f"{scores['sequences']:,} pairs that training never saw: each anchor is to find its positive among those "
            f"of all pairs. A guess finds {percent(scores.get('chance', 0.0))} first."
        )
        by_size = scores.get("sizes") or {"all": scores}
        rows: list[tuple[Content, ...]] = [
            (code(size), *("undefined" if found[key] is None else f"{found[key]:.4f}" for key in _TITLES))
            for size, found in by_size.items()
        ]
        yield plain_table(rows, ("numbers of a vector", *_TITLES.values()))
