"""What TensorFlow writes, by Google's program of 2018 and by the Model Garden, is read with the same bits, and
computes the same."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.processes import PATIENCE
from tests.reference.tensorflow_outputs import compare_ours, compare_transformers, with_vocabulary
from tests.rows import each_row

from bertwright.model.importers.tensorflow import TensorFlowWeights
from bertwright.model.importers.tensorflow_bundle import Bundle

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-tensorflow" / "bin" / "python"
PROGRAM = ROOT / "tests" / "reference" / "tensorflow_bert.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.is_file(), reason="TensorFlow is not installed: make test-tensorflow"),
]
GOOGLE = ("google", "partitioned", "sharded")
NETWORKS = dict.fromkeys(GOOGLE, "bert_model.ckpt")
NETWORKS |= dict.fromkeys(("numbered", "encoder", "numbered-whole", "whole"), "ckpt-1")


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorflow")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([PYTHON, "-W", "ignore", PROGRAM, folder], check=True, env=environment, timeout=PATIENCE)
    return folder


@each_row("name", NETWORKS)
def test_outputs_are_those_of_the_program(name: str, written: Path) -> None:
    prefix = with_vocabulary(written / name) / NETWORKS[name]
    assert max(compare_ours(prefix).values()) < 1e-5
    assert max(compare_transformers(prefix).values()) < 1e-5


def test_the_later_approximation_of_gelu_differs_a_little(written: Path) -> None:
    """Later versions of Google's program approximate it by a hyperbolic tangent; transformers and this project do not.
    Published checkpoints were trained with either."""
    found = compare_ours(with_vocabulary(written / "tanh") / "bert_model.ckpt")
    assert 1e-5 < found["hidden"] < 1e-2


@each_row("name", [*NETWORKS, "dtypes"])
def test_names_shapes_and_dtypes_are_those_that_tensorflow_reads(name: str, written: Path) -> None:
    bundle = Bundle(written / name / NETWORKS.get(name, "x"))
    bundle.check_data()
    theirs = json.loads((written / name / "shapes.json").read_text())
    ours = {key: [entry.dtype, list(entry.shape)] for key, entry in bundle.entries.items()}
    assert {key: [kind.replace("half", "float16"), shape] for key, (kind, shape) in theirs.items()} == ours


def test_devices_have_files_of_their_own(written: Path) -> None:
    weights = TensorFlowWeights(written / "sharded")
    assert [file.name.rpartition("-of-")[2] for file in weights.files[1:]] == ["00003"] * 3
    assert len({stored.file for stored in weights.stored.values()}) == 3


def test_partitions_are_those_of_the_variables(written: Path) -> None:
    bundle = Bundle(written / "partitioned" / "bert_model.ckpt")
    assert sum(bool(entry.slices) for entry in bundle.entries.values()) > 20


def test_an_index_of_several_blocks_is_read_whole(written: Path) -> None:
    bundle, values = Bundle(written / "dtypes" / "x"), np.load(written / "dtypes" / "values.npz")
    assert bundle.index.stat().st_size > 2**18  # TensorFlow begins a new block after as many bytes
    read = np.array([bundle.read(f"many/{number:05d}") for number in range(len(values["many"]))])
    assert np.array_equal(read.view(np.float64), values["many"])


def test_slices_of_long_variables_are_found(written: Path) -> None:
    bundle, values = Bundle(written / "slices" / "x"), np.load(written / "slices" / "values.npz")
    assert np.array_equal(bundle.read("long").view(np.float32), values["long"])
