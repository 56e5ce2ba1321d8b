"""Networks of other programs are imported by the real program, and a training goes on from them, on both ends of the
road: a Hungarian one that keeps the rows of its text, and an English one that becomes a tagger's start."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.pipeline.command import bertwright, fresh
from tests.pipeline.conftest import Call
from tests.pipeline.test_continued import CHEAP

transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")


@pytest.fixture
def stranger(finished: Path, tmp_path: Path) -> Path:
    """The exported network of a run, as its owner saved it with transformers: sharded, with a card."""
    folder, exported = tmp_path / "stranger", str(finished / "export" / "hf")
    network = transformers.BertForPreTraining.from_pretrained(exported, local_files_only=True)
    network.save_pretrained(str(folder), max_shard_size="20KB")
    shutil.copy(Path(exported, "tokenizer.json"), folder)
    (folder / "README.md").write_text("---\nlanguage: hu\nlicense: cc-by-nc-nd-4.0\n---\n# Idegen\n", encoding="utf-8")
    return folder


def test_the_whole_road(stranger: Path, finished: Path, small_recipe: Path, tmp_path: Path, call: Call) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("A régi ház a hegy alatt áll.\n" * 100, encoding="utf-8")
    done = bertwright("import", stranger, "--texts", finished, "--texts", texts, "--out", tmp_path / "ours")
    assert done.code == 0, done.err
    assert "loaded, 2 of 2 tensors" in done.out and "cc-by-nc-nd-4.0" in done.out
    facts = json.loads((tmp_path / "ours" / "import.json").read_text(encoding="utf-8"))
    assert facts["removed"]["changed_tokens"] == 0 and facts["removed"]["entries_after"] <= 400
    verified = call("inspect", tmp_path / "ours", "--verify", "--json")
    assert verified.code == 0 and facts["source"]["sha256"] in json.loads(verified.out)["chain"].values()

    ours = tmp_path / "ours"
    given = [word.format(folder=ours) for word in CHEAP]
    checked = call("check", small_recipe, *given, "--out", tmp_path / "run")
    assert checked.code == 0 and "allows no derivatives" in checked.out
    done = call("run", small_recipe, *given, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    run = tmp_path / "run"
    init = json.loads((run / "train" / "manifest.json").read_text())["counts"]["init"]
    assert (init["source"], init["licence"]) == ("stranger", "cc-by-nc-nd-4.0")
    assert init["sha256"] == facts["source"]["sha256"]
    assert "stranger, licence cc-by-nc-nd-4.0" in (run / "report.html").read_text(encoding="utf-8")
    hf = run / "export" / "hf"
    card = (hf / "README.md").read_text(encoding="utf-8")
    assert 'base_model_license: "cc-by-nc-nd-4.0"' in card and "Its licence is cc-by-nc-nd-4.0" in card
    (weights,) = json.loads((hf / "provenance.json").read_text())["weights"]
    assert weights == {"name": "stranger", "sha256": facts["source"]["sha256"], "licence": "cc-by-nc-nd-4.0"}
    # The hash of the stranger's files is in the chain of what was made from them, wherever it is copied.
    copy = shutil.copytree(hf, tmp_path / "copy")
    verified = call("inspect", copy, "--verify", "--json")
    assert verified.code == 0 and json.loads(verified.out)["chain"]["weights stranger"] == facts["source"]["sha256"]
    # And a training that starts from that run knows it, too.
    again = [word.replace(str(ours), str(run / "train")) for word in given if "tokenizer.json" not in word]
    vocabulary, config = f"vocab.file={run}/vocab/vocab.txt", f"model.config={ours}/config.json"
    words = [word for word in again if not word.startswith("model.config")]
    checked = call("check", small_recipe, *words, vocabulary, config, "train.seed=77", "--out", tmp_path / "second")
    assert "allows no derivatives" in checked.out, checked


def test_a_certificate_is_green(stranger: Path, tmp_path: Path, call: Call) -> None:
    done = fresh("import", stranger, "--licence", "mit", "--out", tmp_path / "ours", "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["source"]["licence"] == "mit" and facts["parts"]["next-sentence head"]["state"] == "loaded"
    certified = call("certify", tmp_path / "ours", "--runtimes", "transformers", "--json")
    assert certified.code == 0, certified.err
    assert {row["status"] for row in json.loads(certified.out)["rows"]} <= {"reference", "agrees"}
    sent = call("publish", tmp_path / "ours", "hf://me/ours", "--dry-run")
    assert sent.code == 0 and "import.json" in sent.out, sent


def test_a_checkpoint_with_nothing_beside_it(stranger: Path, tmp_path: Path, call: Call) -> None:
    place = tmp_path / "place"
    place.mkdir()
    tensors = {}
    for shard in sorted(stranger.glob("*.safetensors")):
        tensors |= load_file(shard)
    moments = {number: {"exp_avg": tensor.clone()} for number, tensor in enumerate(tensors.values())}
    torch.save({"model": tensors, "optimizer": {"state": moments, "param_groups": []}}, place / "ckpt.pt")
    done = call("import", place / "ckpt.pt", "--out", tmp_path / "ours")
    assert done.code == 2 and "--config FILE" in done.err
    config = ("--config", stranger / "config.json")
    done = call("import", place / "ckpt.pt", *config, "--out", tmp_path / "ours")
    assert done.code == 2 and "--vocab FILE" in done.err
    done = call(
        "import", place / "ckpt.pt", *config, "--vocab", stranger / "tokenizer.json", "--out", tmp_path / "ours"
    )
    assert done.code == 0, done.err
    assert "left out" in done.out and "optimizer" in done.out
    again = load_file(tmp_path / "ours" / "model.safetensors")
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in again.items())


def test_nothing_is_left_of_what_fails(stranger: Path, tmp_path: Path, call: Call) -> None:
    tensors = {}
    for shard in sorted(stranger.glob("*.safetensors")):
        tensors |= load_file(shard)
        shard.unlink()
    (stranger / "model.safetensors.index.json").unlink()
    decoder = tensors["bert.embeddings.word_embeddings.weight"] + 1
    save_file(tensors | {"cls.predictions.decoder.weight": decoder, "x.y": decoder + 1}, stranger / "model.safetensors")
    before = sorted(tmp_path.iterdir())
    out = ("--out", tmp_path / "ours")
    for arguments, code, message in (
        ((stranger, *out), 4, "x.y"),  # unknown: before the folder is begun
        ((stranger, "--allow-unmatched", *out), 4, "tied decoder"),  # found while it is written
        ((stranger, "--entries", "30", *out), 2, "without --texts"),
        ((stranger, "--texts", tmp_path / "none.txt", *out), 3, "none.txt"),
        ((stranger, "--cased", *out), 2, "--cased has no effect"),
        ((tmp_path / "none", *out), 4, "does not exist"),
        ((tmp_path, *out), 4, "has no weights"),
        ((stranger, "--out", stranger), 2, "already exists"),
    ):
        done = call("import", *arguments)
        assert done.code == code and message in done.err, (arguments, done)
        assert sorted(tmp_path.iterdir()) == before, arguments
