"""The notebook about plugins trains, and its plain loop reads the batches; it is kept without outputs."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.processes import PATIENCE

NOTEBOOK = ROOT / "notebooks" / "own_optimizer.ipynb"
pytestmark = pytest.mark.filterwarnings("ignore")  # of Jupyter's packages


def read() -> Any:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_it_is_kept_without_outputs_and_names_no_internal_module() -> None:
    code = [cell for cell in read().cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    imports = [line for cell in code for line in cell.source.splitlines() if "bertwright" in line and "import" in line]
    assert imports and all(line.startswith(("from bertwright import", "from bertwright.plugins")) for line in imports)


def test_it_trains_with_its_optimizer_and_in_its_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", ENVIRONMENT["OMP_NUM_THREADS"])
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    notebook = read()
    nbclient.NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = ["".join(out.get("text", "") for out in cell.get("outputs", ())) for cell in notebook.cells]
    plugin = "{'optim=own:LionConfig': 'module own, which no installed package has'}"
    (recorded,) = (text for text in printed if plugin in text)
    losses = [float(line.split()[1]) for line in recorded.splitlines()[1:]]
    assert losses[-1] < losses[0]
    assert [int(line.split()[0]) for line in printed[-1].splitlines()] == list(range(1, 11))
