"""GLUE's own files, where they lie beside the checkout: every text is read, with the label that its line has."""

import os
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.examples.labelled.config import GlueTask, glue
from bertwright.examples.labelled.files import TextFiles
from bertwright.examples.labelled.read import read_texts
from bertwright.examples.problems import Problems

SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
GLUE = SHARED / "data" / "eval"
COUNTS: dict[tuple[GlueTask, str], tuple[int, int | None]] = {
    ("cola", "train"): (8551, None),
    ("cola", "dev"): (1043, 721),
    ("cola", "in_domain_dev"): (527, None),
    ("cola", "out_of_domain_dev"): (516, None),
    ("sst2", "train"): (67349, None),
    ("sst2", "dev"): (872, 444),
    ("rte", "train"): (2490, None),
    ("rte", "dev"): (277, 131),  # 146 of class 0, entailment
    ("stsb", "train"): (5749, None),
    ("stsb", "dev"): (1500, None),
    ("qnli", "dev"): (5463, 2761),  # 2,702 of class 0
    ("wnli", "train"): (635, None),
    ("wnli", "dev"): (71, 31),  # the commoner class has 56.3 %
}
"""Texts of each file and, where its description says it, how many are of class 1."""
FOUND = {"entailment": 0.0, "not_entailment": 1.0}


@pytest.mark.skipif(not GLUE.is_dir(), reason=f"no files of GLUE at {GLUE}; set BERTWRIGHT_SHARED")
@each_row(("task", "name"), COUNTS)
def test_every_line_is_a_text_with_its_label(task: GlueTask, name: str) -> None:
    file, problems = GLUE / task / f"{name}.tsv", Problems()
    texts = list(read_texts(file, glue(task), problems))
    count, of_class_1 = COUNTS[task, name]
    assert len(texts) == count and not problems.counts
    assert of_class_1 is None or sum(text.label == 1 for text in texts) == of_class_1
    # The label is a column of its own, by another way than the reader's: CoLA's second, else the last one.
    lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")[task != "cola" :]
    labels = [line.rstrip("\r").split("\t")[1 if task == "cola" else -1] for line in lines]
    assert [text.label for text in texts] == pytest.approx(
        [FOUND.get(label) or float(FOUND.get(label, label)) for label in labels]
    )
    assert all(text.first and bool(text.second) == glue(task).pairs for text in texts)


@pytest.mark.skipif(not GLUE.is_dir(), reason=f"no files of GLUE at {GLUE}; set BERTWRIGHT_SHARED")
@each_row("task", ["cola", "sst2", "rte", "stsb", "wnli"])
def test_training_and_held_out_files_are_found(task: GlueTask) -> None:
    from bertwright.examples.own_files import find_files

    files = find_files(GLUE / task, TextFiles(glue(task)), "train.phases.0.data")
    assert [file.name for file in files.train] == ["train.tsv"] and [file.name for file in files.heldout] == ["dev.tsv"]
    assert "test.tsv" in [file.name for file in files.unread]
