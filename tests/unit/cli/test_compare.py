from pathlib import Path

import pytest
from tests.unit.examples import made

from bertwright.cli.compare import compare
from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.vocab import run as stage
from bertwright.vocab.config import VocabConfig

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a vocabulary beside it, and one of other settings elsewhere."""
    path = tmp_path_factory.mktemp("compared")
    corpus = made.corpus(path / "corpus", [made.text(60, seed=1)])
    stage.run(VocabConfig(size=300), corpus, path / "vocab")
    stage.run(VocabConfig(size=200, lower_case=True), corpus, path / "other" / "vocab")
    return path


def entries(vocab: Path) -> list[str]:
    return (vocab / "vocab.txt").read_text("utf-8").splitlines()


def test_two_vocabularies(folder: Path) -> None:
    facts = compare(folder / "vocab", folder / "other" / "vocab")
    first, second = (set(entries(folder / name)) for name in ("vocab", "other/vocab"))
    assert facts["shared entries"] == len(first & second)
    assert (facts["only in A"], facts["only in B"]) == (len(first - second), len(second - first))
    assert "vocab.size: 300 -> 200" in facts["settings"] and "vocab.lower_case: False -> True" in facts["settings"]
    assert facts["inputs"] == facts["version"] == "the same"
    a, b = facts["on the corpus of A"].values()
    assert a["sample_words"] == b["sample_words"] and a["fertility"] < b["fertility"]
    assert {entry.split(" ")[0] for entry in a["most frequent unshared entries"]} <= first - second
    assert (a["lower_case"], b["lower_case"]) == (False, True)


def test_a_vocabulary_and_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    lower = list("abcdefghijklmnopqrstuvwxyz.")
    file.write_text("".join(f"{entry}\n" for entry in [*SPECIALS, *lower, *(f"##{c}" for c in lower)]), "utf-8")
    facts = compare(folder / "vocab", file)
    b = facts["on the corpus of A"]["B"]
    assert b["lower_case"] and b["strip_accents"], "the strongest settings that its entries allow"
    assert b["unknown_rate"] == 0 and b["single_character_rate"] == 1
    assert "settings" not in facts
    assert "vocab folder of a run first" in compare(file, folder / "vocab")["not measured"]
    assert "there is no finished corpus next to" in compare(folder / "other" / "vocab", file)["not measured"]


def test_a_vocabulary_that_fits_no_settings_has_none(tmp_path: Path) -> None:
    decomposed = [f"e\u0301{number}" for number in range(50)]
    for name, own in (("a.txt", decomposed), ("b.txt", ["x"])):
        (tmp_path / name).write_text("".join(f"{entry}\n" for entry in [*SPECIALS, *own]), "utf-8")
    facts = compare(tmp_path / "a.txt", tmp_path / "b.txt")
    assert (facts["shared entries"], facts["only in A"], facts["only in B"]) == (5, 50, 1)


def test_other_artifacts_and_recipes(folder: Path, small_recipe: Path, tmp_path: Path) -> None:
    corpus = made.corpus(tmp_path / "corpus", [made.text(50, seed=2)])
    facts = compare(folder / "corpus", corpus.path)
    assert facts["what"] == "two artifacts of stage corpus" and "documents: 60 -> 50" in facts["counts"]
    assert compare(small_recipe, small_recipe)["settings"] == "the same"
    changed = tmp_path / "changed.toml"
    changed.write_text(small_recipe.read_text().replace("alphabet_coverage = 1.0", "alphabet_coverage = 0.9"))
    assert compare(small_recipe, changed)["settings"] == "vocab.alphabet_coverage: 1.0 -> 0.9"


def test_addresses_are_compared_without_secrets(small_recipe: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    lines = small_recipe.read_text().splitlines()
    lines[2] = 'source = "https://host/a.txt?sig=secret"'
    other.write_text("\n".join(lines))
    settings = compare(small_recipe, other)["settings"]
    assert "https://host/a.txt" in settings and "secret" not in settings


def test_things_of_two_kinds_do_not_compare(folder: Path) -> None:
    with pytest.raises(RecipeError, match="belongs to the stage corpus, .* to vocab"):
        compare(folder / "corpus", folder / "vocab")
    with pytest.raises(RecipeError, match="does not exist"):
        compare(folder / "vocab", folder / "nowhere")
    with pytest.raises(RecipeError, match="cannot be compared"):
        compare(folder / "vocab", folder)


def test_another_corpus_beside_a_vocabulary_is_not_used(folder: Path, tmp_path: Path) -> None:
    other: Artifact = made.corpus(tmp_path / "elsewhere", [made.text(40, seed=5)])
    stage.run(VocabConfig(size=200), other, tmp_path / "vocab")
    made.corpus(tmp_path / "corpus", [made.text(40, seed=6)])
    assert "a different corpus" in compare(tmp_path / "vocab", folder / "vocab")["not measured"]
