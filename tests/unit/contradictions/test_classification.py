"""A recipe that classifies texts refuses each setting that would have no effect on it."""

from pathlib import Path
from typing import Any

from tests.rows import each_row
from tests.unit.contradictions.test_sections import PHASE, keys

from bertwright.contradictions.sections import idle_corpus, unsupported_by_comparing, unused_with_own_files
from bertwright.core.artifact import MANIFEST
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig


def mistakes(
    *phases: dict[str, Any],
    examples: dict[str, Any] | None = None,
    evaluate: dict[str, Any] | None = None,
    **keys_: Any,
) -> list[tuple[str, str]]:
    """The refused keys and why, for phases that read the folder "texts" unless they say otherwise."""
    values = [{**PHASE, "data": "texts", **phase} for phase in phases or ({},)]
    objective = {"kind": "classification", "task": "cola"}
    train = TrainConfig.model_validate({"phases": values, "objective": objective, **keys_})
    return list(unused_with_own_files(train, EvaluateConfig(**(evaluate or {})), ExamplesConfig(**(examples or {}))))


def wrong(*phases: dict[str, Any], **given: Any) -> list[str]:
    """The refused keys of `mistakes`."""
    return keys(mistakes(*phases, **given))


def test_labelled_texts_are_enough() -> None:
    assert wrong() == wrong({}, {"length": 32}) == []


def test_questions_with_choices_are_not_packed() -> None:
    choice = {"kind": "choice"}
    assert wrong({"packing": True}, objective=choice) == ["train.phases.0.packing"]
    assert wrong({"packing": True}) == wrong({"micro_tokens": 64}, objective=choice) == []


def test_every_phase_reads_the_same_labelled_texts(tmp_path: Path) -> None:
    assert wrong({"data": None}) == ["train.phases.0.data"]
    assert wrong({}, {"data": "other"}) == ["train.phases.1.data"]
    assert wrong({}, {"data": None}) == ["train.phases.1.data"]
    ((_, text),) = mistakes({}, {"data": "other"})
    assert text.endswith("give texts"), "the data of the first phase"
    (tmp_path / MANIFEST).write_text("{}")
    assert wrong({"data": tmp_path}) == ["train.phases.0.data"], "running text"


@each_row(
    ("phase", "key"),
    [
        ({"masking": {"rate": 0.2}}, "masking"),
        ({"document_range": [0.0, 0.5]}, "document_range"),
        ({"document_range": [0.5, 1.0]}, "document_range"),
        ({"quarantine": True}, "quarantine"),
        ({"target_accuracy": 0.7}, "target_accuracy"),
    ],
)
def test_phase_settings_of_running_text_are_refused(phase: dict[str, Any], key: str) -> None:
    assert wrong({}, phase) == [f"train.phases.1.{key}"]


@each_row(
    ("section", "key", "value"),
    [
        ("examples", "passes", 3),
        ("examples", "plan", "doc-sentences"),
        ("examples", "short_seq_prob", 0.2),
        ("examples", "random_next_prob", 0.4),
        ("examples", "random_label", "google"),
        ("examples", "seed", 5),
        ("evaluate", "mask_rate", 0.2),
        ("evaluate", "cloze", ("the [MASK] .",)),
    ],
)
def test_settings_of_running_text_and_masks_are_refused(section: str, key: str, value: object) -> None:
    given: Any = {section: {key: value}}
    assert wrong(**given) == [f"{section}.{key}"]


def test_settings_that_labelled_texts_have_too_are_accepted() -> None:
    assert wrong(examples={"heldout": 0.2}, evaluate={"samples": 2, "max_sequences": 9}) == []


def test_a_classifier_takes_all_layers_and_the_weights_alone() -> None:
    assert wrong({"restart_bias_correction": False}, init_from="stock") == ["train.phases.0.restart_bias_correction"]
    assert wrong(init_from="stock") == wrong({}, {"restart_bias_correction": False}, init_from="stock") == []
    assert wrong(init_from="stock", init_layers=(1,)) == ["train.init_layers"]


def test_a_corpus_is_for_a_vocabulary_that_is_not_given() -> None:
    corpus = CorpusConfig.model_validate({"source": "sample", "language": "hu"})
    given = VocabConfig(file=Path("vocab.txt"))
    assert keys(idle_corpus(corpus, VocabConfig())) == keys(idle_corpus(None, given)) == []
    assert keys(idle_corpus(corpus, given)) == ["corpus"]
    assert keys(idle_corpus(None, VocabConfig())) == ["vocab.file"]


def test_a_loss_over_a_batch_is_refused_where_it_cannot_be() -> None:
    def refused(phase: dict[str, Any] | None = None, **more: Any) -> list[str]:
        values = {"phases": [{**PHASE, "data": "pairs", **(phase or {})}], "objective": {"kind": "embedding"}, **more}
        return keys(list(unsupported_by_comparing(TrainConfig.model_validate(values))))

    assert refused() == refused(engine="zero") == refused(engine="fsdp") == []
    assert refused(engine="deepspeed") == ["train.engine"]
    assert refused({"batch": 1}) == ["train.phases.0.batch"]
