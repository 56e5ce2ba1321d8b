"""The scores of a network for vectors on the held-out pairs, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.columns import FOLDER
from bertwright.examples.loader import Heldout
from bertwright.model.model import Model
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.embedding.embedding_scores import Found, candidates, scores_of, search
from bertwright.tasks.embedding.examples import PairExamples
from bertwright.tasks.embedding.objective import Contrast
from bertwright.tasks.objective import outputs
from bertwright.tasks.pretraining.questions import readable
from bertwright.tasks.task import ERRORS, Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer


def evaluate(model: Model, heldout: HeldOut, settings: Scoring, task: EmbeddingConfig) -> Evaluation:
    """Score how well the held-out pairs are found; see `Task.evaluate`."""
    examples = PairExamples.open(heldout.verified(f"{FOLDER}/"), "heldout", heldout.length, heldout.vocab)
    batches = list(Heldout.evenly(examples, settings.max_sequences or None).batches(settings.batch))
    vectors_SH = np.concatenate(list(outputs(model, batches, heldout.log)))
    labels_S3 = np.concatenate([batch.sequence_labels for batch in batches])
    counts = heldout.examples.counts["heldout"]
    sizes = Contrast(task).sizes(vectors_SH.shape[1])
    scores = scores_of(vectors_SH, labels_S3, sizes)
    anchors = np.flatnonzero(labels_S3[:, 0] == 1)
    compared = candidates(labels_S3[anchors, 2], labels_S3[anchors + 1, 2], labels_S3[anchors, 1])
    scores |= {"chance": float((1 / compared).mean()), "repeated": counts["repeated"], "sequences": len(anchors)}
    scores["untrained"] = by_chance(scores)
    worst = list[dict[str, Any]]()
    if settings.samples and scores["recall_at_1"] is not None:
        texts = [ids for batch in batches for ids in np.split(batch.token_ids, batch.cu_seqlens[1:-1])]
        found, tokenizer = search(vectors_SH, labels_S3), load_tokenizer(heldout.vocab)
        worst = list(_worst(found, labels_S3, texts, task.temperature, tokenizer))
    return Evaluation(scores, worst[: settings.samples], _summary(scores), worst)


def _summary(scores: Mapping[str, Any]) -> str:
    if scores["recall_at_1"] is None:
        return "undefined: the vectors are not numbers"
    shares = f"recall@1 {scores['recall_at_1']:.4f} (chance {scores['chance']:.4f}), @10 {scores['recall_at_10']:.4f}"
    return f"{shares}, MRR {scores['mrr']:.4f} on {scores['sequences']:,} held-out pairs"


def by_chance(scores: Mapping[str, Any]) -> bool:
    """Whether chance explains how many positives are found: less than two standard errors more than it gives."""
    found, chance = scores["recall_at_1"], scores["chance"]
    return found is None or found < chance + 2 * math.sqrt(chance * (1 - chance) / scores["sequences"])


def _worst(
    found: Found, labels_S3: NDArray[np.int64], texts: list[NDArray[np.int64]], temperature: float, tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    """Yield the pairs with another text that is nearer, those with the highest loss first: as if only these two were
    compared."""
    anchors, positives = (np.flatnonzero(labels_S3[:, 0] == number) for number in (1, 2))

    def text(row: int) -> str:
        # Without [CLS] and [SEP].
        return readable(tokenizer.decode(texts[row][1:-1]))

    losses = np.logaddexp(0, (found.cosines[:, 1] - found.cosines[:, 0]) / temperature)
    wrong = np.flatnonzero(found.ranks > 1)
    for pair in wrong[np.argsort(-losses[wrong], kind="stable")][:ERRORS].tolist():
        gold, answer, share = text(positives[pair]), text(positives[found.nearest[pair]]), float(np.exp(-losses[pair]))
        yield {
            "source": "held-out",
            "text": text(anchors[pair]),
            "gold": gold,
            "answer": answer,
            "loss": float(losses[pair]),
            "top": [{"token": answer, "probability": 1 - share}, {"token": gold, "probability": share}],
        }
