"""Pages of runs that lack something: the end of training, a corpus, scores, guesses; and when files are written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.conftest import written as fragment
from tests.unit.report.test_facts import FINISHED_TRAINING, classifying, counted, opened
from tests.unit.report.test_report import Page

from bertwright.core.artifact import Artifact
from bertwright.core.files import read_json
from bertwright.report.config import ReportConfig
from bertwright.report.facts import read_facts
from bertwright.report.run import run, write_page

Make = Callable[..., Path]
UNFINISHED = {"checkpoint": "step-000480", "step": 480, "steps": 1100, "phase": 0}


def written(folder: Path, artifacts: dict[str, Artifact], **settings: Any) -> str:
    """The visible text of the page."""
    page = run(ReportConfig(**settings), folder, artifacts)
    return Page(page.read_text(encoding="utf-8")).text.replace("\u00a0", " ")


def under_way(folder: Path, **counts: object) -> dict[str, Artifact]:
    artifacts = opened(folder, *FINISHED_TRAINING)
    artifacts["train"] = counted(artifacts["train"], unfinished=UNFINISHED, **counts)
    return artifacts


def test_an_unfinished_training_is_marked_first(run_folder: Make) -> None:
    folder = run_folder()
    text = written(folder, under_way(folder, peak_memory_bytes=None))
    warning = "Unfinished. This page describes the checkpoint step-000480: step 480 of 1,100, in phase 0."
    assert text.index(warning) < text.index("masked-token loss")
    assert "Scores are those measured during training on held-out documents at step 900." in text
    assert "The stage evaluate has not run yet" in text and "always guessing “" not in text
    assert "peak memory" not in text and "export read back" not in text
    assert read_json(folder / "summary.json")["unfinished"] == UNFINISHED


def test_an_unfinished_untrained_model_is_reported(run_folder: Make) -> None:
    folder, says = run_folder(), "The model has not learned to use the context."
    artifacts = under_way(folder)
    assert says not in written(folder, artifacts)
    loss = next(row for row in reversed(read_facts(folder, artifacts, "").metrics) if "heldout_mlm_loss" in row)
    held = {**artifacts["examples"].counts["heldout"], "unigram_loss": loss["heldout_mlm_loss"] + 0.1}
    artifacts["examples"] = counted(artifacts["examples"], heldout=held)
    text = written(folder, artifacts)
    assert text.index(says) < text.index("masked-token loss")
    metrics = artifacts["train"].path / "metrics.jsonl"
    metrics.write_text("".join(line for line in metrics.read_text().splitlines(True) if "heldout" not in line))
    artifacts["train"] = Artifact(artifacts["train"].path, {**artifacts["train"].manifest, "files": {}})
    text = written(folder, artifacts)
    assert says not in text and "The model has not been scored yet." in text


def test_while_training_runs_there_is_a_page_and_no_summary(run_folder: Make) -> None:
    """A program that finds a summary may rely on it."""
    folder = run_folder()
    write_page(ReportConfig(), folder, under_way(folder))
    assert (folder / "report.html").is_file() and not (folder / "summary.json").exists()


def test_only_what_says_something_else_is_written_again(run_folder: Make) -> None:
    folder = run_folder()

    def times() -> tuple[int, int]:
        return tuple((folder / name).stat().st_mtime_ns for name in ("report.html", "summary.json"))  # type: ignore[return-value]

    written(folder, opened(folder))
    first = times()
    page = (folder / "report.html").read_text(encoding="utf-8")
    older = page.replace(page.split('datetime="')[1][:20], "2020-01-01T00:00:00Z").replace(
        page.split('datetime="')[1][:20].replace("T", "\u00a0").replace("Z", "\u00a0UTC"),
        "2020-01-01\u00a000:00:00\u00a0UTC",
    )
    (folder / "report.html").write_text(older, encoding="utf-8")
    before = times()
    written(folder, opened(folder))
    assert times() == before, "a page that differs in the time of writing alone is left as it is"
    (folder / "report.html").write_text("half a pa", encoding="utf-8")
    written(folder, opened(folder))
    assert "Written" in (folder / "report.html").read_text(encoding="utf-8") and times()[1] == first[1]
    written(folder, opened(folder), title="another")
    assert times()[1] != first[1]


def test_without_a_corpus_examples_are_called_external(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder, *FINISHED_TRAINING[1:], "evaluate")
    counts = artifacts["examples"].counts
    held_out = {"phases": {"train.phases.0": {"examples": 70_000, "share": 0, "files": ["a", "b"]}}, "rows": {}}
    artifacts["examples"] = counted(
        artifacts["examples"],
        text={"fertility": 1.25, "unknown_rate": 0.01, "words": 1_234_567},
        train={**{name: counts["train"][name] for name in ("tokens", "rows", "sequences")}},
        heldout={**counts["heldout"], **held_out},
        imported={"train.phases.0": {"examples": 12_345_678, "kind": "lddl"}},
    )
    text = written(folder, artifacts)
    assert "Run próba of bertwright, from examples made elsewhere. Written" in text
    for shown in (
        "WordPiece, from a given file. The figures are of the 1,234,567 words and marks of the training examples.",
        "12.3 M examples made elsewhere (lddl)",
        "70 k examples, 2 files for testing",
        "1,900 held-out segments of 26 characters",
        "sequences from held-out examples, which",
    ):
        assert shown in text, shown
    assert "Corpus" not in text and "learned from" not in text


def test_names_of_others_are_escaped_once(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    alphabet = {**artifacts["vocab"].counts["alphabet"], "missing": ["R&D"]}
    artifacts["vocab"] = counted(artifacts["vocab"], alphabet=alphabet)
    assert "of the text; not R&D" in written(folder, artifacts)
    part = {"examples": 2, "tokens": 9, "classes": [1, 1], "files": ["R&D.tsv"], "repeated": 0, "sequences": {}}
    artifacts["examples"] = counted(artifacts["examples"], labels=["R&D", "B&B"], train=part, heldout=part)
    artifacts["train"] = classifying(artifacts["train"], "R&D", "B&B")
    shown = Page(fragment((facts := read_facts(folder, artifacts, "")).section.examples(facts))).text
    assert "R&D.tsv" in shown and "tokensR&DB&B" in shown


def test_pairs_in_sentence_order_are_called_so(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    examples = artifacts["examples"]
    settings = {"examples": {"plan": "sentence-order"}}
    artifacts["examples"] = Artifact(examples.path, {**examples.manifest, "config": settings})
    text = written(folder, artifacts)
    assert "sentence-order accuracy" in text and "52 % of these pairs are swapped" in text
    assert "next-sentence accuracy" not in text and "are random" not in text


def test_texts_without_pages_are_counted_in_documents(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    artifacts["corpus"] = counted(
        artifacts["corpus"], pages=0, redirects=0, other_namespaces=0, disambiguations=0, contamination={}, copies=3023
    )
    text = written(folder, artifacts)
    assert "redirects" not in text and "disambiguation" not in text and "texts for evaluation" not in text
    assert '"kept">pages<' not in (folder / "report.html").read_text(encoding="utf-8")
    assert "documents3,900100 %" in text and "documents with their copies" not in text


def test_guesses_for_text_without_a_known_word_praise_none(run_folder: Make) -> None:
    lines = [
        {"source": "cloze", "text": "no mask at all", "gold": None, "top": [("None", 0.5)]},
        {"source": "held-out", "text": "[MASK] and [MASK]", "gold": "[MASK]", "top": [("[MASK]", 1.0)]},
        {"source": "cloze", "text": "[MASK]", "gold": "a", "top": []},
    ]
    folder = run_folder(lines)
    written(folder, opened(folder))
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "<b>None</b>" not in html and "<b>[MASK]</b>" in html
    assert "<mark>[MASK]</mark> and [MASK]" in html, "the first mask is the one that was asked for"


@pytest.mark.parametrize(
    ("rate", "shown"), [(0.15, "15%"), ([[0, 0.3], [10_000, 0.15]], "30% from 0, 15% from 10,000")]
)
def test_the_share_of_masks_may_change_with_the_steps(rate: Any, shown: str, run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    train = artifacts["train"]
    phases = [{**phase, "masking": {"rate": rate}} for phase in train.manifest["config"]["train"]["phases"]]
    config = {**train.manifest["config"], "train": {"phases": phases}}
    artifacts["train"] = Artifact(train.path, {**train.manifest, "config": config})
    assert shown in written(folder, artifacts)


def test_start_and_extensions_are_shown_only_if_any(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    artifacts["train"] = counted(
        artifacts["train"], init=None, extensions=[], sessions=artifacts["train"].counts["sessions"][:1]
    )
    text = written(folder, artifacts)
    assert "random weights" in text and "grew from" not in text and "Training was started once." in text
