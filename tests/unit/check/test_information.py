"""Trainings that can learn nothing, or only a part of what they ask: said before any work."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.conftest import MODEL
from tests.unit.examples import made
from tests.unit.formats.references import rows_of, write_nvidia
from tests.unit.formats.samples import MASK, UNK, VOCABULARY, sample
from tests.unit.formats.test_imported_data import Notes

from bertwright import Recipe, run
from bertwright.check.recipe.data import imported_data
from bertwright.check.recipe.information import information
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.stage_context import StageContext
from bertwright.examples import run as stage
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.information import absent_classes, of_plans, one_label, unknown_words
from bertwright.examples.instances import Instances
from bertwright.examples.run_tasks import Inputs
from bertwright.formats.statistics import statistics

pytestmark = pytest.mark.heavy

Load = Callable[..., Recipe]
FROZEN = '{kind = "adamw", groups = [{pattern = "*", learning_rate_scale = 0}]}'


def said(recipe: Recipe, out: Path) -> list[tuple[str, str, str]]:
    return [(each.level, each.about, each.text) for each in information(recipe, out, ["examples", "train"])]


def test_a_learning_rate_of_0_throughout_is_an_error(load: Load, tmp_path: Path) -> None:
    phase = "{length = 16, batch = 8, learning_rate = 1e-3, warmup = 0, "
    last = phase + 'steps = 1, schedule = "poly_nvidia"}'
    text = "the learning rate is 0 throughout the phase (1 step)."
    assert said(load(f"train.phases=[{last}]"), tmp_path) == [("error", "train.phases.0", text)]
    both = load(f"train.phases=[{phase}steps = 5}}, {last}]")
    assert said(both, tmp_path) == [("warning", "train.phases.1", text)]
    assert said(load(f"optim={FROZEN}"), tmp_path)[0][:2] == ("error", "optim.groups.0")
    assert said(load(), tmp_path) == []


def test_a_rate_of_0_is_refused_when_the_examples_tell_the_steps(trained: Path, tmp_path: Path) -> None:
    shutil.rmtree(trained / "train")
    recipe = Recipe.load(trained / "recipe.toml")
    phase = recipe.train.phases[0].model_dump(exclude_none=True, exclude={"steps"}, mode="json")
    phase |= {"epochs": 1e-6, "schedule": {"kind": "poly_nvidia"}, "warmup": 0.0}
    changed = recipe.train.model_copy(update={"phases": (type(recipe.train.phases[0])(**phase),)})
    with pytest.raises(RecipeError, match="the learning rate is 0 in all 1 steps"):
        run(recipe.model_copy(update={"train": changed}), trained, ["train"])


def test_masks_that_hide_nothing_are_an_error(load: Load, tmp_path: Path) -> None:
    shown = load("train.phases.0.masking={mask_share=0, random_share=0}")
    (found,) = said(shown, tmp_path)
    assert found[:2] == ("error", "train.phases.0.masking")
    assert said(load("train.phases.0.masking={mask_share=0, random_share=0.1}"), tmp_path) == []


@each_row(("share", "text"), [(0, "second segment follows"), (1, "every pair has a random")])
def test_pairs_of_one_kind_are_warned_of(load: Load, tmp_path: Path, share: float, text: str) -> None:
    ((level, about, found),) = said(load(f"examples.random_next_prob={share}"), tmp_path)
    assert (level, about) == ("warning", "examples.random_next_prob") and text in found
    assert said(load("examples.plan=full-sentences"), tmp_path) == []


def test_one_label_and_unknown_words() -> None:
    assert one_label(100, 100) == ["all 100 labels of pairs are 1, so there is nothing to learn from them"]
    assert one_label(100, 0)[0].startswith("all 100 labels of pairs are 0")
    assert one_label(100, 1) == one_label(100, 99) == one_label(3, 3) == []
    assert absent_classes([3, 1], ("a", "b")) == []
    (line,) = absent_classes([3, 0], ("a", "b"))
    assert line == "no training text has the label b, so it cannot be learned"
    (line,) = absent_classes([0, 3, 0], ("a", "b", "c"))
    assert line == "no training text has one of the labels a, c, so they cannot be learned"
    (line,) = unknown_words(71, 100)
    assert line.startswith("71.0% of the tokens are [UNK]")
    assert unknown_words(5, 100) == unknown_words(0, 0) == []


def warned_of(tmp_path: Path, documents: made.Text, plan: str = "next-sentence") -> list[str]:
    """The warnings of the stage `examples` for a corpus of these documents."""
    source, notes = made.corpus(tmp_path / "corpus", [documents]), Notes()
    vocab = made.vocabulary(tmp_path / "vocab", source)
    config = ExamplesConfig.model_validate({"passes": 2, "heldout": 0.1, "workers": 1, "plan": plan})
    context = StageContext(tmp_path / "examples", notes)
    counts = stage.run(config, (PlanSet(length=32),), Inputs(source, vocab), context).counts
    said = [" ".join(each) for each in of_plans(counts["train"]["sequences"], counts["train"]["rows"], config)]
    assert [f"examples: warning: {each}" for each in said] == [each for each in notes.said if "warning" in each]
    return said


def test_documents_of_one_sentence_give_only_random_pairs(load: Load, tmp_path: Path) -> None:
    sentences = [[sentence] for document in made.text(20) for sentence in document]
    (line,) = warned_of(tmp_path / "next", sentences)
    assert "labels of pairs are 1, so" in line and "documents of one sentence" in line
    ((level, about, text),) = said(load(), tmp_path / "next")
    assert (level, about) == ("warning", "examples") and line.startswith(text)
    assert warned_of(tmp_path / "full", sentences, "full-sentences") == []
    (line,) = warned_of(tmp_path / "swapped", sentences, "sentence-order")
    assert "no example is a pair with a label" in line
    (found,) = information(load("examples.plan=sentence-order"), tmp_path / "swapped", ["train"])
    assert found.text.endswith("so only masked words are learned from.") and found.remedy.startswith("Give longer doc")


def test_one_document_gives_no_random_pair(tmp_path: Path) -> None:
    """One of two documents is held out."""
    (line,) = warned_of(tmp_path, [[line for each in made.text(20, seed) for line in each] for seed in (1, 2)])
    assert "labels of pairs are 0, so" in line and "other documents" in line


def labelled(folder: Path, labels: list[str]) -> Recipe:
    folder.mkdir()
    lines = [json.dumps({"text": f"the text number {i}", "label": label}) for i, label in enumerate(labels)]
    (folder / "train.jsonl").write_text("\n".join(lines))
    objective = '{kind = "classification", labels = ["bad", "good"]}'
    phase = f"{{length = 16, batch = 8, learning_rate = 1e-3, steps = 2, data = {json.dumps(str(folder))}}}"
    return Recipe.load(
        "smoke",
        [
            f"train.objective={objective}",
            f"train.phases=[{phase}]",
            "examples={heldout=0.3}",
            "train.heldout_sequences=",
        ],
        given=False,
    )


def test_labelled_texts_of_one_class_are_an_error(tmp_path: Path) -> None:
    constant = labelled(tmp_path / "one", ["good"] * 40)
    ((level, about, text),) = said(constant, tmp_path)
    assert (level, about) == ("error", "train.phases.0.data")
    assert text == "all 40 training texts that were read have the label good, so there is nothing to learn."
    with pytest.raises(DataError, match="training texts have the label good, so there is nothing to learn"):
        run(constant, tmp_path / "run", ["corpus", "vocab", "examples"])
    assert said(labelled(tmp_path / "two", ["good"] * 39 + ["bad"]), tmp_path) == []


def data(tmp_path: Path, found: Instances) -> tuple[list[str], list[str]]:
    """What `inspect` calls a fault of these examples, and what `check` warns of."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_nvidia(folder / "x_training_0.hdf5", rows_of(found), 32, 5)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (tmp_path / "bert.json").write_text(json.dumps(MODEL))
    phase = f"{{length = 32, batch = 8, learning_rate = 1e-3, steps = 2, data = {json.dumps(str(folder))}}}"
    settings = [
        "corpus=", "vocab.size=", f"vocab.file={tmp_path / 'vocab.txt'}", f"train.phases=[{phase}]",
    ]  # fmt: skip
    recipe = Recipe.load("smoke", settings, given=False)
    (of_set,) = statistics(folder, VOCABULARY)["sets"]
    warned = [each.text for each in imported_data(recipe, VOCABULARY) if each.level == "warning"]
    return of_set["faults"], warned


def spoiled(how: str) -> Instances:
    good = sample(100)
    tokens = good.token_ids.copy()
    if how == "one label":
        return replace(good, next_sentence_labels=np.ones(100, np.int8))
    if how == "no label":
        return replace(good, next_sentence_labels=np.full(100, -1, np.int8))
    if how == "unknown":
        words = np.flatnonzero(tokens > MASK)
        tokens[words[: int(0.8 * len(words))]] = UNK
    else:
        tokens[good.predicted] = good.labels
    return replace(good, token_ids=tokens)


@each_row(
    ("how", "sentence"),
    [
        ("one label", "all 100 labels of pairs are 1, so there is nothing to learn from them"),
        ("unknown", "of the tokens are [UNK] (at most 5% is sensible), so the vocabulary does not fit the text"),
        ("unmasked", "every predicted token is shown unmasked, so predicting it teaches nothing"),
    ],
)
def test_data_made_elsewhere_is_judged(tmp_path: Path, how: str, sentence: str) -> None:
    faults, warned = data(tmp_path, spoiled(how))
    assert any(fault.endswith(sentence) for fault in faults)
    assert any(sentence in text and "in 100 examples that were read" in text for text in warned)


def test_what_is_as_it_should_be_is_not_judged(tmp_path: Path) -> None:
    assert data(tmp_path, sample(100)) == ([], [])
