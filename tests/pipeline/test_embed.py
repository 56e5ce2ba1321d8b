"""`embed`: from a run to vectors, without labels; and from pairs of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.pipeline.conftest import Call

from bertwright.core.files import read_json
from bertwright.embed.scores import static_encoder
from bertwright.export.runtimes.static import table_of
from bertwright.model.text_encoder import Encoder

pytestmark = pytest.mark.heavy
CHEAP = ("train.phases.0.batch=32", "train.phases.0.micro_batch=16", "train.phases.0.epochs=2")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embed") / "out"


def test_a_run_becomes_vectors(finished: Path, out: Path, call: Call, tmp_path: Path) -> None:
    sts = tmp_path / "dev.tsv"
    sts.write_text("sentence1\tsentence2\tscore\nEz az út.\tEz egy út.\t4\nEz út.\tEgy ház.\t1\nA.\tEgy régi.\t0\n")
    command = ("embed", finished, "--out", out, "--dimensions", "8", "--sts", sts, "--json", *CHEAP)
    done = call(*command)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    names = ["before", "before, mean subtracted", "trained", "trained, first 8", "static table"]
    assert [row["name"] for row in found["rows"]][-5:] == names
    for row in found["rows"][-5:]:
        assert set(row["scores"]) >= {"recall@1", "recall@10", "MRR", "Spearman", "mean cosine"}
    held = [json.loads(line) for line in (out / "pairs/data/dev.jsonl").read_text(encoding="utf-8").splitlines()]
    assert found["heldout_pairs"] == len(held)
    assert found["passages"] == len({text for line in held for text in (line["positive"], *line.get("negatives", ()))})
    # Nothing is made again.
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = call(*command)
    assert json.loads(again.out) == found
    assert "scoring" not in again.err
    made = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert made[out / "static/model.safetensors"] == before[out / "static/model.safetensors"]
    assert made[out / "run/train/manifest.json"] == before[out / "run/train/manifest.json"]


def test_the_static_table_is_of_the_trained_network(finished: Path, out: Path, call: Call) -> None:
    if not out.is_dir():
        pytest.skip("the test above failed")
    encoder = Encoder(out / "run/export/hf")
    table, texts = table_of(encoder), ["Ez az út a régi házhoz vezet.", "Egy híd."]
    for text, vector in zip(texts, static_encoder(out / "static", encoder.tokenizer)(texts), strict=True):
        ids, _ = encoder.tokenizer.encode_texts([text])
        mean = table[ids].astype(np.float64).mean(0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)


def test_people_read_a_table_of_80_columns(finished: Path, out: Path, call: Call) -> None:
    done = call("embed", finished, "--out", out, "--dimensions", "8", *CHEAP)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["vectors", "recall@1", "recall@10", "MRR", "mean", "cosine"]
    assert lines[-4].startswith("static table")
    assert all(len(line) <= 80 for line in lines[:-3])
    assert lines[-1].endswith(str(out / "static"))


def test_pairs_of_ones_own(finished: Path, call: Call, tmp_path: Path) -> None:
    rows = [{"query": f"út {i}", "passage": f"a régi ház {i} a hídnál", "group": f"{i // 2}"} for i in range(300)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call("embed", finished, "--pairs", tmp_path / "mine.jsonl", "--out", tmp_path / "out", "--print")
    assert done.code == 0, done.err
    assert 'kind = "embedding"' in done.out
    assert "epochs = 10" in done.out and "pairs are few: 400 steps, or 10 passes over them" in done.out
    parts = {
        name: [json.loads(line) for line in (tmp_path / f"out/pairs/data/{name}.jsonl").read_text().splitlines()]
        for name in ("train", "dev")
    }
    assert sum(map(len, parts.values())) == 300
    groups = [{row["group"] for row in part} for part in parts.values()]
    assert groups[0] and groups[1] and not groups[0] & groups[1]
    assert read_json(tmp_path / "out/pairs/manifest.json")["counts"]["heldout_pairs"] == len(parts["dev"])


def test_few_pairs_are_read_fewer_times_by_a_model_that_gives_vectors_already(
    finished: Path, out: Path, call: Call, tmp_path: Path
) -> None:
    if not out.is_dir():
        pytest.skip("the test above failed")
    rows = [{"query": f"út {i}", "passage": f"a régi ház {i} a hídnál"} for i in range(300)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for model, epochs in ((out / "run", 3), (out / "run/export/hf", 3), (finished / "export/hf", 10)):
        assert (model / "modules.json").is_file() == (model.name == "hf"), "one with a head has it, too"
        done = call("embed", model, "--pairs", tmp_path / "mine.jsonl", "--out", tmp_path / "out", "--print")
        assert done.code == 0, done.err
        assert f"epochs = {epochs} " in done.out, done.out
        assert ("because the model already gives vectors" in done.out) == (epochs == 3)


def test_what_cannot_be_made_is_refused(finished: Path, call: Call, tmp_path: Path) -> None:
    hf = finished / "export" / "hf"
    for arguments, said in (
        ((hf,), "is no run, so there is no corpus to make pairs from"),
        ((finished, "--pairs", tmp_path / "x.jsonl"), "does not exist"),
        ((finished, "--pairs", tmp_path / "x.jsonl", "--source", "a"), "--source with --pairs has no effect"),
        ((finished, "--language", "hu"), "--language without --source has no effect"),
        ((finished, "--dimensions", "64,big"), "--dimensions 64,big: give sizes of vectors"),
        ((finished, "--dimensions", "100000"), "--dimensions 100000: the vectors of"),
    ):
        done = call("embed", *arguments, "--out", tmp_path / "out")
        assert done.code != 0
        assert said in done.err, done.err
    assert not (tmp_path / "out" / "run").exists()
