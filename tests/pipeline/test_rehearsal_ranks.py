"""With an engine of several ranks, several rehearse the training, if the machine and the recipe have room for them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright import Recipe
from bertwright.core.child_process import code_of, program
from bertwright.trial import shortened_recipe
from bertwright.trial.shortened_recipe import alone, ranks_for


@pytest.mark.parametrize(
    ("engine", "cores", "gpus", "batch", "ranks"),
    [
        ("auto", 8, 0, 8, 1),
        ("single", 8, 0, 8, 1),
        ("ddp", 8, 0, 8, 2),
        ("zero", 2, 0, 8, 2),
        ("fsdp", 1, 0, 8, 1),
        ("ddp", 8, 4, 8, 4),
        ("zero", 8, 1, 8, 1),
        ("zero", 8, 0, 1, 1),
    ],
)
def test_an_engine_of_several_has_as_many_as_there_is_room_for(
    engine: str, cores: int, gpus: int, batch: int, ranks: int, small_recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortened_recipe, "default_workers", lambda: cores)
    monkeypatch.setattr(shortened_recipe, "training_gpus", lambda recipe: (1,) * gpus)
    sizes = (f"train.phases.{i}.{key}" for i in range(2) for key in (f"batch={batch}", "micro_batch=0"))
    given = [f"train.engine={engine}", *sizes, "train.phases.1.packing=false", "optim={kind='adamw'}"]
    assert ranks_for(Recipe.load(small_recipe, given)) == ranks


def test_one_process_is_started_without_torchrun() -> None:
    assert program(1) == (sys.executable, "-P", "-m", "bertwright.cli")
    assert program(2)[2:6] == ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
    assert program(2)[6:] == ("2", "-m", "bertwright.cli")


def test_the_code_is_that_of_the_first_rank_that_failed() -> None:
    report = b"Failures:\n[1]:\n  exitcode  : -15 (pid: 8)\nRoot Cause:\n[0]:\n  exitcode  : 3 (pid: 7)\n====\n"
    assert (code_of(1, report, 2), code_of(1, b"", 2), code_of(-9, report, 1)) == (3, 1, -9)


def test_phases_that_are_cut_have_a_sequence_for_each_rank(small_recipe: Path) -> None:
    recipe = Recipe.load(small_recipe)
    first, second = alone(recipe, 1, ranks=2).train.phases
    assert first.batch == 2 and second.batch == recipe.train.phases[1].batch


@pytest.mark.slow
def test_two_ranks_rehearse_to_the_end(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call
) -> None:
    folder = small_examples(tmp_path / "mine")
    done = call("run", small_recipe, "train.engine=zero", "--rehearse", "--out", folder, "--json")
    told = json.loads(done.out)
    assert done.code == 0 and (told["ranks"], told["left_out"]) == (2, []), done.out + done.err
    parts = {part["part"]: part["text"] for part in told["parts"]}
    assert parts["phase 1"].endswith("B on each of 2 ranks")
