"""The notebooks train what they say and print what they should; they are kept without outputs."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.processes import PATIENCE

NOTEBOOKS = ("first_model", "own_optimizer")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Jupyter's packages


def read(name: str) -> Any:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    return notebook


def execute(notebook: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Run a notebook in a folder; return its cells of code."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", ENVIRONMENT["OMP_NUM_THREADS"])
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    return "".join(out.get("text", "") for out in cell.outputs if out.get("name") == "stdout")


def cell_with(words: str, cells: list[Any]) -> Any:
    (found,) = (cell for cell in cells if words in cell.source)
    return found


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_kept_without_outputs_and_names_no_internal_module(name: str) -> None:
    code = [cell for cell in read(name).cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    imports = [line for cell in code for line in cell.source.splitlines() if "bertwright" in line and "import" in line]
    assert imports and all(line.startswith(("from bertwright import", "from bertwright.plugins")) for line in imports)


def test_the_first_model_is_looked_at_and_answers_as_in_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: bertwright[hf]")
    notebook = read("first_model")
    trains = cell_with("run(", notebook.cells)
    assert 'run("demo", ' in trains.source
    trains.source = trains.source.replace('"demo"', '"smoke"')  # as its first lines say
    cells = execute(notebook, tmp_path, monkeypatch)
    assert "Rövidítések jegyzéke" in printed(cell_with("dropped=True", cells))
    assert "[MASK=" in printed(cell_with("batches()", cells))
    (curves,) = cell_with("folder.curves", cells).outputs
    assert curves.data["text/html"].count("<img ") == 4
    for line in printed(cell_with("pipeline", cells)).splitlines():
        ours, probability, theirs, score = line.split()
        assert ours == theirs and float(probability) == pytest.approx(float(score), abs=2e-6)
    nearest = printed(cell_with("argsort", cells)).splitlines()
    assert len(nearest) == 6 and nearest[0].startswith("1.00")


def test_texts_of_ones_own_train_with_an_optimizer_and_in_a_loop_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = execute(read("own_optimizer"), tmp_path, monkeypatch)
    documents = int(printed(cell_with("Counter", cells)).split()[0])
    assert documents > 100
    recorded = printed(cell_with('"plugins"', cells)).splitlines()
    assert recorded[0] == "{'optim=own:LionConfig': 'module own, which no installed package has'}"
    losses = [float(line.split()[1]) for line in recorded[1:]]
    assert losses[-1] < losses[0]
    assert [int(line.split()[0]) for line in printed(cells[-1]).splitlines()] == list(range(1, 11))
