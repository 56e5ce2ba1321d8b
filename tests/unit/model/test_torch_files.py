"""Files of torch.save, in both formats, beside what torch itself reads from them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rows import each_row
from torch import nn

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.members import find_weights, open_weights
from bertwright.model.importers.pickled import PickledWeights

FORMATS = [(True, 2), (True, 4), (True, 5), (False, 2), (False, 4)]
FORMAT = each_row(("as_zip", "protocol"), FORMATS)


def save(content: Any, file: Path, as_zip: bool = True, protocol: int = 2) -> Path:
    torch.save(content, file, _use_new_zipfile_serialization=as_zip, pickle_protocol=protocol)
    return file


def tensors() -> dict[str, torch.Tensor]:
    """All dtypes that a checkpoint may have, and all ways in which tensors may lie in their storage."""
    draw = torch.Generator().manual_seed(0)
    table = torch.randn(20, 16, generator=draw)
    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    integers = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    return {
        **{str(dtype): torch.randn(5, 3, generator=draw).to(dtype) for dtype in floats},
        **{str(dtype): torch.arange(7).to(dtype) for dtype in integers},
        "bool": torch.tensor([True, False, True]),
        "one byte": torch.arange(3, dtype=torch.uint8),  # after it, others begin at odd places in the older format
        "table": table,
        "tied": table,
        "rows": table[3:7],
        "block": table[3:7, 2:9],
        "column": table[:, 5],
        "transposed": table.t(),
        "number": torch.tensor(3.5),
        "empty": torch.empty(0, 3),
        "expanded": torch.arange(9).expand((1, -1)),
    }


@FORMAT
def test_every_tensor_is_what_torch_reads(tmp_path: Path, as_zip: bool, protocol: int) -> None:
    file = save(tensors(), tmp_path / "weights.bin", as_zip, protocol)
    weights, expected = open_weights(file), torch.load(file, weights_only=protocol == 2)
    assert weights.files == (file,) and list(weights.stored) == list(expected)
    read = weights.read()
    for name, tensor in expected.items():
        stored = weights.stored[name]
        assert stored.shape == tuple(tensor.shape) == tuple(read[name].shape) and stored.name == name
        assert f"torch.{stored.dtype}" == str(tensor.dtype) == str(read[name].dtype)
        assert torch.equal(read[name], tensor), name
        assert read[name].stride() == tensor.stride()


@FORMAT
def test_a_network_of_parameters_and_buffers_with_its_own_state(tmp_path: Path, as_zip: bool, protocol: int) -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    file = save(network.state_dict(), tmp_path / "a.pt", as_zip, protocol)
    read = open_weights(file).read()
    assert read.keys() == network.state_dict().keys()
    assert all(torch.equal(tensor, read[name]) for name, tensor in network.state_dict().items())
    named = dict(network.named_parameters())
    read = open_weights(save(named, tmp_path / "b.pt", as_zip, protocol)).read()
    assert all(torch.equal(tensor, read[name]) for name, tensor in named.items())


def test_dtypes_that_only_the_newer_format_knows(tmp_path: Path) -> None:
    given = {"a": torch.arange(5).to(torch.uint16), "b": torch.arange(5).to(torch.uint64)[2:]}
    read = open_weights(save(given, tmp_path / "a.pt")).read()
    assert all(torch.equal(read[name], tensor) for name, tensor in given.items())


def test_reading_neither_writes_to_the_file_nor_shares_memory_with_others(tmp_path: Path) -> None:
    file = save({"a": torch.zeros(1000)}, tmp_path / "a.pt")
    before, weights = file.read_bytes(), open_weights(file)
    weights.read()["a"].add_(1)
    assert file.read_bytes() == before and not weights.read()["a"].any()


def test_names_and_shapes_are_read_without_torch(tmp_path: Path) -> None:
    import subprocess
    import sys

    file = save(tensors(), tmp_path / "a.pt")
    code = (
        "import sys; from pathlib import Path; from bertwright.model.importers.members import open_weights;"
        f"w = open_weights(Path({str(file)!r}));"
        "print(len(w.stored), w.stored['block'].shape, 'torch' in sys.modules, 'pickle' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{len(tensors())} (4, 7) False")


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    assert find_weights(tmp_path) is None and find_weights(tmp_path / "gone") is None
    with pytest.raises(
        ArtifactError, match=r"has no weights\. These are read: a safetensors file, a file of torch.save"
    ):
        open_weights(tmp_path)
    for other in ("optimizer.pt", "training_args.bin", "rng_state.pth", "scheduler.pt"):
        save({"a": torch.ones(1)}, tmp_path / other)
    (tmp_path / "model.bin").write_bytes(b"another program's")
    assert find_weights(tmp_path) is None
    first = save({"a": torch.ones(1)}, tmp_path / "ckpt_7038.pt", as_zip=False)
    assert open_weights(tmp_path).files == (first,)
    save({"a": torch.ones(1)}, tmp_path / "ckpt_8601.pt")
    with pytest.raises(ArtifactError, match=r"several files of weights: ckpt_7038.pt, ckpt_8601.pt. Give the path of"):
        _ = open_weights(tmp_path).stored
    main = save({"b": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    assert open_weights(tmp_path).files == (main,)
    extensionless = save({"c": torch.ones(1)}, tmp_path / "latest-rank0", as_zip=False)
    assert list(open_weights(extensionless).stored) == ["c"]


def test_several_files_with_an_index(tmp_path: Path) -> None:
    save({"a": torch.ones(2)}, tmp_path / "pytorch_model-00001-of-00002.bin")
    save({"b": torch.ones(3)}, tmp_path / "pytorch_model-00002-of-00002.bin", as_zip=False)
    index = tmp_path / "pytorch_model.bin.index.json"
    one, two = (f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2))
    index.write_text(f'{{"weight_map": {{"a": "{one}", "b": "{two}"}}}}')
    weights = open_weights(tmp_path)
    assert isinstance(weights, PickledWeights) and [file.name for file in weights.files] == [one, two]
    assert {name: tuple(tensor.shape) for name, tensor in weights.read().items()} == {"a": (2,), "b": (3,)}
    index.write_text(f'{{"weight_map": {{"a": "{one}", "b": "{one}"}}}}')
    with pytest.raises(ArtifactError, match=f"says that b is in {one}, but it is not"):
        _ = open_weights(tmp_path).stored
    (tmp_path / two).unlink()
    index.write_text(f'{{"weight_map": {{"a": "{one}", "b": "{two}"}}}}')
    with pytest.raises(ArtifactError, match="does not exist. Download or copy it, too"):
        _ = open_weights(tmp_path).files
