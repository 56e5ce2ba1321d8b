"""`bertwright evaluate --suite`: exams of runs and folders of transformers, from the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright.cli import exam_tables
from bertwright.core.artifact import Artifact
from bertwright.exams import checkpoints

FewItems = Callable[[], None]
EXAMS = """
[[exam]]
kind = "vectors"
texts = ["egy szöveg", "egy másik szöveg", "egészen más"]
"""


def test_the_quick_suite_compares_a_run_and_its_export(
    finished: Path, call: Call, tmp_path: Path, few_items: FewItems
) -> None:
    few_items()
    shutil.copytree(finished / "export" / "hf", tmp_path / "published")
    done = call("evaluate", finished, tmp_path / "published", "--suite", "quick", "--json")
    assert done.code == 0, done.err
    scores = json.loads(done.out)
    ours, theirs = scores[str(finished)], scores[str(tmp_path / "published")]
    assert {score["exam"] for score in ours} == {
        "masked", "neighbours", "next", "perplexity", "vectors", "wiki"
    }  # fmt: skip
    # The same network, once with our names and once with theirs.
    for own, their in zip(ours, theirs, strict=True):
        assert (own["exam"], own["name"]) == (their["exam"], their["name"])
        assert own["value"] == pytest.approx(their["value"], abs=1e-3)


def test_a_table_fits_a_terminal_and_says_how_to_read_it(
    finished: Path, call: Call, few_items: FewItems, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_items()
    monkeypatch.setattr(exam_tables, "terminal_width", lambda: 80)
    done = call("evaluate", finished, "--suite", "wiki")
    assert done.code == 0, done.err
    assert done.out.startswith("exam")
    assert "belonging" in done.out
    assert "95 of 100 exams" in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80


def test_checkpoints_are_scored_once(finished: Path, call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (tmp_path / "exams.toml").write_text(EXAMS, encoding="utf-8")
    first = call("evaluate", run, "--suite", tmp_path / "exams.toml", "--checkpoints", "--json")
    assert first.code == 0, first.err
    curve = json.loads(first.out)
    assert curve["points"][0]["checkpoint"] == "untrained"
    steps = [point["step"] for point in curve["points"]]
    assert steps == sorted(set(steps))
    # A score that only the file has shows that nothing was scored again, also not of a checkpoint that is gone.
    kept = run / "exams" / "exams.json"
    curve["points"][1]["scores"][0]["value"] = 0.123
    kept.write_text(json.dumps(curve))
    shutil.rmtree(run / "train" / "checkpoints" / curve["points"][1]["checkpoint"])
    again = call("evaluate", run, "--suite", tmp_path / "exams.toml", "--checkpoints", "--json")
    assert json.loads(again.out) == curve
    # Other items have other scores.
    (tmp_path / "exams.toml").write_text(EXAMS.replace("egészen", "kissé"), encoding="utf-8")
    other = json.loads(call("evaluate", run, "--suite", tmp_path / "exams.toml", "--checkpoints", "--json").out)
    assert other["content"] != curve["content"]
    assert len(other["points"]) == len(curve["points"]) - 1
    page = call("report", run)
    assert page.code == 0, page.err
    assert "Right answers" not in (run / "report.html").read_text()
    assert "vectors: mean cosine" in (run / "report.html").read_text()


def test_a_checkpoint_that_is_removed_meanwhile_is_left_out(
    finished: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (tmp_path / "exams.toml").write_text(EXAMS, encoding="utf-8")
    removed, real = list[Path](), checkpoints.hash_of

    def remove_first(checkpoint: Artifact, name: str) -> str:
        if not removed:
            removed.append(checkpoint.path)
            shutil.rmtree(checkpoint.path)
        return real(checkpoint, name)

    monkeypatch.setattr(checkpoints, "hash_of", remove_first)
    done = call("evaluate", run, "--suite", tmp_path / "exams.toml", "--checkpoints", "--json")
    assert done.code == 0, done.err
    assert f"{removed[0].name} is left out" in done.err
    assert removed[0].name not in {point["checkpoint"] for point in json.loads(done.out)["points"]}


def test_a_suite_of_ones_own_writes_scores(finished: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "exams.toml").write_text(EXAMS, encoding="utf-8")
    done = call("evaluate", finished, "--suite", tmp_path / "exams.toml", "--out", tmp_path / "scores.json")
    assert done.code == 0, done.err
    (scores,) = json.loads((tmp_path / "scores.json").read_text()).values()
    assert [score["name"] for score in scores] == ["mean cosine", "deviation"]


def test_mistakes_are_named_before_work_starts(finished: Path, call: Call, tmp_path: Path) -> None:
    done = call("evaluate", finished, "--suite", "large")
    assert (done.code, "there is no such suite" in done.err) == (2, True)
    done = call("evaluate", finished / "export", "--suite", "quick")
    assert (done.code, "Name one: --on RUN" in done.err) == (2, True)
    other = tmp_path / "roberta"
    shutil.copytree(finished / "export" / "hf", other)
    (other / "config.json").write_text('{"model_type": "roberta"}')
    done = call("evaluate", other, "--suite", "wiki", "--on", finished)
    assert (done.code, "'roberta' is not a network that can be read" in done.err) == (2, True)
    (tmp_path / "mine.toml").write_text("\ufeff[[exam]]\r\nkind = 'sts'\r\ndata = 'x.tsv'\r\nname = 3\r\n")
    done = call("evaluate", finished, "--suite", tmp_path / "mine.toml")
    assert (done.code, "mine.toml:4: exam.0" in done.err) == (2, True), done.err
    done = call("evaluate", finished, "--suite", tmp_path / "mine.toml", "--out", tmp_path / "mine.toml")
    assert (done.code, "mine.toml is the file that is read" in done.err) == (2, True), done.err
    done = call("evaluate", finished, "--suite", "probes")
    assert (done.code, "Name their folder: --data FOLDER" in done.err) == (2, True)
    done = call("evaluate", finished, "--suite", "sts", "--data", tmp_path / "sts.tsv", "--on", finished)
    assert (done.code, "--on with --suite sts has no effect" in done.err) == (2, True)
    done = call("evaluate", finished, finished, "--suite", "quick", "--checkpoints")
    assert (done.code, "--checkpoints scores one run" in done.err) == (2, True)
    done = call("evaluate", finished, "--checkpoints")
    assert (done.code, "--checkpoints without --suite has no effect" in done.err) == (2, True)
    done = call("evaluate", finished, "--on", finished)
    assert (done.code, "--on" in done.err) == (2, True)
