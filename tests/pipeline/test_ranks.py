"""Two ranks on the loopback interface train like one rank, and one rank resumes from their checkpoint."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.pipeline.command import ENVIRONMENT
from tests.pipeline.conftest import Call
from tests.pipeline.test_lost_ranks import said, slow_mirror, start_two

from bertwright import Recipe, RunFolder
from bertwright.cli.batch_text import describe_batch
from bertwright.examples.planned import heldout_batches
from bertwright.model.batch import packed
from bertwright.model.saved import load_model
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining

OVERRIDES = (
    "model.dropout=0.0",
    "model.attention_dropout=0.0",
    "train.phases.0.steps=12",
    "train.phases.1.steps=4",
    "train.phases.1.schedule=constant",
)


def two_ranks(*arguments: object) -> subprocess.CompletedProcess[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    command = [sys.executable, *launch, "-m", "bertwright.cli", *map(str, arguments)]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text().splitlines()]


def test_two_ranks_train_as_one(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call
) -> None:
    alone, together = small_examples(tmp_path / "alone"), small_examples(tmp_path / "together")
    one = call("train", small_recipe, *OVERRIDES, "--out", alone)
    assert one.code == 0, one.err
    two = two_ranks("train", small_recipe, *OVERRIDES, "--out", together)
    assert two.returncode == 0, two.stderr
    assert json.loads((together / "train" / "manifest.json").read_text())["counts"]["ranks"] == 2
    assert_same_training(metrics(together), metrics(alone))

    longer = (*OVERRIDES, "train.phases.1.steps=8")
    for folder in (alone, together):
        done = call("train", small_recipe, *longer, "--out", folder)
        assert done.code == 0 and "resuming from step-000000016" in done.err, done.err
    assert len(metrics(together)) == 20
    assert_same_training(metrics(together), metrics(alone))


def small_batches() -> None:
    """Make the held-out batches small enough that each rank has some."""
    from bertwright.train.settings import phases

    phases.HELDOUT_MICRO_BATCH = 3


def test_ranks_share_the_batches_that_are_scored_and_the_scores_are_those_of_one(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The last row of two ranks has the scores of the saved model over all batches in one process."""
    folder = small_examples(tmp_path / "run")
    steps = ("train.phases.0.steps=2", "train.phases.1.steps=2")
    ranks = start_two(small_recipe, folder, *steps, before=(small_batches, small_batches))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)
    config, run = Recipe.load(folder / "recipe.toml").train, RunFolder(folder)
    phase, most = config.phases[-1], config.heldout_sequences
    masks = phase.masking.most(phase.length), phase.masking.rate_at(0)
    batches = [packed(batch) for batch in heldout_batches(run.artifact("examples"), phase.length, *masks, 3, most)]
    assert len(batches) > 2
    model = load_model(folder / "train" / "model")
    expected = score(PreTraining(model.config.next_sentence), model, batches)
    last = metrics(folder)[-1]
    for name, value in expected.items():
        assert last[f"heldout_{name}"] == pytest.approx(value, rel=1e-6), name


def two_threads() -> None:
    """Set what torch would choose by itself."""
    torch.set_num_threads(2)


def one_thread() -> None:
    torch.set_num_threads(1)


def test_ranks_compute_with_the_smallest_number_of_threads_of_all(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    keys = ("train.phases.0.steps=2", "train.phases.1.steps=2", "train.device=cpu", "train.threads=0")
    ranks = start_two(small_recipe, folder, *keys, before=(two_threads, one_thread))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)
    assert json.loads((folder / "train" / "manifest.json").read_text())["counts"]["threads"] == 1


def test_two_ranks_log_the_hash_that_inspect_prints(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call
) -> None:
    """Packed in the first phase, imported examples in the second; every interval has its own steps."""
    folder = small_examples(tmp_path / "run")
    assert call("convert", folder, tmp_path / "converted", "--to", "datasets").code == 0
    _, data = sorted(filter(Path.is_dir, (tmp_path / "converted").iterdir()))
    changed = (
        "train.phases.0.packing=true",
        f"train.phases.1.data={data}",
        "train.log_every=5",
        "train.evaluate_every=3",
    )
    keys = (*OVERRIDES, *changed, "train.checkpoint_every=4")
    made = call("run", small_recipe, *keys, "--out", folder, "--until", "examples")
    assert made.code == 0, made.err
    ranks = start_two(small_recipe, folder, *keys)
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)
    rows = metrics(folder)
    due = [*((0, step) for step in (3, 4, 5, 6, 8, 9, 10, 12)), (1, 3), (1, 4)]
    assert [(row["phase"], row["step"]) for row in rows] == due
    hashes = [describe_batch(folder, row["phase"], row["step"])["hash"] for row in rows]
    assert [row["batch"] for row in rows] == hashes and len(set(hashes)) == len(rows)


def assert_same_training(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Assert the same sequences and tokens at each step, and the same losses up to the order of summation."""
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        for name in ("phase", "step", "total_steps", "optimizer_step", "tokens_seen", "learning_rate", "batch"):
            assert row[name] == other[name], name
        assert row.keys() == other.keys()
        for name in row.keys() & {"mlm_loss", "nsp_loss", "heldout_mlm_loss", "heldout_nsp_loss"}:
            assert row[name] == pytest.approx(other[name], rel=1e-6), (name, row["total_steps"])


def test_several_ranks_only_train(
    small_recipe: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = call("run", small_recipe, "--out", tmp_path / "run")
    assert done.code == 2 and "several ranks can only run the stage train" in done.err
    assert not (tmp_path / "run").exists()
    small = call("train", small_recipe, "train.phases.0.batch=1", "--out", tmp_path / "run")
    assert small.code == 2 and "train.phases.0.batch: 1 is smaller than 2 ranks" in small.err


def test_muon_growing_batches_and_averages_are_the_same_on_two_ranks(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call
) -> None:
    keys = (
        *OVERRIDES[:2],
        'optim={kind="muon"}',
        "train.phases.0.batch=8",
        "train.phases.0.steps=6",
        "train.phases.0.batch_warmup=[[0, 2], [2, 3], [4, 8]]",
        "train.phases.1.steps=2",
        'train.averaging={kind="ema", decay=0.5}',
    )
    alone, together = small_examples(tmp_path / "alone"), small_examples(tmp_path / "together")
    one = call("train", small_recipe, *keys, "--out", alone)
    assert one.code == 0, one.err
    ranks = start_two(small_recipe, together, *keys)
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(together, 0) + said(together, 1)
    assert_same_training(metrics(together), metrics(alone))
    models = [load_model(folder / "train" / "model").state_dict() for folder in (alone, together)]
    for name, tensor in models[0].items():
        torch.testing.assert_close(models[1][name], tensor, rtol=1e-3, atol=1e-5)
    scores = [json.loads((folder / "train" / "manifest.json").read_text())["counts"] for folder in (alone, together)]
    assert scores[0]["averaging"]["kind"] == scores[1]["averaging"]["kind"] == "ema"
    assert scores[0]["heldout"]["mlm_loss"] == pytest.approx(scores[1]["heldout"]["mlm_loss"], rel=1e-6)


def fast_clock() -> None:
    """Make the clock of this rank run ten times as fast."""
    from types import SimpleNamespace

    from bertwright.train import run as loop
    from bertwright.train import scoring
    from bertwright.train.monitor import step_stats

    real = step_stats.time.perf_counter
    fast = SimpleNamespace(perf_counter=lambda: 10 * real())
    loop.time = scoring.time = step_stats.time = fast  # type: ignore[attr-defined]


def nothing() -> None:
    """Leave this rank unchanged."""


def test_ranks_whose_clocks_differ_spend_the_same_budget(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    keys = ("train.phases.0.steps=100000", "train.phases.0.hours=0.0002", "train.phases.1.steps=2")
    ranks = start_two(small_recipe, folder, *keys, before=(nothing, fast_clock))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)
    first = [row for row in metrics(folder) if row["phase"] == 0]
    assert first[-1]["seconds"] >= 0.72 and first[-1]["step"] < 100_000
    assert metrics(folder)[-1]["step"] == 2 and metrics(folder)[-1]["phase"] == 1


def never_looks_again() -> None:
    """Make this rank remember that the training had no manifest when it began."""
    real = Path.is_file
    Path.is_file = lambda self: real(self) and not self.match("train/manifest.json")  # type: ignore[method-assign]


def test_a_rank_whose_machine_does_not_see_the_end_ends_well(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    """A mounted storage may answer from memory for as long as it is mounted."""
    folder = small_examples(tmp_path / "run")
    ranks = start_two(small_recipe, folder, *OVERRIDES, before=(nothing, never_looks_again))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folder, 0) + said(folder, 1)


def flip_a_bit_after_step_7() -> None:
    """Flip the lowest bit of one weight of this rank, as a memory fault would."""
    from bertwright.train import run as loop

    real, taken = loop.train_step, 0

    def faulty(trained: Any, *arguments: Any) -> Any:
        nonlocal taken
        result, taken = real(trained, *arguments), taken + 1
        if taken == 7:
            weight = next(trained.model.parameters()).data
            weight.view(torch.int32)[3, 2] ^= 1
        return result

    loop.train_step = faulty


@pytest.mark.parametrize(("every", "checkpoint_every", "found_at"), [(5, 100, 10), (1000, 2, 8), (0, 2, None)])
def test_one_bit_in_which_ranks_differ_is_found_before_it_is_saved(
    every: int,
    checkpoint_every: int,
    found_at: int | None,
    small_recipe: Path,
    small_examples: Callable[[Path], Path],
    tmp_path: Path,
) -> None:
    keys = (f"train.compare_ranks_every={every}", f"train.checkpoint_every={checkpoint_every}")
    folder, undisturbed = small_examples(tmp_path / "run"), small_examples(tmp_path / "undisturbed")

    def ends(out: Path, *before: Callable[[], None]) -> list[int | None]:
        ranks = start_two(small_recipe, out, *keys, before=before)
        for rank in ranks:
            rank.join()
        return [rank.exitcode for rank in ranks]

    codes = ends(folder, nothing, flip_a_bit_after_step_7)
    if found_at is None:
        assert codes == [0, 0], "0 never compares"
        return
    assert codes == [6, 6], said(folder, 0) + said(folder, 1)
    for rank in (0, 1):
        error = said(folder, rank).splitlines()[-1]
        assert f"after step {found_at} the ranks no longer have the same weights: rank 0, rank 1 differ" in error
        assert "Run the same command again: training goes on from its newest checkpoint" in error
    assert ends(folder) == ends(undisturbed) == [0, 0]
    models = [(out / "train" / "model" / "model.safetensors").read_bytes() for out in (folder, undisturbed)]
    assert models[0] == models[1]


def drop_updates(steps: range) -> None:
    """Make this rank drop the updates of these steps, as if their gradients were bad."""
    from bertwright.train import run as loop

    real, taken = loop.train_step, 0

    def dropping(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
        nonlocal taken
        taken += 1
        return real(trained, batches, totals, replace(update, norm_limit=0.0) if taken - 1 in steps else update)

    loop.train_step = dropping


def drop_5_to_7() -> None:
    drop_updates(range(5, 8))


def drop_4_to_7() -> None:
    drop_updates(range(4, 8))


def test_two_ranks_go_back_together(small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path) -> None:
    """Going back ends like dropping every update since the checkpoint; if forbidden, both stop with one message."""

    def ended(name: str, before: Callable[[], None], *keys: str) -> tuple[Path, list[int | None]]:
        folder = small_examples(tmp_path / name)
        ranks = start_two(small_recipe, folder, *OVERRIDES, "train.checkpoint_every=2", *keys, before=(before, before))
        for rank in ranks:
            rank.join()
        return folder, [rank.exitcode for rank in ranks]

    expected, codes = ended("expected", drop_4_to_7, "train.guard.patience=9")
    assert codes == [0, 0], said(expected, 0) + said(expected, 1)
    done, codes = ended("gone-back", drop_5_to_7, "train.guard.patience=3", "train.guard.returns=1")
    assert codes == [0, 0], said(done, 0) + said(done, 1)
    models = [(out / "train" / "model" / "model.safetensors").read_bytes() for out in (done, expected)]
    counts = json.loads((done / "train" / "manifest.json").read_text())["counts"]
    assert models[0] == models[1] and counts["left_out"] == [{"phase": 0, "from": 4, "to": 8}]
    stopped, codes = ended("stopped", drop_5_to_7, "train.guard.patience=3")
    assert codes == [3, 3], said(stopped, 0) + said(stopped, 1)
    for rank in (0, 1):
        assert "in 3 steps in a row (phase 0, step 8): training has diverged" in said(stopped, rank)
    assert "<b>Training has stopped:</b>" in (stopped / "report.html").read_text()


def drop_beside_a_slow_mirror() -> None:
    slow_mirror(2)
    drop_5_to_7()


def test_a_training_that_diverges_is_copied_to_its_end_and_says_so_on_all_ranks(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder, mirror = small_examples(tmp_path / "run"), tmp_path / "mirror"
    keys = ("train.checkpoint_every=2", "train.guard.patience=3", f"train.mirror=file://{mirror}")
    ranks = start_two(small_recipe, folder, *keys, before=(drop_beside_a_slow_mirror, drop_5_to_7))
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [3, 3], said(folder, 0) + said(folder, 1)
    newest = max((folder / "train" / "checkpoints").glob("step-*")).name
    assert (mirror / "checkpoints" / newest / "manifest.json").is_file()
