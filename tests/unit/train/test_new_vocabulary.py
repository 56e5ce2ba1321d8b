"""A network that starts from one with another vocabulary: which rows it gets, what a phase of new rows changes, and
what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.reference.batches import random_batch
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.tasks.test_distillation import bert, distilbert, modern, network
from tests.unit.train.conftest import MODEL, PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights
from torch.nn.functional import cross_entropy

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError, Interrupted, RecipeError
from bertwright.core.log import SILENT
from bertwright.model.bert.network import BertConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.interop.stock import load_tensors
from bertwright.model.model import build_model
from bertwright.model.new_rows import composed, from_text, projected, to_text
from bertwright.model.pretrained_config import read_pretrained
from bertwright.train.checkpoints.checkpoint import load
from bertwright.train.config import TrainConfig
from bertwright.train.setup.initial_weights import start_from
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.correspondence import Correspondence
from bertwright.vocab.entries import entries_of
from bertwright.vocab.run import run as vocab_run

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
TABLE, BIAS = "bert.embeddings.token.weight", "mlm.bias"


def example() -> Correspondence:
    """Entries that are 2, 0, pieces 1 and 3, piece 3, unknown, and 1."""
    return Correspondence(np.array([2, 0, -1, -1, -1, 1]), np.array([1, 3, 3]), np.array([0, 0, 2, 1, 0, 0]), 4)


def test_rows_are_copied_or_composed() -> None:
    older_UH = torch.randn(4, 6, generator=torch.Generator().manual_seed(2)) + 1
    rows, older = composed(older_UH, example(), 1).numpy(), older_UH.double().numpy()
    assert np.array_equal(rows[[0, 1, 5]], older_UH[[2, 0, 1]].numpy()), "to the bit"
    np.testing.assert_allclose(rows[2], (older[1] + older[3]) / 2, rtol=1e-6)
    np.testing.assert_allclose(rows[3], older[3], rtol=1e-6)
    assert (np.abs(rows[4] - older.mean(0)) < 5 * older.std(0, ddof=1)).all() and (rows[4] != older.mean(0)).all()
    bias = composed(older_UH[:, 0].clone(), example(), 1)
    assert bias.shape == (6,)
    np.testing.assert_allclose(bias[2:4], [(older[1, 0] + older[3, 0]) / 2, older[3, 0]], rtol=1e-6)


def test_rows_from_the_text_are_rotated_to_the_older_space() -> None:
    """Against numpy in float64; where the two spaces differ by a rotation, it is found."""
    random = np.random.default_rng(2)
    text, rows = (random.normal(size=(40, 6)) for _ in range(2))
    text[[3, 30]] = 0
    shared, occurs = np.arange(40) < 25, text.any(1)
    fitted = shared & occurs
    x, y = text[fitted], rows[fitted]
    u, _, v = np.linalg.svd((x - x.mean(0)).T @ (y - y.mean(0)))
    factor = np.linalg.norm(y - y.mean(0)) / np.linalg.norm(x - x.mean(0))
    expected = (factor * (text - x.mean(0)) @ (u @ v) + y.mean(0) + rows) / 2
    expected[~occurs] = rows[~occurs]
    given = (torch.from_numpy(each).float() for each in (text, rows))
    found = projected(*given, torch.from_numpy(shared))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    turned = text @ np.linalg.qr(random.normal(size=(6, 6)))[0] * 3 + 1
    found = projected(*(torch.from_numpy(each).float() for each in (text, turned)), torch.from_numpy(shared))
    np.testing.assert_allclose(found[occurs], turned[occurs], atol=1e-4)
    with pytest.raises(RecipeError, match=r"only 4 of them occur in the text; set train\.init_embeddings=pieces"):
        projected(*(torch.from_numpy(each).float() for each in (text, rows)), torch.arange(40) < 5)


def test_marks_are_recorded_as_text() -> None:
    marks = np.random.default_rng(1).random(30_001) < 0.3
    assert np.array_equal(from_text(to_text(marks)), marks) and len(to_text(marks)) < 6000


FAMILIES: list[NetworkConfig] = [bert(2), distilbert(2), modern(4)]


def vocabulary(folder: Path, entries: list[str]) -> Artifact:
    folder.mkdir(exist_ok=True)
    (folder / "given.txt").write_text("".join(f"{entry}\n" for entry in entries))
    return vocab_run(VocabConfig(file=folder / "given.txt"), None, folder / "vocab")


@pytest.mark.parametrize("config", FAMILIES, ids=lambda config: config.family)
@each_row("rows", [61, 64])
def test_the_same_entries_in_another_order_give_the_same_logits(
    config: NetworkConfig, rows: int, tmp_path: Path
) -> None:
    """Whatever the family, and if either network has rows beyond the vocabulary."""
    theirs = network(config.model_copy(update={"vocab_size": rows}), 1).eval()
    folder = write_stock(tmp_path / f"older{rows}", theirs)
    entries = entries_of(folder / "vocab.txt")
    order = np.random.default_rng(3).permutation(rows)
    vocab = vocabulary(tmp_path / f"new{rows}", [entries[i] for i in order])
    own = network(config.model_copy(update={"vocab_size": 72}), 2).eval()
    train = TrainConfig(phases=[PHASES[0]], init_from=folder, init_embeddings="pieces")
    begun = start_from(own, folder, train, vocab, SILENT)
    assert begun.new_V is not None and not begun.new_V.any()
    place_V = torch.from_numpy(np.argsort(order))
    batch = random_batch([9, 5], 4)
    moved = replace(batch, token_ids=place_V[batch.token_ids], labels=place_V[batch.labels])
    with torch.no_grad():
        logits_PV, expected_PV = own(moved)[0], theirs(batch)[0]
    assert logits_PV.shape[1] == 72 and bool((logits_PV[:, rows:] < -1000).all())
    torch.testing.assert_close(logits_PV[:, :rows], expected_PV[:, torch.from_numpy(order)], rtol=0, atol=1e-5)
    loss, expected = cross_entropy(logits_PV, moved.labels), cross_entropy(expected_PV, batch.labels)
    assert float(loss) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("config", FAMILIES, ids=lambda config: config.family)
def test_an_extended_vocabulary_leaves_what_is_known(config: NetworkConfig, tmp_path: Path) -> None:
    """Ids of older entries stay, and so do the states and logits of texts that consist of them."""
    theirs = network(config, 1).eval()
    folder = write_stock(tmp_path / "older", theirs)
    entries = entries_of(folder / "vocab.txt")
    vocab = vocabulary(tmp_path / "new", [*entries, "word1word2", "őrség", "##s"])
    own = network(config.model_copy(update={"vocab_size": 64}), 2).eval()
    train = TrainConfig(phases=[PHASES[0]], init_from=folder, init_embeddings="pieces")
    begun = start_from(own, folder, train, vocab, SILENT)
    assert begun.new_V is not None and np.flatnonzero(begun.new_V).tolist() == [61, 62, 63]
    for name, tensor in theirs.state_dict().items():
        found = own.state_dict()[name]
        assert torch.equal(
            found[: len(tensor)] if name in (f"{config.family}.embeddings.token.weight", BIAS) else found, tensor
        )
    batch = random_batch([9, 5], 4)
    with torch.no_grad():
        torch.testing.assert_close(own(batch)[0][:, :61], theirs(batch)[0], rtol=0, atol=1e-6)


@pytest.fixture
def older(prepared: Prepared, tmp_path: Path) -> Path:
    """A network like that of `train`, whose vocabulary lacks a third of the entries and has others."""
    entries = prepared.vocab.file("vocab.txt").read_text().splitlines()
    theirs = [entry for i, entry in enumerate(entries) if len(entry.removeprefix("##")) == 1 or i < 5 or i % 3]
    config = BertConfig.model_validate({**MODEL, "vocab_size": len(theirs) + 9})
    return write_stock(tmp_path / "older", network(config, 3), [*(f"word{i}" for i in range(9)), *theirs])


def only_new(older: Path, **keys: Any) -> dict[str, Any]:
    first, second = PHASES
    return {
        "init_from": older,
        "init_embeddings": "pieces",
        "phases": [{**first, "trains": "new-rows"}, second],
        **keys,
    }


def new_rows(vocab: Artifact, older: Path) -> NDArray[np.bool_]:
    theirs = set(entries_of(older / "vocab.txt"))
    return np.array([entry not in theirs for entry in entries_of(vocab.file("vocab.txt"))])


@each_row("averaging", ["none", {"kind": "ema", "decay": 0.9}, {"kind": "last", "count": 3, "every": 2}])
def test_a_phase_of_new_rows_changes_nothing_else(
    averaging: Any, train: Train, older: Path, prepared: Prepared, optim: Any, tmp_path: Path
) -> None:
    """With weight decay and an average of the weights: copied rows are those of the file, to the bit."""
    name, notes = f"{optim.kind}{averaging}"[:20], Notes()
    phase = {**PHASES[0], "trains": "new-rows"}
    settings = only_new(older, phases=[phase], averaging=averaging)
    found = weights(train(name, optim.model_copy(update={"weight_decay": 0.3}), log=notes, **settings))
    new, theirs = new_rows(prepared.vocab, older), load_tensors(read_pretrained(older))
    assert 10 < new.sum() < 90 and f"of {len(new)} entries {len(new) - new.sum()} are copied" in "".join(notes.lines)
    place = {entry: i for i, entry in enumerate(entries_of(older / "vocab.txt"))}
    entries = entries_of(prepared.vocab.file("vocab.txt"))
    same_rows = torch.tensor([place[entry] for entry in entries if entry in place])
    for key, tensor in theirs.items():
        kept = tensor[same_rows] if key in (TABLE, BIAS) else tensor
        assert torch.equal(found[key][: len(new)][~new] if key in (TABLE, BIAS) else found[key], kept), key
    start = build_model(BertConfig.model_validate(MODEL))
    start_from(start, older, TrainConfig.model_validate({**settings, "averaging": "none"}), prepared.vocab, SILENT)
    moved = (found[TABLE] != start.state_dict()[TABLE]).any(1).numpy()
    assert np.array_equal(moved, np.pad(new, (0, len(moved) - len(new)))), "every new row, and no other"


@each_row("row", [2, 8])
def test_it_resumes_bit_identical_in_either_phase(row: int, train: Train, older: Path, optim: Any) -> None:
    done = train(f"done{optim.kind}", optim, **only_new(older))
    with pytest.raises(Interrupted):
        train(f"stopped{row}{optim.kind}", optim, **only_new(older), log=Notes(kill_at_row=row))
    again = train(f"stopped{row}{optim.kind}", optim, **only_new(older))
    assert same(weights(again), weights(done)) and len(again.counts["sessions"]) == 2
    plain = train(f"plain{optim.kind}", optim, **only_new(older, phases=PHASES))
    assert not same(weights(done), weights(plain))


def test_moments_of_other_weights_are_zero_until_the_next_phase(train: Train, older: Path) -> None:
    done = train("done", **only_new(older, keep_checkpoints=99))
    first, last = (sorted((done.path / "checkpoints").glob("step-*"))[i] for i in (0, -1))
    _, _, early = load(open_artifact(first, "checkpoint"))
    _, _, late = load(open_artifact(last, "checkpoint"))
    still = {key.partition(".")[2] for key, tensor in early.items() if not tensor.any()}
    assert early.keys() == late.keys() and still == {key.partition(".")[2] for key in early} - {TABLE, BIAS, ""}
    assert all(tensor.any() for key, tensor in late.items() if "position" not in key)


@pytest.mark.parametrize("engine", ["ddp", "zero", "fsdp"])
def test_two_ranks_train_the_same_rows(engine: str, prepared: Prepared, older: Path, tmp_path: Path) -> None:
    network = {"kind": "bert", "config": str(tmp_path / "bert.json")}
    (tmp_path / "bert.json").write_text(json.dumps(MODEL | {"hidden_dropout_prob": 0.0}))
    keys = only_new(older, engine=engine, checkpoint_every=4)
    places = prepared.examples.path, prepared.vocab.path
    train_on(1, [Training("alone", {**keys, "engine": "single"}, model=network)], *places, tmp_path / "one")
    stopped = [Training(engine, keys, model=network, stop_after=5), Training(engine, keys, model=network)]
    train_on(2, stopped, *places, tmp_path / "two")
    expected, found = (metric_lines(tmp_path / name) for name in ("one/alone", f"two/{engine}"))
    assert [row["mlm_loss"] for row in found] == pytest.approx([row["mlm_loss"] for row in expected], rel=1e-4)
    one, two = (weights(open_artifact(tmp_path / name)) for name in ("one/alone", f"two/{engine}"))
    assert all(torch.allclose(one[name], two[name], atol=1e-4) for name in one)


def test_rows_from_the_text(train: Train, older: Path, prepared: Prepared) -> None:
    """Only new rows, and the same after a stop."""
    settings, notes = only_new(older, init_embeddings="text"), Notes()
    done = train("done", log=notes, **settings)
    with pytest.raises(Interrupted):
        train("stopped", log=Notes(kill_at_row=2), **settings)
    assert same(weights(train("stopped", **settings)), weights(done))
    said = next(line for line in notes.lines if "new entries from the neighbours of" in line)
    assert 10 < int(said.split()[4]) <= new_rows(prepared.vocab, older).sum()


def test_another_vocabulary_is_refused_with_a_way_out(train: Train, older: Path) -> None:
    with pytest.raises(ArtifactError, match=r"has another vocabulary than .* \(train\.init_embeddings=pieces\)\.$"):
        train("refused", **only_new(older, init_embeddings="random", phases=PHASES))


def test_nothing_new_to_train_is_refused(train: Train, prepared: Prepared, tmp_path: Path) -> None:
    entries = entries_of(prepared.vocab.file("vocab.txt"))
    config = BertConfig.model_validate({**MODEL, "vocab_size": len(entries)})
    folder = write_stock(tmp_path / "same", network(config, 3), entries)
    with pytest.raises(ArtifactError, match=rf"has all {len(entries)} entries of this vocabulary: no row is new"):
        train("refused", **only_new(folder))
    assert train("all", **only_new(folder, phases=PHASES)).counts["steps"] == 18


def test_a_training_starts_from_tiles_of_a_smaller_network(train: Train, older: Path, tmp_path: Path) -> None:
    """With rows for another vocabulary at once; the width is twice as large, the depth three times."""
    large = {**MODEL, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 3}
    train("made", phases=PHASES[:1])  # writes bert.json
    (tmp_path / "bert.json").write_text(json.dumps(large))
    notes = Notes()
    done = train("large", log=notes, **only_new(older, init_tiled=True))
    assert done.counts["steps"] == 18 and any("layers as [1, 1, 1]" in line for line in notes.lines)
    with pytest.raises(ArtifactError, match=r"hidden_size|is another network"):
        train("refused", **only_new(older))


def test_a_checkpoint_keeps_its_vocabulary(train: Train) -> None:
    done = train("done")
    checkpoint = max((done.path / "checkpoints").glob("step-*"))
    with pytest.raises(
        ArtifactError, match=r"init_embeddings pieces makes rows for new entries, but .* is a checkpoint"
    ):
        train("refused", init_from=checkpoint, init_embeddings="pieces")


@each_row(
    ("keys", "said"),
    [
        (
            {"init_embeddings": "random"},
            "set init_from to a network with another vocabulary and init_embeddings to pieces",
        ),
        ({"init_from": None}, "init_embeddings pieces makes rows from those of another network"),
        ({"engine": "deepspeed"}, "cannot train single rows of one"),
        ({"graph": "ortmodule"}, "not possible with graph = ortmodule"),
        ({"last": {"restart_bias_correction": False}}, "all other weights have none; leave it out"),
    ],
)
def test_phases_that_cannot_be_are_refused(keys: dict[str, Any], said: str) -> None:
    first, last = {**PHASES[0], "trains": "new-rows"}, {**PHASES[1], **keys.pop("last", {})}
    values = {"init_from": "other", "init_embeddings": "pieces", "phases": [first, last], **keys}
    with pytest.raises(RecipeError, match=said):
        TrainConfig(**values)
