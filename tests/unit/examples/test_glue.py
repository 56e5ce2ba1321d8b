"""A task of GLUE by its name: found where GLUE's files or Hugging Face's caches are, and otherwise said."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_classification import NUMBERS, texts
from tests.unit.test_classification import recipe as write_recipe

from bertwright import Recipe, run
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import read_json
from bertwright.examples.labelled.config import Columns, LabelledTexts, glue_folder, missing_glue
from bertwright.examples.labelled.files import TextFiles
from bertwright.examples.labelled.records import records
from bertwright.examples.labelled.sizes import text_sizes
from bertwright.examples.own_files import find_files
from bertwright.train.settings.phase_config import PhaseConfig

SST2 = LabelledTexts(("negative", "positive"), (Columns("label", "sentence"),))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of Hugging Face, and no folder `glue`."""
    monkeypatch.chdir(tmp_path)
    for name in ("GLUE_DIR", "HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf"


def made(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    (folder / name).write_text("sentence\tlabel\nfine\t1\n")
    return folder


@pytest.mark.parametrize(
    "place",
    [
        "hub/datasets--nyu-mll--glue/snapshots/bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c/sst2",
        "datasets/nyu-mll___glue/sst2/0.0.0/bcdcba79d07bc864",
        "datasets/glue/sst2/1.0.0/dacbe3125aa31d7f",
    ],
)
def test_a_task_is_found_in_the_caches(place: str, home: Path) -> None:
    (home / place).parent.joinpath("interrupted").mkdir(parents=True)
    folder = made(home / place, "glue-train.tsv")
    for name in ("glue/sst2", "GLUE/SST-2"):
        assert glue_folder(Path(name)) == folder
    phase = PhaseConfig(length=16, batch=8, learning_rate=1e-3, steps=1, data=Path("glue/sst2"))
    assert phase.data == folder


def test_a_folder_of_that_name_comes_before_glue_dir_and_caches(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(home / "datasets/glue/rte/1.0.0/x", "glue-train.tsv")
    archive = made(tmp_path / "archive" / "RTE", "train.tsv")
    monkeypatch.setenv("GLUE_DIR", str(archive.parent))
    assert glue_folder(Path("glue/rte")) == archive
    made(tmp_path / "glue" / "rte", "train.tsv")
    assert glue_folder(Path("glue/rte")) == Path("glue/rte")


def test_missing_glue_is_reported_with_a_remedy() -> None:
    said = r"glue/sst2 names a task of GLUE, which is neither .* nothing is downloaded; .* --include 'sst2/\*'"
    with pytest.raises(RecipeError, match=rf"^key: {said}$"):
        find_files(glue_folder(Path("glue/sst2")), TextFiles(SST2), "key")
    for other in ("glue/none", "sst2", "my/glue/sst2"):
        assert glue_folder(Path(other)) == Path(other) and not missing_glue(Path(other))


def test_the_tables_of_the_cache_are_read(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")
    from pyarrow import ipc

    table = pa.table({"sentence": ["good", "bad"] * 6000, "label": [1, 0] * 6000})
    with ipc.new_stream(str(tmp_path / "glue-train.arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=1000)
    files = find_files(tmp_path, TextFiles(SST2), "key")
    rows = [row for _, row in records(files.train[0])]
    assert len(rows) == 12_000 and rows[:2] == [{"sentence": "good", "label": 1}, {"sentence": "bad", "label": 0}]
    assert text_sizes(files.train[0], SST2).number == 12_000
    (tmp_path / "glue-train.arrow").write_bytes(b"no table")
    with pytest.raises(DataError, match="is damaged or is not an Arrow stream"):
        list(records(files.train[0]))


def cached(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Tables as `datasets` caches them: labels are numbers, and -1 in the test set."""
    pa = pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")
    from pyarrow import ipc

    cache = folder / "hf" / "datasets" / "nyu-mll___glue" / "sst2" / "0.0.0" / "bcdcba79d07bc864"
    cache.mkdir(parents=True)
    unlabelled = [row | {"label": -1} for row in rows]
    for split, some in (("train", rows * 3), ("validation", rows), ("test", unlabelled)):
        columns = {"sentence": [row["text"] for row in some], "label": [row["label"] for row in some]}
        table = pa.table(columns | {"idx": list(range(len(some)))})
        with ipc.new_stream(str(cache / f"glue-{split}.arrow"), table.schema) as stream:
            stream.write_table(table)
    (cache / "dataset_info.json").write_text(json.dumps({"config_name": "sst2"}))


def archived(folder: Path, rows: list[dict[str, Any]]) -> None:
    """The files of GLUE's archive, whose test set has no labels."""
    archive = folder / "glue_data" / "SST-2"
    archive.mkdir(parents=True)
    for split, some in (("train", rows * 3), ("dev", rows)):
        lines = "".join(f"{row['text']}\t{row['label']}\n" for row in some)
        (archive / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}")
    (archive / "test.tsv").write_text("index\tsentence\n" + "".join(f"{i}\t{r['text']}\n" for i, r in enumerate(rows)))


@pytest.mark.parametrize("written", [cached, archived])
def test_a_task_is_trained_from_its_name_to_its_scores(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, texts())
    monkeypatch.setenv("GLUE_DIR", str(tmp_path / "glue_data"))
    write_recipe(tmp_path, 'task = "sst2"', [])
    folder = run(Recipe.load(tmp_path / "recipe.toml", ["train.phases.0.data=glue/sst2"]), tmp_path / "run")
    summary = read_json(folder.path / "summary.json")
    assert summary["labels"] == ["negative", "positive"] and summary["accuracy"] == 1.0
    (file,) = (folder.path / "examples").rglob("facts.json")
    facts = read_json(file)
    assert [each["examples"] for each in facts["files"]] == [36, 12]
    config = read_json(folder.path / "export" / "hf" / "config.json")
    assert config["id2label"] == {"0": "negative", "1": "positive"}
    assert config["hidden_size"] == NUMBERS["hidden_size"]
