"""The folders of examples that training reads: which are accepted, and the key of each that is not."""

from pathlib import Path
from typing import Any

from tests.rows import each_row
from tests.unit.contradictions.test_sections import keys, train

from bertwright.contradictions.folders import wrong_folder, wrong_folders
from bertwright.core.artifact import MANIFEST, seal
from bertwright.core.config import Identity
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig


def artifact(folder: Path, stage: str, **config: Any) -> Path:
    """A finished folder of a stage, without files."""
    folder.mkdir(parents=True)
    seal(folder, Identity(stage, 1, config, {}), {}, 0.0)
    return folder


def examples(folder: Path, plan: str, *files: str, **counts: Any) -> Path:
    """A finished folder of examples with these empty files, by default the plans of two phases."""
    names = files or ("plans/train/16.json", "plans/train/16-0.0-0.5.json")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    folder.mkdir(parents=True, exist_ok=True)
    plans = [Path(name).stem for name in names if "plans" in name]
    sequences = {
        name: {"lengths": [1], "mean_length": 9.0, "deviation": 0.0, "longest": 9, "label_share": None}
        for name in plans
    }
    counts = {"train": {"sequences": sequences}, **counts}
    seal(folder, Identity("examples", 1, {"examples": {"plan": plan}}, {}), counts, 0.0)
    return folder


def found(train: TrainConfig, plan: str, vocab: VocabConfig | None = None) -> list[tuple[str, str]]:
    return list(wrong_folders(train, plan, vocab or VocabConfig()))


def phases(*data: Path | None, **more: Any) -> list[dict[str, Any]]:
    return [{"data": each, **more} for each in data]


PAIRS, OTHER_PAIRS, SINGLE, OTHER_SINGLE = "next-sentence", "sentence-order", "doc-sentences", "full-sentences"


@each_row(
    ("made", "here", "fits"),
    [
        (PAIRS, PAIRS, True),
        (SINGLE, SINGLE, True),
        (SINGLE, OTHER_SINGLE, True),  # neither has labels
        (PAIRS, OTHER_PAIRS, False),
        (PAIRS, SINGLE, False),
        (SINGLE, PAIRS, False),
    ],
)
def test_labelled_pairs_are_only_for_training_on_the_same_labels(
    made: str, here: str, fits: bool, tmp_path: Path
) -> None:
    folder = examples(tmp_path / "examples", made)
    mistakes = found(train(*phases(None, folder)), here)
    assert keys(mistakes) == ([] if fits else ["train.phases.1.data"])
    assert all(made in text and here in text for _, text in mistakes)


def test_every_phase_is_checked_also_after_one_without_data(tmp_path: Path) -> None:
    corpus, right = artifact(tmp_path / "corpus", "corpus"), examples(tmp_path / "examples", SINGLE)
    gone = tmp_path / "gone"
    given = phases(gone, None, corpus, right, gone)
    assert keys(found(train(*given), SINGLE)) == [f"train.phases.{index}.data" for index in (0, 2, 4)]


def test_imported_data_in_finished_examples_may_be_gone(tmp_path: Path) -> None:
    both = train(*phases(tmp_path / "gone", tmp_path / "gone"))
    assert keys(wrong_folders(both, SINGLE, VocabConfig(), {"vocab.file", "train.phases.1.data"})) == [
        "train.phases.0.data"
    ]


def test_a_run_folder_is_no_data_and_its_examples_are_pointed_to(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text("")
    ((key, before),) = found(train(*phases(run)), SINGLE)
    examples(run / "examples", SINGLE)
    ((_, after),) = found(train(*phases(run)), SINGLE)
    assert key == "train.phases.0.data" and str(run / "examples") in after
    assert before.startswith(after) and before != after, "before they are finished that is said, too"


def test_document_range_and_quarantine_without_effect(tmp_path: Path) -> None:
    files, ours = tmp_path / "files", examples(tmp_path / "examples", SINGLE)
    files.mkdir()
    share, damaged = {"document_range": [0.0, 0.5]}, {"quarantine": True}
    assert keys(found(train(*phases(files, **share)), SINGLE)) == ["train.phases.0.document_range"]
    assert keys(found(train(*phases(ours, **share)), SINGLE)) == []
    assert keys(found(train(*phases(ours, **damaged)), SINGLE)) == ["train.phases.0.quarantine"]
    assert keys(found(train(*phases(files, **damaged)), SINGLE)) == []


@each_row(
    ("files", "has"),
    [
        (("plans/train/128.json", "plans/train/512-0.9-1.0.json"), "has examples of 128, 512-0.9-1.0 (length-document"),
        (
            ("plans/train/16-0.0-0.9.json",),
            "has examples of 16-0.0-0.9 (length-document_range), but this phase needs 16;",
        ),
        (("labelled/facts.json",), "has labelled texts, but no examples for pre-training"),
        (
            ("imported/0/ids", "plans/heldout/16.json"),
            "was made without a corpus, so it has only the examples of other",
        ),
    ],
)
def test_examples_of_another_run_must_fit_the_phase(files: tuple[str, ...], has: str, tmp_path: Path) -> None:
    ((key, text),) = found(train(*phases(examples(tmp_path / "examples", SINGLE, *files))), SINGLE)
    assert key == "train.phases.0.data" and has in text


def test_examples_of_another_run_have_the_given_vocabulary(tmp_path: Path) -> None:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
    folder = examples(tmp_path / "run" / "examples", SINGLE, vocabulary=VocabConfig(longest_word=100).hash_of(entries))
    theirs, other = tmp_path / "run" / "vocab" / "vocab.txt", tmp_path / "vocab.txt"
    for file, last in (theirs, "a"), (other, "b"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join([*entries[:-1], last]) + "\n")
    phase = train(*phases(folder))
    assert found(phase, SINGLE, VocabConfig(file=theirs, size=None)) == []
    for vocab in VocabConfig(file=other, size=None), VocabConfig(file=theirs, size=None, lower_case=True):
        ((key, text),) = found(phase, SINGLE, vocab)
        assert key == "train.phases.0.data" and f"set vocab.file={theirs} and the text settings" in text


def test_why_a_folder_will_not_do(tmp_path: Path) -> None:
    corpus = artifact(tmp_path / "corpus", "corpus")
    assert wrong_folder(corpus, "corpus") == ""
    assert "'corpus'" in wrong_folder(corpus, "examples")
    assert MANIFEST in wrong_folder(tmp_path / "gone", "examples")
