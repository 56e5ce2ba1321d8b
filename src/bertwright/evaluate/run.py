"""The stage `evaluate`: scores a trained model on the held-out documents; writes scores.json and predictions.json."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.files import write_json
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.baselines import baselines, majority
from bertwright.evaluate.characters import bits_per_character, entry_lengths
from bertwright.evaluate.classification import answers, scores_of, shown
from bertwright.evaluate.config import VERSION, EvaluateConfig, Inputs, sections
from bertwright.evaluate.predictions import answer, cloze_question, heldout_questions
from bertwright.evaluate.shapes import BASELINES, CLASSIFIER_SCORES, by_chance, untrained
from bertwright.evaluate.verdict import verdict
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import PAIRS
from bertwright.examples.frequencies import training_counts
from bertwright.examples.heldout_loader import heldout_batches
from bertwright.examples.labelled.data import FOLDER, LabelledSet
from bertwright.examples.labelled.loader import heldout_labelled
from bertwright.examples.store import Store
from bertwright.model.batch import PackedBatch, packed
from bertwright.model.classifier import SequenceClassifier
from bertwright.model.config import kernel_for
from bertwright.model.device import resolve_device
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model, load_network
from bertwright.objectives.pretraining import PreTraining
from bertwright.objectives.scores import score
from bertwright.vocab.check_same_vocabulary import check_same_vocabulary
from bertwright.vocab.tokenizer import load_tokenizer


def run(config: EvaluateConfig, length: int, inputs: Inputs, context: StageContext) -> Artifact:
    """Score the trained model on held-out sequences of `length` tokens; the scores are also the artifact's counts.

    Raises `RecipeError` for a cloze line longer than the model's positions and for a device that is not available.
    """
    scored = identity(config, length, inputs.fingerprints)
    return build(context.out, scored, context.log, lambda draft: _make(config, length, inputs, draft, context.log))


def identity(config: EvaluateConfig, length: int, inputs: Mapping[str, str]) -> Identity:
    """What determines the scores; `inputs` has the fingerprints of "train", "examples" and "vocab"."""
    needed = {name: inputs[name] for name in ("train", "examples", "vocab")}
    return Identity("evaluate", VERSION, sections(config, length), needed)


def _make(config: EvaluateConfig, length: int, inputs: Inputs, draft: Path, log: Log) -> dict[str, Any]:
    train, examples, vocab = inputs.train, inputs.examples, inputs.vocab
    # Ids of another vocabulary would be accepted, and the scores would be silently wrong.
    check_same_vocabulary(train, vocab)
    _verify(vocab, "")
    if "labels" in examples.counts:
        return _classified(config, length, inputs, draft, log)
    for prefix in ("plans/heldout/", "store/heldout."):  # of every length: the scores depend on what is held out
        _verify(examples, prefix)
    heldout, tokenizer = Store.open(examples, "heldout", vocab), load_tokenizer(vocab)
    most = config.max_sequences or None
    # The rate is a setting of this stage, independent of training, so that runs with the same rate can be compared.
    batches = list(heldout_batches(examples, length, length, config.mask_rate, config.batch, most))
    _verify(train, "model/")
    device = resolve_device(config.device)
    model = load_model(train.path / "model", kernel_for(device.type)).to(device)
    positions = model.config.max_position_embeddings
    questions = [cloze_question(line, tokenizer, positions) for line in config.cloze]
    questions += heldout_questions(heldout, tokenizer, config.samples, positions)
    task = PAIRS.get(examples.manifest["config"]["examples"]["plan"], "nsp")
    scores = _scores(model, task, batches, training_counts(examples), log)
    scores["most_common_token"] = tokenizer.vocabulary[scores.pop("most_common_id")]
    scores["untrained"] = untrained(scores["mlm_loss"], scores["unigram_loss"])
    labels = np.concatenate([batch.labels for batch in batches])
    scores["bits_per_character"] = bits_per_character(scores["mlm_loss"], labels, entry_lengths(tokenizer.vocabulary))
    # Copied here: readers of the scores alone must see how much of the text was repeated, and what is unfinished.
    scores["overlap"] = examples.counts["heldout_contamination"]
    if note := train.counts.get("unfinished"):
        scores["unfinished"] = note
    write_json(draft / "scores.json", scores)
    write_json(draft / "predictions.json", answer(model, questions, tokenizer))
    loss = "NaN" if scores["mlm_loss"] is None else f"{scores['mlm_loss']:.3f}"
    log.say(f"evaluate: loss {loss} (unigram {scores['unigram_loss']:.3f})")
    log.say(f"evaluate: {verdict(scores)}")
    return scores


def _classified(config: EvaluateConfig, length: int, inputs: Inputs, draft: Path, log: Log) -> dict[str, Any]:
    """Score a classifier on the held-out texts, cut to `length` tokens."""
    train, examples, vocab = inputs.train, inputs.examples, inputs.vocab
    _verify(examples, f"{FOLDER}/")
    _verify(train, "model/")
    device = resolve_device(config.device)
    model = load_network(train.path / "model", kernel_for(device.type)).to(device)
    assert isinstance(model, SequenceClassifier)
    batches = list(heldout_labelled(examples, length, config.batch, config.max_sequences or None))
    right = np.concatenate([batch.sequence_labels for batch in batches])
    scores = scores_of(answers(model, batches, log), right, examples)
    scores = {name: _finite(value) if isinstance(value, float) else value for name, value in scores.items()}
    scores["untrained"] = by_chance(scores)
    if note := train.counts.get("unfinished"):
        scores["unfinished"] = note
    write_json(draft / "scores.json", scores)
    heldout = LabelledSet.open(examples, "heldout", vocab)
    write_json(draft / "predictions.json", list(shown(model, heldout, length, config.samples, load_tokenizer(vocab))))
    log.say(f"evaluate: {', '.join(_beside_baselines(scores))} on {scores['sequences']:,} held-out texts")
    log.say(f"evaluate: {verdict(scores)}")
    return scores


def _beside_baselines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Each score of a classifier, with that of a constant answer."""
    for name, title in {**CLASSIFIER_SCORES, "regression_loss": "squared error"}.items():
        if name in scores:
            value, baseline = scores[name], scores.get(BASELINES.get(name, ""), 0.0)
            yield f"{title} {'undefined' if value is None else f'{value:.4f}'} (constant answer {baseline:.4f})"


def _verify(artifact: Artifact, prefix: str) -> None:
    """Raise `ArtifactError` if a file whose name begins with `prefix` differs from what was sealed."""
    for name in artifact.names(prefix):
        artifact.file(name)


def _scores(
    model: PreTrainingModel, task: str, batches: Sequence[MicroBatch], counts: NDArray[np.int64], log: Log
) -> dict[str, Any]:
    """The model's scores with baselines on exactly the same masked tokens and pairs; `task` names the meaning of the
    pair labels, and `counts` [V] has the frequency of each entry in the training text."""
    objective = PreTraining(model.nsp is not None, task)
    scores: dict[str, Any] = dict(score(objective, model, _on_device(batches, model, log)))
    scores["sequences"] = sum(len(batch.sequence_weights) for batch in batches)
    scores["perplexity"] = _finite(np.exp(scores["mlm_loss"]))
    scores |= {name: _finite(value) for name, value in scores.items() if name.endswith("_loss") and value is not None}
    # On exactly the masked tokens: scores on other tokens would not be comparable.
    scores |= baselines(counts, np.concatenate([batch.labels for batch in batches]))
    pairs = np.concatenate([batch.sequence_labels[batch.sequence_weights > 0] for batch in batches])
    # Keys are always present, possibly null, so that readers find the same keys in every run.
    none = dict.fromkeys(("nsp_loss", "nsp_accuracy", "nsp_majority", "nsp_label_share"))
    if model.nsp is None or not len(pairs):
        return scores | none
    labels = {f"{task}_majority": majority(pairs), f"{task}_label_share": round(float(pairs.mean()), 4)}
    return scores | ({} if task == "nsp" else none) | labels


def _finite(value: float) -> float | None:
    """The value, or None if it is not finite: JSON has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None


def _on_device(batches: Sequence[MicroBatch], model: PreTrainingModel, log: Log) -> Iterator[PackedBatch]:
    device = next(model.parameters()).device
    for number, batch in enumerate(batches, start=1):
        yield packed(batch, device)
        log.progress("evaluate", number, len(batches), "batches")
