"""The fault: every shard of a training set holds the same examples.

A shuffling script of the MLPerf BERT data never advanced its index, so it wrote one shard's examples into all of them;
the accuracy of runs trained on them stopped at 0.63 (mlcommons/training issue 659, training_results_v2.1 6 and 10).
Nothing in the files looks wrong. `bertwright inspect` compares what the shards hold, and our own files share nothing.

The switch: none. No recipe wants it.
"""

import shutil
from pathlib import Path

from tests.conftest import Prepared

from bertwright.examples.config import MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_heldout, open_loader
from bertwright.formats.export import ExportSet, export
from bertwright.formats.statistics import statistics
from bertwright.formats.target import Target
from bertwright.vocab.load import read_vocabulary


def shards(prepared: Prepared, folder: Path) -> list[Path]:
    """Three files of the examples of length 32."""
    settings = LoaderSettings(32, MaskingConfig(static=True), 16, MicroBatching(16), seed=1, phase="0")
    loader = open_loader(prepared.examples, PlanSet(length=32), settings)
    held = open_heldout(prepared.examples, 32, max_predictions=5, mask_rate=0.15)
    one = ExportSet("set", "text", loader, held)
    entries = read_vocabulary(prepared.vocab.file("vocab.txt"))
    export([one], folder, Target("hdf5"), 3, entries)
    return sorted(folder.rglob("*_training_*.hdf5"))


def faults(folder: Path) -> list[str]:
    (training,) = (found for found in statistics(folder)["sets"] if found["split"] == "training")
    return list(training["faults"])


def test_shards_that_are_one_and_the_same_are_named_and_ours_are_not(prepared: Prepared, tmp_path: Path) -> None:
    first, *others = shards(prepared, tmp_path / "ours")
    assert not any(first.name in fault for fault in faults(tmp_path / "ours"))
    for other in others:  # the script's index never moves
        shutil.copyfile(first, other)
    told = " ".join(faults(tmp_path / "ours"))
    assert all(path.name in told for path in (first, *others)), told
