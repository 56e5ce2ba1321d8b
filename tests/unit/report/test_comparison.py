"""Runs beside each other: what differs, curves over three axes, scores, and what must be known before comparing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.test_report import Page

from bertwright.core.artifact import Artifact, open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.numbers import percent
from bertwright.report.compared import Run, differing_settings, read_runs
from bertwright.report.comparison import comparison, write_comparison

Make = Callable[..., Path]
SCORES = {"mlm_loss": 2.5, "mlm_accuracy": 0.4, "perplexity": 12.2, "unigram_loss": 5.9}


def run(name: str = "próba", **changes: Any) -> Run:
    rows = [
        {
            "phase": 0,
            "step": n,
            "total_steps": n,
            "tokens_seen": 1_000_000 * n,
            "seconds": 1800.0 * n,
            "mlm_loss": 5.0 / n,
        }
        for n in (1, 2, 4)
    ]
    values: dict[str, Any] = {
        "name": name, "rows": rows, "settings": {"train.seed": "1"}, "scores": SCORES, "numbers": {"hours": 2.0},
        "finished": True, "vocabulary": "abc",
    }  # fmt: skip
    return Run(**values | changes)


@pytest.fixture
def two(run_folder: Make, tmp_path: Path) -> list[Path]:
    """A run and its copy with another seed and another loss."""
    first = run_folder()
    second = tmp_path / "<i>másik & más"
    shutil.copytree(first, second)
    train = sealed_anew(second / "train", {"seed": 7}, {"hours": 1.5, "tflops_done": 4e4})
    sealed_anew(second / "evaluate", {}, {"mlm_loss": 1.75}, train=train.fingerprint)
    return [first, second]


def sealed_anew(folder: Path, settings: dict[str, Any], counts: dict[str, Any], **inputs: str) -> Artifact:
    """The artifact in `folder`, sealed with other settings, counts and inputs."""
    manifest, stage = json.loads((folder / "manifest.json").read_text()), folder.name
    config = manifest["config"] | {stage: manifest["config"][stage] | settings}
    identity = Identity(stage, 1, config, manifest["inputs"] | inputs)
    (folder / "manifest.json").unlink()
    seal(folder, identity, manifest["counts"] | counts, manifest["seconds"])
    return open_artifact(folder)


def test_scores_stand_beside_each_other_and_the_best_is_bold(two: list[Path], tmp_path: Path) -> None:
    path, facts = write_comparison(two, tmp_path / "out")
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert path.name == "comparison.html" and "Runs compared" in page.text
    assert "<b>1.750</b>" in html and "<b>2.310</b>" not in html and "2.310" in html
    assert "<b>5.900</b>" not in html, "a baseline is not better than another"
    assert "40 PFLOP" in page.text and "1 h 30 min" in page.text
    assert [each["mlm_loss"] for each in facts["runs"]] == [2.31, 1.75]
    assert facts["settings"]["train.seed"] == ["–", "7"]


def test_what_strangers_named_is_text_and_nothing_is_loaded(two: list[Path], tmp_path: Path) -> None:
    html = write_comparison(two, tmp_path / "out")[0].read_text(encoding="utf-8")
    page = Page(html)
    assert "<i>másik" not in html and "&lt;i&gt;másik &amp; más" in html and "próba" in page.text
    assert all(address.startswith("#") for address in page.addresses) and "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))


def test_curves_are_drawn_over_steps_tokens_and_hours() -> None:
    html = comparison([run("a"), run("b")], "2026-03-01T10:00:00Z")
    for label in ("optimizer step", "millions of tokens", "hours"):
        assert html.count(f">{label}</text>") == 1, "no row was scored, so one chart for each axis"
    assert html.count('class="line train run-0"') == html.count('class="line train run-1"') == 3
    assert '<text x="456.0" y="243" text-anchor="middle">2</text>' in html, "3600 seconds are an hour"


def test_settings_that_differ_are_listed_once_with_every_run() -> None:
    runs = [
        run(settings={"train.seed": "1", "optim.kind": "adamw", "model.size": "mini"}),
        run(settings={"train.seed": "1", "optim.kind": "lamb", "optim.beta": "0.9", "model.size": "mini"}),
        run(settings={"train.seed": "1", "optim.kind": "adamw", "model.size": "mini"}),
    ]
    assert differing_settings(runs) == {"optim.kind": ["adamw", "lamb", "adamw"], "optim.beta": ["–", "0.9", "–"]}
    assert "None: the runs have the same settings" in comparison([run(), run()], "")


def test_a_warning_names_different_vocabularies() -> None:
    worse = {**SCORES, "mlm_loss": 3.5}
    assert "<b>2.500</b>" in comparison([run(), run(scores=worse)], "")
    html = comparison([run(), run(scores=worse, vocabulary="xyz")], "")
    assert "The vocabularies differ" in html and "<b>2.500</b>" not in html, "none is the best"
    others = [run(settings={"train made of: examples": digits}) for digits in ("1", "2")]
    assert "The examples differ" in comparison(others, "")
    assert 'class="warning"' not in comparison([run(), run()], "")
    assert "Not finished:</b> half." in comparison([run(), run("half", finished=False)], "")


def test_a_warning_names_different_scoring_conditions() -> None:
    worse = {**SCORES, "mlm_loss": 3.5}
    assert "<b>2.500</b>" in comparison([run(scored_on=(0.15, 128)), run(scores=worse, scored_on=(0.15, 128))], "")
    for other in ((0.4, 128), (0.15, 512)):
        html = comparison([run("a", scored_on=(0.15, 128)), run("b", scores=worse, scored_on=other)], "")
        assert "The scores were taken under different conditions" in html and "<b>2.500</b>" not in html
        assert f"a: mask rate 0.15, length 128; b: mask rate {other[0]}, length {other[1]}" in html
    html = comparison([run(scored_on=(0.15, 128)), run(scored_on=None, scores=dict.fromkeys(SCORES))], "")
    assert 'class="warning"' not in html, "the other run is not scored yet"


def test_curves_at_other_mask_rates_are_not_compared_in_silence() -> None:
    def rates(*rates: str) -> dict[str, str]:
        return {f"train.phases.{number}.masking.rate": rate for number, rate in enumerate(rates)}

    html = comparison([run(settings=rates("0.15")), run(settings=rates("0.15", "0.3"))], "")
    assert "The mask rates of training differ" in html
    alike = [run(settings=rates("0.15")), run(settings=rates("0.15", "0.15")), run(settings={})]
    assert 'class="warning"' not in comparison(alike, "")


def test_scoring_conditions_come_from_the_scoring_stage(two: list[Path]) -> None:
    shutil.rmtree(two[1] / "evaluate")
    phase = {"length": 128, "masking": {"rate": [[0, 0.3], [200, 0.15]]}}
    sealed_anew(two[1] / "train", {"phases": [phase, phase]}, {})
    assert [each.scored_on for each in read_runs(two)] == [(0.25, 64), (0.3, 128)]


def test_scores_before_an_extension_are_not_shown(two: list[Path]) -> None:
    sealed_anew(two[1] / "train", {}, {}, extensions="of phase 1")
    whole, extended = read_runs(two)
    assert whole.scores["mlm_loss"] == 2.31 and "evaluate.mask_rate" in whole.settings
    assert extended.scores["mlm_loss"] == extended.rows[-1]["heldout_mlm_loss"]
    assert not [key for key in extended.settings if key.startswith(("evaluate", "export"))]


def test_a_run_under_way_is_known_by_its_rows_and_its_checkpoint(two: list[Path]) -> None:
    whole, under_way = two
    train: Artifact = open_artifact(under_way / "train")
    checkpoint = under_way / "train" / "checkpoints" / "step-000000900"
    checkpoint.mkdir(parents=True)
    (checkpoint / "state.json").write_text('{"seconds": 3600.0, "other_seconds": 1800.0}')
    settings, words = {"train": {"seed": 8}}, {"vocabulary": "abc"}
    seal(
        checkpoint,
        Identity("checkpoint", 1, settings, {**train.manifest["inputs"], **words}),
        {"total_steps": 900},
        0.0,
    )
    (under_way / "train" / "manifest.json").unlink()
    shutil.rmtree(under_way / "evaluate")
    shutil.rmtree(under_way / "vocab")
    with (under_way / "train" / "metrics.jsonl").open("a") as file:
        file.write('{"phase": 1, "step": 300, "steps": 300, "total_steps": 900, "stopped": "diverged"}\n')
        file.write('{"phase": 1, "step": 301, "tot')  # the row that is being written
    first, second = read_runs([whole, under_way])
    assert (first.finished, second.finished) == (True, False)
    assert second.numbers["hours"] == 1.5, "with scoring and saving, as of a finished one"
    assert second.vocabulary == "abc", "of the checkpoint, where no folder of the vocabulary is there"
    assert second.settings["train.seed"] == "8" and second.numbers["steps"] == 900
    assert second.scores["mlm_loss"] == pytest.approx(2.3 + 5.8 * 2.718281828 ** (-900 / 200), rel=1e-6)


def test_names_are_as_long_as_they_must_be(two: list[Path], tmp_path: Path) -> None:
    for parent in ("egy", "kettő"):
        shutil.copytree(two[0], tmp_path / parent / "wiki")
    runs = read_runs([tmp_path / "egy" / "wiki", tmp_path / "kettő" / "wiki", two[0]])
    assert [each.name for each in runs] == ["egy/wiki", "kettő/wiki", "próba"]


def test_what_cannot_be_compared_is_refused(two: list[Path], tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="1 run folders cannot be compared. Name 2 to 8 of them"):
        read_runs(two[:1])
    with pytest.raises(RecipeError, match="the same run folder is named twice. Name each run once"):
        read_runs([two[0], two[0]])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match="empty has no rows of training .* runs that have started training"):
        read_runs([two[0], tmp_path / "empty"])


def test_scores_of_sentence_order_are_compared() -> None:
    orders = [{"sop_accuracy": 0.8125, "sop_majority": 0.5}, {"sop_accuracy": 0.6875, "sop_majority": 0.5}]
    html = comparison([run(scores=scores) for scores in orders], "")
    assert "sentence-order accuracy" in html and "accuracy of the commoner order" in html
    better, other = percent(0.8125), percent(0.6875)
    assert f"<b>{better}</b>" in html and f"<b>{other}</b>" not in html and other in html
