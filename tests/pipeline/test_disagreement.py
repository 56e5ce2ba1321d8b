"""Ranks started with a different recipe, code, vocabulary or data stop before step 0 and report the difference."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from tests.pipeline.command import forked
from tests.pipeline.test_lost_ranks import free_port
from tests.processes import PATIENCE

from bertwright import Recipe, run
from bertwright.train.ranks.agreement import PACKAGE

Copy = Callable[[Path], Path]
ENDED = {
    "recipe": (("train.seed=7",), ("train.seed is 42 on rank 0 and 7 on rank 1",)),
    "optimizer": (('optim={kind="adamw"}',), ('optim.kind is "lamb" on rank 0 and "adamw" on rank 1',)),
    # No fingerprint includes these, and each would make ranks wait for collectives that never come.
    "engine": (("train.engine=zero",), ('train.engine.kind is "auto" on rank 0 and "zero" on rank 1',)),
    "reduction": (
        ('train.engine={kind="ddp", reduction="bf16"}',),
        ('train.engine.reduction is absent on rank 0 and "bf16" on rank 1',),
    ),
    "saving": (
        ("train.checkpoint_every=3", "train.log_every=2"),
        ("train.checkpoint_every is 2 on rank 0 and 3 on rank 1", "train.log_every is 1 on rank 0 and 2 on rank 1"),
    ),
    "threads": (("train.threads=1",), ("train.threads is 0 on rank 0 and 1 on rank 1",)),
    "length": (("train.phases.1.steps=9",), ("train.phases.1.steps is 6 on rank 0 and 9 on rank 1",)),
}


def ended(
    first: Path, second: Path, recipe: Path, overrides: tuple[str, ...], before: Callable[[], None] | None = None
) -> list[str]:
    """The final messages of two ranks, the second with these overrides and this folder; both must fail."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    logs = [first.with_suffix(f".{rank}") for rank in range(2)]
    starts: list[tuple[Path, tuple[str, ...], Callable[[], None] | None]] = [
        (first, (), None),
        (second, overrides, before),
    ]
    ranks = [
        forked(
            logs[rank],
            *("train", recipe, *keys, "--out", folder),
            environment=environment(common, rank),
            before=hook,
        )
        for rank, (folder, keys, hook) in enumerate(starts)
    ]
    for rank in ranks:
        rank.join(PATIENCE)
    assert [rank.exitcode for rank in ranks] == [4, 4], [log.read_text() for log in logs]
    assert not list(first.glob("train/checkpoints/step-*")) and not (first / "train" / "metrics.jsonl").exists()
    said = [log.read_text() for log in logs]
    assert not any("Traceback" in text for text in said)
    return [text.splitlines()[-1] for text in said]


def environment(common: Mapping[str, str], rank: int) -> dict[str, str]:
    return {**common, "RANK": str(rank)}


@pytest.mark.parametrize(
    "what", [each if each == "saving" else pytest.param(each, marks=pytest.mark.slow) for each in ENDED]
)
def test_another_recipe_is_named_by_its_keys(
    what: str, small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """Two keys at once; testing one at a time is slow."""
    folder = small_examples(tmp_path / "run")
    overrides, expected = ENDED[what]
    for error in ended(folder, folder, small_recipe, overrides):
        assert error.startswith("bertwright: the 2 ranks have different settings: ")
        assert all(sentence in error for sentence in expected), error
        assert "Start all ranks with the same recipe and overrides" in error


def another_version() -> None:
    from bertwright.train.ranks import agreement

    agreement.__version__ = "0.0.9"


def test_another_version_is_named(small_recipe: Path, small_examples: Copy, tmp_path: Path) -> None:
    folder = small_examples(tmp_path / "run")
    for error in ended(folder, folder, small_recipe, (), another_version):
        assert "the version of bertwright is 0." in error and " on rank 0 and 0.0.9 on rank 1." in error, error


def another_code(package: Path) -> None:
    from bertwright.train.ranks import agreement
    from bertwright.train.ranks.agreement import source_hashes

    agreement.source_hashes = partial(source_hashes, package)


def test_other_code_of_the_same_version_is_named_by_its_files(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    """A rank whose loss is half as large again would otherwise train with the others."""
    folder, other = small_examples(tmp_path / "run"), tmp_path / "bertwright"
    shutil.copytree(PACKAGE, other, ignore=shutil.ignore_patterns("__pycache__"))
    step = other / "train" / "step.py"
    step.write_text(step.read_text().replace("loss", "1.5 * loss", 1))
    for error in ended(folder, folder, small_recipe, (), partial(another_code, other)):
        assert "settings: the code of bertwright is " in error and "the version of" not in error.split(". Start")[0]
        assert "; the file bertwright/train/step.py is " in error and error.count(" is ") == 2, error
        assert "the same code of bertwright" in error


def another_device() -> None:
    """Mimics a machine whose GPU is missing, where `auto` selects the CPU; here the other way round."""
    import torch

    from bertwright.train.ranks import agreement

    agreement.resolve_device = lambda wanted: torch.device("cuda")  # type: ignore[assignment]


def test_a_rank_without_the_gpu_that_others_have_is_named(
    small_recipe: Path, small_examples: Copy, tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    for error in ended(folder, folder, small_recipe, (), another_device):
        assert "the kind of device is cpu on rank 0 and cuda on rank 1." in error, error
        assert error.endswith("and either a GPU for every rank or none (train.device).")


@pytest.mark.parametrize(
    ("override", "named", "unnamed"),
    [
        pytest.param(
            *("examples.heldout=0.3", ("the fingerprint of examples",), ("the fingerprint of vocab",)),
            marks=pytest.mark.slow,
        ),
        ("vocab.size=392", ("the fingerprint of vocab", "the fingerprint of examples"), ()),
    ],
)
def test_another_vocabulary_and_other_data_are_named(
    override: str,
    named: tuple[str, ...],
    unnamed: tuple[str, ...],
    small_recipe: Path,
    small_examples: Copy,
    tmp_path: Path,
) -> None:
    folder, other = small_examples(tmp_path / "run"), small_examples(tmp_path / "other")
    run(Recipe.load(small_recipe, [override]), other, ["corpus", "vocab", "examples"])
    for error in ended(folder, other, small_recipe, (override,)):
        assert all(f"{each} is " in error for each in named), error
        assert not any(each in error for each in unnamed), error


def test_what_is_a_ranks_own_affair_may_differ(small_recipe: Path, small_examples: Copy, tmp_path: Path) -> None:
    folder = small_examples(tmp_path / "run")
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    own = ("train.timeout=100", "train.keep_checkpoints=1")
    ranks = [
        forked(
            folder.with_suffix(f".{rank}"),
            *("train", small_recipe, *(own if rank else ()), "--out", folder),
            environment=environment(common, rank),
        )
        for rank in range(2)
    ]
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], folder.with_suffix(".1").read_text()
