"""A cloud machine that is about to be reclaimed: the ranks save and end, and a resumed run has the same bits."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import Prepared
from tests.metadata import serving_metadata
from tests.pipeline.ranks_of import Training, train_on

from bertwright.core.files import sha256


@pytest.mark.parametrize("world", [1, 2])
def test_a_notice_on_one_machine_stops_all_ranks_and_they_go_on(world: int, prepared: Prepared, tmp_path: Path) -> None:
    places = prepared.examples.path, prepared.vocab.path
    with serving_metadata() as metadata:
        notice = {"kind": "azure", "address": metadata.address, "every": 0.01, "ends": True}
        # Soon enough that the notice comes before training ends, whatever the step.
        metadata.taken = datetime.now(UTC) + timedelta(seconds=30)
        train_on(world, [Training("noticed", {"spot_notice": notice})], *places, tmp_path / "ranks")
        assert metadata.asked, "the first rank of the machine asks"
        folder = tmp_path / "ranks" / "noticed"
        assert not (folder / "manifest.json").exists()
        (saved,) = (folder / "checkpoints").iterdir()
        assert saved.name < "step-000000010", "saved by the notice, before any checkpoint was due"
        metadata.taken = None
        trainings = [Training("noticed", {"spot_notice": notice}), Training("undisturbed")]
        train_on(world, trainings, *places, tmp_path / "ranks")
    model = Path("model") / "model.safetensors"
    assert sha256(folder / model) == sha256(tmp_path / "ranks" / "undisturbed" / model)
