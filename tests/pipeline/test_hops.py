"""A call passes four files from the verb to the line that calls backward, so tracebacks and the training code stay easy
to follow. The files that parse the command line come before and are not known to a verb."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest
import torch

import bertwright
from bertwright.cli.app import main
from bertwright.model.config import Kernel

SOURCE = Path(bertwright.__file__).parent
TOUR = (Path(__file__).parents[2] / "docs" / "tour.md").read_text(encoding="utf-8")
PLACES = dict(re.findall(r"^\| (the line that .*?|where a .*?) +\| (.*?) +\|$", TOUR, re.MULTILINE))
"""The tour's table of what is looked for most, and where it is."""


class EnoughError(Exception):
    """Raised when backward is called."""


@pytest.mark.parametrize("verb", [["train"], ["run", "--until", "train"]], ids=" ".join)
def test_three_hops_from_a_verb_to_backward(
    verb: list[str],
    small_recipe: Path,
    small_examples: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed: list[str] = []
    callers: list[str] = []

    def backward(loss: torch.Tensor) -> None:
        frame = sys._getframe(1)
        callers.append(frame.f_code.co_name)
        while frame.f_back is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE) and path.relative_to(SOURCE).as_posix() not in passed:
                passed.append(path.relative_to(SOURCE).as_posix())
            frame = frame.f_back
        raise EnoughError

    monkeypatch.setattr(torch.Tensor, "backward", backward)
    folder = small_examples(tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["bertwright", verb[0], str(small_recipe), "--out", str(folder), *verb[1:]])
    with pytest.raises(EnoughError):
        main()
    parsing = ["cli/options.py", "cli/app.py"]
    assert passed == ["train/step.py", "train/run.py", "pipeline/run.py", "cli/stages.py", *parsing]
    assert PLACES["the line that calls backward"] == f"`{passed[0]}`, in `{callers[0]}`"


def test_the_tour_names_the_line_that_draws_a_mask_and_the_folder_of_kernels() -> None:
    path, *functions = re.findall(r"`(.*?)`", PLACES["the line that draws a mask"])
    module = import_module(f"bertwright.{path.removesuffix('.py').replace('/', '.')}")
    assert functions and all(callable(attrgetter(name)(module)) for name in functions)
    (folder,) = re.findall(r"`(.*?)`", PLACES["where a new attention kernel goes"])
    assert {f"{kernel}.py" for kernel in get_args(Kernel)} <= {file.name for file in (SOURCE / folder).iterdir()}


def test_the_tour_draws_the_objects_between_recipe_and_step_as_they_are() -> None:
    picture = TOUR.partition("### From the recipe to a step\n")[2].partition("```\n")[2].partition("```")[0]
    drawn = {
        match[1]: match[2] for match in re.finditer(r"^\W*([A-Z]\w+)(?:, \.\.\.)?  +(.*?)  ", picture, re.MULTILINE)
    }
    homes = {"TrainJob": "setup.job", "Phase": "settings.phases", "Session": "session", "Trainee": "setup.trainee"}
    assert set(drawn) == {*homes, "State"}
    fields_of = {name: fields_in(f"bertwright.train.{home}", name) for name, home in homes.items()}
    assert {"phases", "monitor", "checkpoints", "requests", "trainee"} <= fields_of["Session"]
    assert {"objective", "engine", "ranks", "precision"} <= fields_of["Trainee"]
    assert {"network", "identity", "phases"} <= fields_of["TrainJob"]
    assert all(name in drawn["Trainee"] for name in ("objective", "engine", "ranks", "precision"))


def fields_in(module: str, name: str) -> set[str]:
    return set(getattr(import_module(module), name).__dataclass_fields__)
