"""The exported folder in stock transformers gives the answers of the model to a hundred lines, for each task and
family."""

from itertools import product
from pathlib import Path

import pytest
from tests.unit import test_classification, test_tagging

from bertwright import Encoder, Recipe, run

pytestmark = [pytest.mark.heavy, pytest.mark.slow]
transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")

STAGES = ("vocab", "examples", "train", "evaluate", "export")
FAMILIES = ("bert", "distilbert", "modern")
families = pytest.mark.parametrize("family", FAMILIES)


@families
def test_classes_of_a_hundred_texts(family: str, tmp_path: Path) -> None:
    test_classification.recipe(tmp_path, 'labels = ["poor", "fair", "fine"]', test_classification.texts())
    settings = ["model.config=", f"model.kind={family}", "model.size=tiny", "train.phases.0.epochs=1"]
    out = run(Recipe.load(tmp_path / "recipe.toml", settings), tmp_path / "run", STAGES).path
    words = test_classification.WORDS
    texts = [f"the {a} {b} sings {c} unknownword ." for a, b, c in product(words[:5], words[2:7], words[7:11])]
    classify = transformers.pipeline("text-classification", model=str(out / "export" / "hf"), device="cpu", top_k=None)
    assert len(texts) == 100
    for ours, theirs in zip(Encoder(out).classify(texts), classify(texts, batch_size=16), strict=True):
        assert ours == {each["label"]: pytest.approx(each["score"], abs=1e-5) for each in theirs}


@families
def test_tags_of_a_hundred_sentences(family: str, tmp_path: Path) -> None:
    test_tagging.recipe(tmp_path, 'entities = ["PER", "LOC"]', f'kind = "{family}", size = "tiny"')
    out = run(Recipe.load(tmp_path / "recipe.toml", ["train.phases.0.epochs=2"]), tmp_path / "run", STAGES).path
    parts = (("ada", "peter", "old", "strange"), ("met", "lives", "in", "."), ("london", "budapest", "ada", "old"))
    sentences = [list(words) for words in product(*parts, ("met", "in"))][:100]
    tag = transformers.pipeline("token-classification", model=str(out / "export" / "hf"), device="cpu")
    assert len(sentences) == 100
    for words, ours in zip(sentences, Encoder(out).tag(sentences), strict=True):
        found = {each["start"]: each for each in tag(" ".join(words), ignore_labels=[])}
        starts = [len(" ".join(words[:i])) + (i > 0) for i in range(len(words))]
        assert [label for label, _ in ours] == [found[start]["entity"] for start in starts]
        assert [p for _, p in ours] == pytest.approx([float(found[start]["score"]) for start in starts], abs=1e-5)
