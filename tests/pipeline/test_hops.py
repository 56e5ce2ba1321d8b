"""A call passes four files from the verb to the line that calls backward, so tracebacks and the training code stay easy
to follow. The files that parse the command line come before and are not known to a verb."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import bertwright
from bertwright.cli.app import main

SOURCE = Path(bertwright.__file__).parent


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

    def backward(loss: torch.Tensor) -> None:
        frame = sys._getframe(1)
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
    parsing = ["cli/grouped.py", "cli/app.py"]
    assert passed == ["train/step.py", "train/run.py", "pipeline/run.py", "cli/stages.py", *parsing]
