"""Training beside a teacher: it learns, goes on bit-identical, knows its teacher by content, is refused beforehand."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Prepared
from tests.reference.teachers import write_stock
from tests.unit.tasks.test_distillation import bert, network
from tests.unit.train.conftest import PHASES, trains_into
from tests.unit.train.test_run import Notes, flip_a_bit, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted, RecipeError
from bertwright.model.pretrained_config import check_vocabulary, other_vocabulary, own_vocabulary, read_pretrained
from bertwright.vocab.config import VocabConfig

pytestmark = pytest.mark.heavy

KEY = "train.objective.teacher"
Train = Callable[..., Artifact]


@pytest.fixture(scope="module")
def trained(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trains_into(prepared, tmp_path_factory.mktemp("teacher"))(phases=[{**PHASES[0], "steps": 60}]).path


@pytest.fixture
def teacher(trained: Path, tmp_path: Path) -> Path:
    """A finished training of ours, which a test may damage."""
    return shutil.copytree(trained, tmp_path / "teacher")


def objective(teacher: Path, **keys: Any) -> dict[str, Any]:
    return {"kind": "distillation", "teacher": teacher, **keys}


def test_every_term_is_measured_and_the_masked_loss_decides(train: Train, teacher: Path) -> None:
    done = train(objective=objective(teacher), phases=[{**PHASES[0], "steps": 60}])
    first, last = (metric_lines(done.path)[place] for place in (0, -1))
    names = ("mlm", "nsp", "soft", "hidden")
    assert [name for name in first if name.endswith("_loss")][:4] == [f"{name}_loss" for name in names]
    assert {f"heldout_{name}_loss" for name in names} <= last.keys()
    assert "heldout_soft_accuracy" in last and "heldout_hidden_accuracy" not in last
    for name in ("mlm", "soft", "hidden"):
        assert last[f"{name}_loss"] < first[f"{name}_loss"], f"{name} is learnt"
    assert done.counts["heldout"].keys() >= {"mlm_loss", "soft_loss", "hidden_loss", "soft_accuracy"}
    assert done.manifest["config"]["train"]["objective"]["teacher"] == "given"


@pytest.mark.parametrize("row", [1, 3, 7])
def test_stopped_and_continued_it_ends_bit_identical(train: Train, teacher: Path, row: int) -> None:
    undisturbed = train("undisturbed", objective=objective(teacher))
    with pytest.raises(Interrupted):
        train("disturbed", objective=objective(teacher), log=Notes(kill_at_row=row))
    assert same(weights(train("disturbed", objective=objective(teacher))), weights(undisturbed))
    with pytest.raises(RuntimeError):
        train("crashed", objective=objective(teacher), log=Notes(kill_at_row=row + 1, error=RuntimeError))
    crashed = train("crashed", objective=objective(teacher))
    assert same(weights(crashed), weights(undisturbed))
    assert metric_lines(crashed.path) == metric_lines(undisturbed.path)


def test_two_micro_batches_are_one(train: Train, teacher: Path, no_dropout: dict[str, Any]) -> None:
    keys = {"objective": objective(teacher), **no_dropout}
    one, two = (train(f"m{m}", phases=[{**PHASES[0], "micro_batch": m}], **keys) for m in (8, 4))
    for row, other in zip(metric_lines(one.path), metric_lines(two.path), strict=True):
        for name in ("mlm_loss", "nsp_loss", "soft_loss", "hidden_loss", "grad_norm"):
            assert row[name] == pytest.approx(other[name], rel=1e-5)


def test_in_bfloat16_both_compute_in_it(train: Train, teacher: Path, no_dropout: dict[str, Any]) -> None:
    keys = {"objective": objective(teacher), "phases": [PHASES[0]], **no_dropout}
    wide, low = train("wide", **keys), train("low", precision={"kind": "bf16", "allow_slow": True}, **keys)
    for row, other in zip(metric_lines(wide.path), metric_lines(low.path), strict=True):
        for name in ("mlm_loss", "soft_loss", "hidden_loss"):
            assert row[name] == pytest.approx(other[name], rel=0.02) and row[name] != other[name]


def test_the_teachers_weights_stay_and_draw_no_random_numbers(train: Train, teacher: Path) -> None:
    """With every share but that of pre-training near 0, and no term switched off, the steps are those without it."""
    before = (teacher / "model" / "model.safetensors").read_bytes()
    plain = train("plain")
    tiny = {"soft_weight": 1e-30, "hidden_weight": 0, "mlm_weight": 1}
    beside = train("beside", objective=objective(teacher, **tiny))
    for row, other in zip(metric_lines(plain.path), metric_lines(beside.path), strict=True):
        assert row["mlm_loss"] == pytest.approx(other["mlm_loss"], rel=1e-5)
    assert (teacher / "model" / "model.safetensors").read_bytes() == before


def test_a_teacher_is_identified_by_content(train: Train, prepared: Prepared, tmp_path: Path) -> None:
    entries = prepared.vocab.file("vocab.txt").read_text().splitlines()
    folders = [
        write_stock(tmp_path / f"stock{seed}", network(bert(2, width=16 + 8, rows=len(entries)), seed), entries)
        for seed in (1, 2)
    ]
    keys = {"hidden_weight": 0, "temperature": 1.5}
    done = train(objective=objective(folders[0], **keys))
    moved = folders[0].rename(tmp_path / "moved")
    assert train(objective=objective(moved, **keys)).fingerprint == done.fingerprint
    with pytest.raises(ArtifactError, match=r"its input train.objective.teacher changed"):
        train(objective=objective(folders[1], **keys))
    with pytest.raises(ArtifactError, match=r"train.objective.temperature: 1.5 -> 2.0"):
        train(objective=objective(moved, hidden_weight=0))


def test_only_an_unfinished_training_needs_its_teacher(train: Train, teacher: Path) -> None:
    done = train("done", objective=objective(teacher))
    with pytest.raises(Interrupted):
        train("begun", objective=objective(teacher), log=Notes(kill_at_row=2))
    shutil.rmtree(teacher)
    assert train("done", objective=objective(teacher)).fingerprint == done.fingerprint
    with pytest.raises(RecipeError, match=r"is not a folder; give a finished train folder.*Nothing is downloaded"):
        train("begun", objective=objective(teacher))


def test_contradictions_are_refused_before_writing(
    train: Train, teacher: Path, prepared: Prepared, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=r"train.objective.layers: \[1, 1\] must be 1 numbers from 0 to 1"):
        train("layers", objective=objective(teacher, layers=(1, 1)))
    entries = prepared.vocab.file("vocab.txt").read_text().splitlines()
    config = bert(1, rows=len(entries)).model_copy(update={"max_position_embeddings": 16})
    short = write_stock(tmp_path / "short teacher", network(config, 1), entries)
    with pytest.raises(RecipeError, match=r"train.phases.1.length: 32 is longer than the 16 positions of train.objec"):
        train("short", objective=objective(short, hidden_weight=0))
    other = write_stock(tmp_path / "other teacher", network(bert(1), 1))
    text = r"has another vocabulary than .*vocab \(61 entries there, [\d,]+ here; entry 5 is 'word0' there and "
    with pytest.raises(ArtifactError, match=text + r".*: its token ids belong to other words. Set vocab.file="):
        train("words", objective=objective(other, hidden_weight=0))
    assert not any((tmp_path / name).exists() for name in ("layers", "short", "words"))


def test_vocabularies_are_compared_by_hash_and_text_settings(teacher: Path, prepared: Prepared) -> None:
    """The same entries, read with other text settings, are another vocabulary."""
    check_vocabulary(read_pretrained(teacher), prepared.vocab, KEY)
    counts = {**prepared.vocab.counts, "vocabulary": "f" * 64}
    other = replace(prepared.vocab, manifest={**prepared.vocab.manifest, "counts": counts})
    text = f"train.objective.teacher {teacher} has another vocabulary than {other.path} ("
    with pytest.raises(ArtifactError, match=re.escape(text) + "[0-9a-f]{12} instead of f{12}"):
        check_vocabulary(read_pretrained(teacher), other, KEY)


def test_the_text_settings_of_a_training_of_ours_are_named(teacher: Path, prepared: Prepared) -> None:
    given, settings = read_pretrained(teacher), prepared.vocab.manifest["config"]["vocab"]
    lower, strip = bool(settings.get("lower_case")), bool(settings.get("strip_accents"))
    ours = VocabConfig(file=teacher / "model" / "vocab.txt", lower_case=lower, strip_accents=not strip)
    own = f"vocab.lower_case={str(lower).lower()} vocab.strip_accents={str(strip).lower()} vocab.longest_word=1000"
    assert other_vocabulary(given, ours).startswith(f"({own} there, vocab.lower_case=")
    assert own_vocabulary(given) == f"Set vocab.file={teacher / 'model' / 'vocab.txt'} {own}"
    assert other_vocabulary(given, ours.model_copy(update={"strip_accents": strip, "longest_word": 1000})) == ""
    assert given.artifact is not None
    counts = {**given.artifact.counts, "vocabulary": "f" * 64}
    damaged = replace(given, artifact=replace(given.artifact, manifest={**given.artifact.manifest, "counts": counts}))
    assert other_vocabulary(damaged, ours).startswith("(other text settings there, ")


def test_a_checkpoint_is_no_teacher(teacher: Path) -> None:
    checkpoint = max((teacher / "checkpoints").iterdir())
    with pytest.raises(RecipeError, match=r"was made by the stage 'checkpoint'; give a finished train folder"):
        read_pretrained(checkpoint)


def test_a_damaged_teacher_is_told(train: Train, teacher: Path) -> None:
    flip_a_bit(teacher / "model" / "model.safetensors")
    with pytest.raises(
        ArtifactError, match=r"model.safetensors is damaged: its SHA-256 differs from the one in manifest"
    ):
        train(objective=objective(teacher))
