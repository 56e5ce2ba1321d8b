"""`inspect`: a batch is the same whole however training cuts it, and shows what it predicts."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import each_row

from bertwright import Recipe, run
from bertwright.cli.batch_text import describe_batch
from bertwright.cli.conversion import convert
from bertwright.cli.describe import describe
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import make_folder
from bertwright.examples.config import MaskingConfig
from bertwright.formats.target import Target


def rewrite(folder: Path, **settings: int) -> None:
    """Change settings of the run's first phase in its recipe.toml."""
    recipe = Recipe.load(folder / "recipe.toml")
    phase = recipe.train.phases[0].model_copy(update=settings)
    train = recipe.train.model_copy(update={"phases": (phase,)})
    recipe.model_copy(update={"train": train}).write(folder / "recipe.toml")


def test_the_hash_of_a_batch_does_not_depend_on_micro_batches(trained: Path) -> None:
    first = describe_batch(trained, 0, 1)
    assert first["sequences"] == 8 and first["hash"] != describe_batch(trained, 0, 2)["hash"]
    for micro_batch in (1, 8, 0):
        rewrite(trained, micro_batch=micro_batch)
        assert describe_batch(trained, 0, 1) == first
    rewrite(trained, masking=MaskingConfig(max_predictions=1))
    differing = describe_batch(trained, 0, 1)
    assert differing.pop("recipe.toml differs") == "train.phases.0.masking.max_predictions: 0 -> 1"
    assert differing == first, "what training was sealed with counts"


@pytest.mark.parametrize("cut", ["micro_batch=3", "packing=true", "micro_tokens=40"])
@pytest.mark.parametrize("imported", [False, True])
def test_the_log_of_training_carries_the_hash_of_each_batch(
    trained: Path, load: Callable[..., Recipe], cut: str, imported: bool
) -> None:
    phase = "train.phases.0"
    changes = [f"{phase}.{cut}", *([] if cut == "micro_batch=3" else [f"{phase}.micro_batch=0"])]
    if imported:
        convert(trained, trained.parent / "converted", Target("datasets"))
        (data,) = filter(Path.is_dir, (trained.parent / "converted").iterdir())
        changes.append(f"{phase}.data={data}")
        shutil.rmtree(trained / "examples")
    shutil.rmtree(trained / "train")
    run(load(*changes), trained, ["examples", "train"])
    rows = [json.loads(line) for line in (trained / "train" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3]
    hashes = [describe_batch(trained, 0, step)["hash"] for step in (1, 2, 3)]
    assert [row["batch"] for row in rows] == hashes
    assert len(set(hashes)) == 3 and all(re.fullmatch("[0-9a-f]{16}", each) for each in hashes)


def test_sequences_are_shown_as_words_with_their_masks(trained: Path) -> None:
    facts = describe_batch(trained, 0, 1)
    shown = {name: text for name, text in facts.items() if name.startswith("sequence ")}
    assert len(shown) == 4
    assert all(re.fullmatch(r"sequence \d \((random )?next\)", name) for name in shown)
    assert all(text.startswith("[CLS] ") and text.endswith("[SEP]") for text in shown.values())
    assert any(re.search(r"\[MASK=\w+\]", text) for text in shown.values())


def test_a_step_beyond_the_phase_is_an_error_with_the_range(trained: Path) -> None:
    for phase, step in ((0, 4), (1, 1), (0, 0)):
        with pytest.raises(RecipeError, match=r"the steps are phase 0: 1 to 3\."):
            describe_batch(trained, phase, step)


def test_describe_recognizes_what_is_at_a_path(trained: Path, small_recipe: Path, tmp_path: Path) -> None:
    assert describe(trained)["what"] == "a run folder"
    assert describe(trained)["evaluate"] == "not finished"
    assert describe(trained / "vocab", verify=True)["verified_files"] == 3
    assert describe(next((trained / "train" / "checkpoints").glob("step-*")))["what"] == "a checkpoint"
    assert describe(trained / "train" / "model")["what"] == "a model folder"
    assert describe(small_recipe.parent / "text.txt")["what"] == "a text"
    checkpoints = trained / "train" / "checkpoints"
    names = sorted(path.name for path in checkpoints.iterdir())
    assert describe(checkpoints) == {"what": "a folder of runs, artifacts or checkpoints", "give one of": names}
    assert trained.name in describe(trained.parent)["give one of"]
    with pytest.raises(DataError, match="not made by bertwright"):
        describe(make_folder(tmp_path / "nothing"))
    with pytest.raises(RecipeError, match="does not exist"):
        describe(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match="nothing to verify against"):
        describe(small_recipe.parent, verify=True)


@each_row("kind", ["parquet", "datasets"])
def test_a_table_of_texts_shows_its_columns(tmp_path: Path, kind: str) -> None:
    table, path = pa.table({"text": ["Egy híd.", "Két híd."], "url": ["a", "b"]}), tmp_path / f"texts.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    facts = describe(path)
    assert (facts["what"], facts["columns"]) == (f"a {kind}", "text, url")


def test_a_table_of_labelled_texts_shows_its_columns_and_labels(tmp_path: Path) -> None:
    file = tmp_path / "vélemények.csv"
    rows = [f'{n};"Jó; ""{n}."";\nszép";{label}' for n, label in enumerate(["jó", "rossz", "jó", "jó"] * 10)]
    file.write_text("\n".join(["sorszám;vélemény;értékelés", *rows]), encoding="utf-8-sig")
    facts = describe(file)
    assert facts["columns, by its first line"] == "sorszám, vélemény, értékelés" and facts["rows"] == 40
    assert facts["values"] == {"értékelés": ["jó (30)", "rossz (10)"]}
    (tmp_path / "a.tsv").write_text("text\tlabel\nEgy.\t1\n", encoding="utf-8")
    assert "values" not in describe(tmp_path / "a.tsv")


def test_a_folder_of_texts_shows_the_first_of_them(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"This is {name}.\nIt has two lines.\n")
    facts = describe(tmp_path)
    assert (facts["what"], facts["files"], facts["bytes"]) == ("a folder of texts", 2, 66)
    assert facts["a.txt"]["first lines"].startswith("This is a.txt.")


def test_weights_in_several_files_are_those_of_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert describe(tmp_path) == {"what": "a model folder", "model_type": "bert"}


def test_a_damaged_table_of_examples_is_no_source(tmp_path: Path) -> None:
    pq.write_table(pa.table({"A": ["egy"], "B": ["két"]}), tmp_path / "part.parquet")
    with pytest.raises(DataError, match=r"part\.parquet"):
        describe(tmp_path / "part.parquet")
