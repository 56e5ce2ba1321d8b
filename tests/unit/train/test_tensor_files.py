"""Checkpoints in files of several ranks: whole once all have written, read as one, and damaged as any other."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.rows import each_row

from bertwright.core.artifact import open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.log import SILENT
from bertwright.train.checkpoints.checkpoint import load, newest_valid, publish, remove_partial, save, save_part
from bertwright.train.checkpoints.tensor_files import Snapshot, hash_of
from bertwright.train.engine.partition import Share
from bertwright.train.state import State

IDENTITY = Identity("checkpoint", 1, {}, {}, {})
STATE = State(total_steps=7)
WEIGHTS = {f"layer.{i}": torch.arange(4.0 * i, 4.0 * i + 4).view(2, 2) for i in range(5)}
MOMENTS = {f"exp_avg.{name}": tensor + 0.5 for name, tensor in WEIGHTS.items()} | {"step": torch.tensor(3)}


def write(folder: Path, world: int, ranks: range | None = None) -> None:
    for rank in ranks or range(world):
        share = Share({name: tensor.numel() for name, tensor in WEIGHTS.items()}, world, rank)
        save_part(folder, STATE, Snapshot(*share.of(WEIGHTS, MOMENTS)), rank, world)


@each_row("world", [2, 3, 8])
def test_what_several_ranks_write_is_read_as_what_one_writes(world: int, tmp_path: Path) -> None:
    write(tmp_path / "many", world)
    many = open_artifact(publish(tmp_path / "many", IDENTITY, STATE, world))
    one = open_artifact(save(tmp_path / "one", IDENTITY, STATE, Snapshot(WEIGHTS, MOMENTS)))
    (state, *ours), (expected, *theirs) = load(many), load(one)
    assert state == expected
    for tensors, others in zip(ours, theirs, strict=True):
        assert tensors.keys() == others.keys() and all(torch.equal(tensors[n], t) for n, t in others.items())
    assert len(many.names("model-")) == world and hash_of(many, "model") != hash_of(one, "model")


def test_the_index_is_the_one_that_transformers_writes(tmp_path: Path) -> None:
    write(tmp_path, 2)
    folder = publish(tmp_path, IDENTITY, STATE, 2)
    index = json.loads((folder / "model.safetensors.index.json").read_bytes())
    assert set(index) == {"metadata", "weight_map"}
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in WEIGHTS.values())
    held = {name: load_file(folder / file) for file in set(index["weight_map"].values()) for name in [file]}
    assert set(held) == {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    assert {name: file for file, tensors in held.items() for name in tensors} == index["weight_map"]


def test_a_checkpoint_that_a_rank_has_not_written_is_none(tmp_path: Path) -> None:
    write(tmp_path, 2, range(1))
    with pytest.raises(
        DataError, match=r"model-00002-of-00002\.safetensors of another rank is missing; all ranks must"
    ):
        publish(tmp_path, IDENTITY, STATE, 2)
    assert not [*tmp_path.iterdir()]


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    write(tmp_path, 2)
    before = publish(tmp_path, IDENTITY, STATE, 2)
    save_part(tmp_path, State(total_steps=9), Snapshot(WEIGHTS, MOMENTS), rank=1, world=2)
    remove_partial(tmp_path)
    found = newest_valid(tmp_path, SILENT)
    assert found is not None and found.path == before and [path.name for path in tmp_path.iterdir()] == [before.name]


def test_damage_of_one_ranks_file_is_found(tmp_path: Path) -> None:
    write(tmp_path, 2)
    older = publish(tmp_path, IDENTITY, STATE, 2)
    later = State(total_steps=8)
    for rank in range(2):
        save_part(tmp_path, later, Snapshot(WEIGHTS if rank else {}, MOMENTS if rank else {}), rank, world=2)
    newer = publish(tmp_path, IDENTITY, later, 2)
    damaged = newer / "optimizer-00002-of-00002.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    found = newest_valid(tmp_path, SILENT)
    assert found is not None and found.path == older


def test_an_index_that_says_other_than_the_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 2)
    checkpoint = open_artifact(publish(tmp_path, IDENTITY, STATE, 2))
    path = checkpoint.path / "model.safetensors.index.json"
    index = json.loads(path.read_bytes())
    index["weight_map"]["layer.9"] = "model-00001-of-00002.safetensors"
    path.write_text(json.dumps(index))
    with pytest.raises(ArtifactError, match="is damaged|bytes instead of"):
        load(checkpoint)
