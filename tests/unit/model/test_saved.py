import json
import os
import tracemalloc
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save, save_file

from bertwright.core.errors import ArtifactError, DataError
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model, read_tensors, save_model, write_safetensors


@pytest.fixture
def folder(tmp_path: Path, tiny: BertConfig) -> Path:
    torch.manual_seed(0)
    save_model(tmp_path / "model", tiny, PreTrainingModel(tiny).state_dict(), b"[PAD]\n[UNK]\n")
    return tmp_path / "model"


def test_round_trip(folder: Path, tiny: BertConfig) -> None:
    torch.manual_seed(0)
    original = PreTrainingModel(tiny).state_dict()
    torch.manual_seed(7)
    before = torch.get_rng_state()
    loaded = load_model(folder, kernel="padded")
    assert torch.equal(before, torch.get_rng_state())
    assert loaded.config == tiny and loaded.bert.kernel == "padded"
    assert all(torch.equal(tensor, original[name]) for name, tensor in loaded.state_dict().items())
    assert all(p.requires_grad and p.device.type == "cpu" for p in loaded.parameters())
    assert (folder / "vocab.txt").read_bytes() == b"[PAD]\n[UNK]\n"


def test_the_tied_decoder_is_stored_once(folder: Path, tiny: BertConfig) -> None:
    stored = load_file(folder / "model.safetensors")
    assert [list(t.shape) for t in stored.values()].count([tiny.vocab_size, tiny.hidden_size]) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.txt"]


def test_without_next_sentence(tmp_path: Path, tiny: BertConfig) -> None:
    config = tiny.model_copy(update={"next_sentence": False})
    save_model(tmp_path, config, PreTrainingModel(config).state_dict())
    assert load_model(tmp_path).nsp is None
    assert not (tmp_path / "vocab.txt").exists()


def test_wrong_tensors_are_named(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    norm = tensors.pop("mlm.norm.weight")
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ArtifactError, match=r"missing mlm\.norm\.weight"):
        load_model(folder)
    save_file(tensors | {"mlm.norm.weight": norm[:-1].clone(), "stray": norm}, folder / "model.safetensors")
    with pytest.raises(ArtifactError, match=r"unexpected stray; mlm\.norm\.weight has shape \[23\].* requires \[24\]"):
        load_model(folder)


def test_damaged_or_absent_files(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match=r"model\.safetensors is not a complete safetensors file: its tensors end"):
        load_model(folder)
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hiden": 1}))
    with pytest.raises(ArtifactError, match="unknown key 'hiden'"):
        load_model(folder)
    with pytest.raises(ArtifactError, match=r"config\.json"):
        load_model(folder / "absent")


def test_no_second_copy_of_the_weights_is_made_to_write_them(tmp_path: Path) -> None:
    """As bytes they would take as much memory again at the end of a training, when it has most already."""
    tensors = {"a": torch.ones(4_000_000), "b": torch.ones(2, 3)}
    tracemalloc.start()
    write_safetensors(tmp_path / "model.safetensors", tensors)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
    assert (tmp_path / "model.safetensors").read_bytes() == save(tensors)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o077 == (0o666 & ~umask()) & 0o077


def test_a_full_disk_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write .*model.safetensors: .*\. Choose a folder you may write to"):
        write_safetensors(tmp_path / "absent" / "model.safetensors", {"a": torch.ones(2)})
    assert list(tmp_path.iterdir()) == []


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="this system does not say where a file is mapped")
def test_tensors_that_are_read_lie_in_their_file(folder: Path) -> None:
    """So none of them takes memory before it is looked at, and a rank reads its own part of them alone."""
    path = folder / "model.safetensors"
    tensors = read_tensors(path)
    regions = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if str(path) in line]
    bounds = [[int(bound, 16) for bound in region[0].split("-")] for region in regions]
    assert bounds
    for name, tensor in tensors.items():
        assert any(first <= tensor.data_ptr() < last for first, last in bounds), name
