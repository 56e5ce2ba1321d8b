"""The notebook does what it says, against a stand-in of Azure; and is kept without what it printed."""

import os
import sys
from pathlib import Path

import pytest
from tests.azureml.service import SIGNATURE, STEPS, TOKEN, Service
from tests.processes import PATIENCE

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "azureml.ipynb"
pytestmark = pytest.mark.filterwarnings("ignore")  # of Jupyter's and Azure's packages


def read() -> object:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_it_is_kept_without_outputs() -> None:
    for cell in read().cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None


@pytest.mark.slow
def test_it_submits_a_job(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "200")
    notebook = read()
    nbclient.NotebookClient(notebook, timeout=PATIENCE).execute(cwd=str(Path.cwd()))
    printed = ["".join(each.get("text", "") for each in cell.get("outputs", ())) for cell in notebook.cells]
    said = "\n".join(printed)
    assert not [line for line in said.splitlines() if line.startswith("bertwright: ")], said
    (created,) = service.put("jobs")
    assert tuple(created.body["properties"]["jobs"]) == STEPS
    name = created.path.removeprefix("jobs/")
    assert f"pipeline: job {name}, https://ml.azure.example/runs/{name}" in said
    assert printed[-1].split()[:3] == ["pipeline", name, "NotStarted"]
    assert "smoke on " in said and "exec bertwright train recipe.toml --out run" in said
    assert TOKEN not in said and SIGNATURE not in said
