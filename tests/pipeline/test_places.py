"""Every shipped place: the commands in its header describe it, and the sizes in the originals' tables work."""

import json
import shlex
from pathlib import Path

import pytest
from tests.pipeline.command import ROOT
from tests.pipeline.conftest import Call

SHIPPED = sorted((ROOT / "places").glob("*.toml"))
each_place = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)


def command(path: Path) -> list[str]:
    """The arguments after `bertwright` in the command that the header of a place names."""
    head = path.read_text(encoding="utf-8").partition("\n\n")[0]
    rest = head[head.index("#   command ") :].splitlines()
    lines = [rest[0].removeprefix("#   command "), *(line[1:] for line in rest[1 : 1 + rest[1:].index("#")])]
    return shlex.split(" ".join(lines))[1:]


@each_place
def test_its_head_names_a_command_that_works(path: Path, call: Call) -> None:
    assert path.read_text(encoding="utf-8").partition("\n")[0].endswith("."), "`bertwright places` shows the first line"
    words = command(path)
    assert words[0] == "launch" and words[words.index("--place") + 1] == path.stem
    done = call(*words)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("place", "nodes"), [("dgx-1", (1, 4, 16)), ("dgx-2", (1, 4, 16, 64)), ("spr", (8, 16))])
def test_the_sizes_of_the_originals_are_described(place: str, nodes: tuple[int, ...], call: Call) -> None:
    for number in nodes:
        done = call("launch", "slurm", "nvidia-large", "--place", place, "--nodes", number)
        assert done.code == 0 and f"#SBATCH --nodes={number}\n" in done.out, done.err


def test_places_are_listed_and_printed(call: Call) -> None:
    assert all(path.stem in call("places").out for path in SHIPPED)
    assert call("places", "spr").out == (ROOT / "places" / "spr.toml").read_text(encoding="utf-8")
    assert "Did you mean spr?" in call("places", "spt").err


@each_place
def test_the_training_of_its_head_fits_its_machines(path: Path, call: Call) -> None:
    _, _, recipe, *rest = command(path)
    done = call("plan", recipe, *rest, "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["fits"], f"{plan['memory_bytes'] / 1e9:.1f} GB on {plan['machine']['title']}"


@each_place
def test_what_a_run_takes_there_is_forecast(path: Path, call: Call) -> None:
    if "[hardware]" not in path.read_text(encoding="utf-8"):
        pytest.skip("the place does not say what its machines have")
    done = call("plan", "nvidia-large", "corpus.source=sample", "--place", path.stem, "--nodes", 2, "--json")
    assert done.code == 0, done.err
