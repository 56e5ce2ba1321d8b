"""The data that Intel's guide describes, small: HDF5 files of both lengths, those for scores, and the configuration.

dataset/2048_shards_uncompressed_128/part_00000_of_00001.hdf5
dataset/2048_shards_uncompressed_512/part_00000_of_00001.hdf5
dataset/eval_set_uncompressed/part_eval_10k.hdf5    of length 512
dataset/vocab.txt
bert_config.json
"""

import json
from pathlib import Path

import h5py
import numpy as np
from tests.reference.teachers import SPECIALS

CONFIG = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
          "max_position_embeddings": 512, "vocab_size": 40}  # fmt: skip
PREDICTIONS = 76


def write_data_of_intel(folder: Path) -> None:
    """Write the files below `folder`."""
    sets = (("2048_shards_uncompressed_128", 128, 24), ("2048_shards_uncompressed_512", 512, 24))
    for number, (name, length, count) in enumerate((*sets, ("eval_set_uncompressed", 512, 8))):
        place = folder / "dataset" / name
        place.mkdir(parents=True)
        file = "part_eval_10k.hdf5" if name.startswith("eval") else "part_00000_of_00001.hdf5"
        _write(place / file, length, count, np.random.default_rng(number))
    entries = [*SPECIALS, *(f"w{i}" for i in range(CONFIG["vocab_size"] - len(SPECIALS)))]
    (folder / "dataset" / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))


def _write(file: Path, length: int, count: int, rng: np.random.Generator) -> None:
    """Full pairs of random words, of which every seventh is a [MASK]."""
    cls, sep, mask = (SPECIALS.index(name) for name in ("[CLS]", "[SEP]", "[MASK]"))
    ids = rng.integers(len(SPECIALS), CONFIG["vocab_size"], (count, length)).astype(np.int32)
    middle = length // 2
    ids[:, 0], ids[:, middle], ids[:, -1] = cls, sep, sep
    chosen = [place for place in range(3, length - 1, 7) if place != middle][:PREDICTIONS]
    positions, labels = np.zeros((2, count, PREDICTIONS), np.int32)
    positions[:, : len(chosen)] = chosen
    labels[:, : len(chosen)] = ids[:, chosen]
    ids[:, chosen] = mask
    segments = (np.arange(length) > middle).astype(np.int8)
    with h5py.File(file, "w") as handle:
        handle["input_ids"] = ids
        handle["input_mask"] = np.ones((count, length), np.int8)
        handle["segment_ids"] = np.tile(segments, (count, 1))
        handle["masked_lm_positions"] = positions
        handle["masked_lm_ids"] = labels
        handle["next_sentence_labels"] = rng.integers(0, 2, count).astype(np.int8)
