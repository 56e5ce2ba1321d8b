"""What is known of texts and examples before and after each stage: by hand from sizes and counts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.artifact import Artifact
from bertwright.estimate.known_data import estimate_examples, read_data
from bertwright.examples.config import ExamplesConfig, PlanSet

Load = Callable[..., Recipe]
WHOLE = PlanSet(length=128)


def made(counts: Mapping[str, Any], size: int = 0) -> Artifact:
    return Artifact(Path("made"), {"counts": counts, "disk": {"bytes": size}})


@each_row(
    ("plan", "fill", "special"),
    [
        ("next-sentence", 0.8584, 3),  # [CLS] and [SEP] after each segment
        ("sentence-order", 0.8584, 3),
        ("full-sentences", 0.98, 2),
        ("doc-sentences", 0.7792, 2),
    ],
)
def test_examples_are_as_many_as_their_text_fills(plan: str, fill: float, special: int) -> None:
    found = estimate_examples(WHOLE, ExamplesConfig(plan=plan, passes=3), 1e6)  # type: ignore[arg-type]
    assert found.mean_length == pytest.approx(fill * 128, rel=1e-4)
    assert found.per_pass == (round(1e6 / (found.mean_length - special)),) * 3


@each_row("plan", ["next-sentence", "doc-sentences", "full-sentences"])
def test_documents_fill_less_of_longer_examples(plan: str) -> None:
    config = ExamplesConfig(plan=plan)  # type: ignore[arg-type]
    sets = [PlanSet(length=length, document_range=(0.0, 1.0)) for length in (64, 128, 512, 1024, 8192)]
    shares = [estimate_examples(each, config, None).mean_length / each.length for each in sets]
    assert shares == sorted(shares, reverse=True) and (shares[0] == shares[-1]) == (plan == "full-sentences")
    # Example lengths grow all the same.
    means = [estimate_examples(each, config, None).mean_length for each in sets[:4]]
    assert means == sorted(means)


def test_a_share_of_documents_is_a_share_of_examples() -> None:
    share = PlanSet(length=128, document_range=(0.5, 0.9))
    whole, part = (estimate_examples(plan, ExamplesConfig(passes=1), 1e6).per_pass[0] for plan in (WHOLE, share))
    assert part == pytest.approx(0.4 * whole, abs=1)


def test_little_text_is_one_example_and_unknown_text_none() -> None:
    assert estimate_examples(WHOLE, ExamplesConfig(passes=2), 10.0).per_pass == (1, 1)
    unknown = estimate_examples(WHOLE, ExamplesConfig(), None)
    assert unknown.per_pass == () and unknown.mean_length == pytest.approx(0.8584 * 128, rel=1e-4)


def test_a_source_loses_a_seventh_and_a_token_is_five_bytes(load: Load) -> None:
    """The built-in sample is 2 MB, of which 85 % become corpus; a tenth of it is held out."""
    found = read_data(load("corpus.source=sample", "corpus.language=hu"), {})
    assert (found.basis, found.text) == ("sources", 0.85 * 2e6)
    assert found.tokens == pytest.approx(0.85 * 2e6 / 5 * 0.9)
    assert (found.disk, found.heldout, found.imported) == ({}, {}, {})


CORPUS = made({"text_bytes": 1000, "words": 200}, 300)


def test_a_finished_corpus_is_not_reduced_again(load: Load) -> None:
    found = read_data(load(), {"corpus": CORPUS})
    assert (found.basis, found.text, found.disk) == ("corpus", 1000, {"corpus": 300})
    assert found.tokens == pytest.approx(1000 / 5 * 0.9)


@each_row(
    ("counts", "tokens"),
    [
        # 60 words and marks in a quarter of the corpus: 240 in all of it, at 1.5 tokens each.
        ({"fertility": 1.5, "sample_words": 60, "trained_on": {"share": 0.25}}, 1.5 * 240),
        # Nothing says how many marks there are: about 17 for every 100 words.
        ({"fertility": 1.5, "sample_words": 60, "trained_on": None}, 1.5 * 1.17 * 200),
        ({"fertility": 1.5}, 1.5 * 1.17 * 200),
        # A vocabulary that was given was not counted on the corpus.
        ({}, 1000 / 5),
        ({"fertility": None}, 1000 / 5),
    ],
)
def test_tokens_per_word_come_from_a_finished_vocabulary(counts: dict[str, Any], tokens: float, load: Load) -> None:
    found = read_data(load(), {"corpus": CORPUS, "vocab": made(counts)})
    assert found.tokens == pytest.approx(0.9 * tokens), "a tenth is held out"


EXAMPLES = {
    "train": {
        "tokens": 5000,
        "rows": {"16": [30, 31], "16-0.5-1.0": [9, 8]},
        "sequences": {
            "16": {"lengths": [0, 1], "mean_length": 12.0, "deviation": 1.5, "longest": 14},
            "16-0.5-1.0": {"lengths": [1, 0], "mean_length": 4.0, "deviation": 0.0, "longest": 4},
        },
    },
    "heldout": {"rows": {"16": [3, 4]}},
}


def test_finished_examples_are_what_was_counted(load: Load) -> None:
    found = read_data(load(), {"corpus": CORPUS, "examples": made(EXAMPLES, 700)})
    assert (found.basis, found.text, found.tokens) == ("examples", 1000, 5000)
    assert found.disk == {"corpus": 300, "examples": 700} and found.heldout == {"16": 7}
    assert {name: each.per_pass for name, each in found.sets.items()} == {"16": (30, 31), "16-0.5-1.0": (9, 8)}
    assert (found.sets["16"].mean_length, found.sets["16"].deviation) == (12.0, 1.5)


def test_imported_examples_are_known_by_their_phase(load: Load, tmp_path: Path) -> None:
    recipe = load(f"train.phases.0.data={tmp_path}")
    counts: dict[str, Any] = {
        "train": {"sequences": {"imported/0": {"mean_length": 11.0}}},
        "heldout": {},
        "imported": {"train.phases.0": {"examples": 77}},
    }
    found = read_data(recipe, {"examples": made(counts)}).imported[0]
    assert (found.per_pass, found.mean_length) == ((77,), 11.0)
    counts["train"]["sequences"] = {}
    assert read_data(recipe, {"examples": made(counts)}).imported[0].mean_length == pytest.approx(0.9 * 16)
    assert read_data(recipe, {"examples": made({**counts, "imported": {}})}).imported == {}
