"""What a training run is a function of, and which checkpoints it may continue: known without torch and without data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.artifact import MANIFEST, build, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import make_folder, read_json, write_json
from bertwright.core.log import SILENT
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import AdamWConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.identity import (
    Settings,
    checkpoint_identity,
    finished_identity,
    identity,
    open_finished,
    refuse_other_settings,
)
from bertwright.transfer.parts import CHECKPOINTS

PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 10}
INPUTS = {"examples": "e" * 64, "vocab": "v" * 64}


def settings(phase: dict[str, Any] | None = None, **train: Any) -> Settings:
    config = TrainConfig.model_validate({"phases": [PHASE | (phase or {})], **train})
    return Settings(config, BertModelConfig(size="tiny"), AdamWConfig())


def run_identity(folder: Path, phase: dict[str, Any] | None = None, **train: Any) -> Identity:
    return identity(settings(phase, **train), True, INPUTS, folder)


def checkpoint(folder: Path, step: int, belongs_to: Identity) -> Path:
    path = make_folder(folder / CHECKPOINTS / f"step-{step:09d}")
    write_json(path / "state.json", {"step": step})
    seal(path, belongs_to, {}, 0.0)
    return path


def of_checkpoints(folder: Path, phase: dict[str, Any] | None = None, **train: Any) -> Identity:
    return checkpoint_identity(settings(phase, **train), True, run_identity(folder, phase, **train))


@each_row("train", [{"device": "cpu"}, {"threads": 3}, {"log_every": 1}, {"keep_checkpoints": 9}, {"timeout": 5.0}])
def test_how_it_is_run_is_no_part_of_it(tmp_path: Path, train: dict[str, Any]) -> None:
    assert run_identity(tmp_path, **train).fingerprint == run_identity(tmp_path).fingerprint


@each_row("phase", [{"batch": 9}, {"learning_rate": 2e-2}, {"schedule": "poly"}, {"warmup": 0.2}])
def test_what_decides_the_weights_is(tmp_path: Path, phase: dict[str, Any]) -> None:
    assert run_identity(tmp_path, phase).fingerprint != run_identity(tmp_path).fingerprint
    assert of_checkpoints(tmp_path, phase).fingerprint != of_checkpoints(tmp_path).fingerprint


def test_pairs_change_the_identity_of_a_network_file(tmp_path: Path) -> None:
    (tmp_path / "bert.json").write_text(
        json.dumps({"vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
                    "intermediate_size": 8})
    )  # fmt: skip
    both = replace(settings(), model=BertModelConfig(config=tmp_path / "bert.json"))
    one, other = (identity(both, pairs, INPUTS, tmp_path).fingerprint for pairs in (True, False))
    assert one != other


def test_a_longer_phase_keeps_the_checkpoint_identity(tmp_path: Path) -> None:
    assert run_identity(tmp_path, {"steps": 20}).fingerprint != run_identity(tmp_path).fingerprint
    assert of_checkpoints(tmp_path, {"steps": 20}).fingerprint == of_checkpoints(tmp_path).fingerprint
    assert of_checkpoints(tmp_path, {"steps": 20, "end_after": 5}).fingerprint == of_checkpoints(tmp_path).fingerprint


def test_a_donor_counts_by_content_wherever_it_lies(tmp_path: Path) -> None:
    donors = [tmp_path / "here", tmp_path / "moved" / "away"]
    for donor in donors:
        build(make_folder(donor.parent) / donor.name, Identity("train", 1, {}, {"x": "1"}), SILENT, lambda draft: {})
    one, other = (run_identity(tmp_path / "train", init_from=donor) for donor in donors)
    assert one.fingerprint == other.fingerprint != run_identity(tmp_path / "train").fingerprint


def donor_checkpoint(folder: Path, step: int) -> Path:
    """A checkpoint of a donor: each has the same settings, and other weights."""
    path = make_folder(folder / f"step-{step:09d}")
    for name in ("model.safetensors", "optimizer.safetensors"):
        (path / name).write_text(f"{name} after {step} steps")
    seal(path, Identity("checkpoint", 1, {}, {"x": "1"}), {"total_steps": step}, 0.0)
    return path


def test_two_checkpoints_of_one_donor_are_two_starts(tmp_path: Path) -> None:
    early, late = (donor_checkpoint(tmp_path / "donor", step) for step in (4, 12))
    out = tmp_path / "train"
    first = of_checkpoints(out, init_from=early)
    assert first.fingerprint != of_checkpoints(out, init_from=late).fingerprint
    copied = donor_checkpoint(tmp_path / "copied", 4)
    assert first.fingerprint == of_checkpoints(out, init_from=copied).fingerprint
    checkpoint(out, 5, first)
    refuse_other_settings(out, of_checkpoints(out, init_from=early))
    with pytest.raises(ArtifactError, match=r"its input train\.init_from changed"):
        refuse_other_settings(out, of_checkpoints(out, init_from=late))


def test_a_donor_that_is_gone_counts_by_what_the_checkpoints_say(tmp_path: Path) -> None:
    donor, out = tmp_path / "donor", tmp_path / "train"
    build(donor, Identity("train", 1, {}, {}), SILENT, lambda draft: {})
    before = run_identity(out, init_from=donor)
    checkpoint(out, 5, checkpoint_identity(settings(init_from=donor), True, before))
    donor.rename(tmp_path / "elsewhere")
    assert run_identity(out, init_from=donor).fingerprint == before.fingerprint
    with pytest.raises(ArtifactError, match=r"train\.init_from: .*donor is not a finished artifact"):
        run_identity(tmp_path / "another", init_from=donor)


def test_other_settings_are_refused_by_key(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5, of_checkpoints(tmp_path))
    refuse_other_settings(tmp_path, of_checkpoints(tmp_path, {"steps": 99}))
    with pytest.raises(ArtifactError, match=r"never discarded: .*learning_rate: 0\.01 -> 0\.02.*--out DIR") as caught:
        refuse_other_settings(tmp_path, of_checkpoints(tmp_path, {"learning_rate": 2e-2}))
    assert "batch" not in str(caught.value)


class OfTomorrow(TrainConfig):
    """The settings of a version with one more key, which is off."""

    key_of_tomorrow: bool = False


def test_a_new_key_at_its_default_keeps_checkpoints_valid(tmp_path: Path) -> None:
    def tomorrow(**train: Any) -> Identity:
        config = OfTomorrow.model_validate({"phases": [PHASE], **train})
        newer = replace(settings(), train=config)
        return checkpoint_identity(newer, True, identity(newer, True, INPUTS, tmp_path))

    checkpoint(tmp_path, 5, of_checkpoints(tmp_path))
    refuse_other_settings(tmp_path, tomorrow())
    with pytest.raises(ArtifactError, match="key_of_tomorrow"):
        refuse_other_settings(tmp_path, tomorrow(key_of_tomorrow=True))


def test_settings_come_from_the_newest_readable_checkpoint(tmp_path: Path) -> None:
    refuse_other_settings(tmp_path, of_checkpoints(tmp_path))  # no checkpoints: nothing to lose
    checkpoint(tmp_path, 5, of_checkpoints(tmp_path))
    (checkpoint(tmp_path, 9, of_checkpoints(tmp_path)) / MANIFEST).write_text("torn")
    refuse_other_settings(tmp_path, of_checkpoints(tmp_path))
    with pytest.raises(ArtifactError, match="batch"):
        refuse_other_settings(tmp_path, of_checkpoints(tmp_path, {"batch": 9}))


def test_a_finished_run_is_known_also_after_its_phases_grew(tmp_path: Path) -> None:
    run, weights = run_identity(tmp_path), "a" * 64
    assert open_finished(tmp_path, run) is None
    grown = [{"phase": 0, "step": 4, "from": 8, "to": 10}]
    sealed = finished_identity(run, grown, weights)
    seal(tmp_path, sealed, {"extensions": grown, "weights": weights}, 1.0)
    done = open_finished(tmp_path, run)
    assert done is not None and done.counts == read_json(tmp_path / MANIFEST)["counts"]
    assert open_finished(tmp_path, run_identity(tmp_path, {"steps": 11})) is None
    assert len({run.fingerprint, sealed.fingerprint, finished_identity(run, (), weights).fingerprint}) == 3
    assert finished_identity(run, (), weights).fingerprint != finished_identity(run, (), "b" * 64).fingerprint
