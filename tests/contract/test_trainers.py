"""Every trainer of a vocabulary: its size, its special entries, one result for one text, words that it can write."""

from pathlib import Path
from typing import Any

import pytest
from tests.reference.unions import sections_of
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.vocab.config import TrainerConfig, VocabConfig
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.run import run

TRAINERS = sections_of(TrainerConfig)
trainers = pytest.mark.parametrize("trainer", TRAINERS, ids=lambda section: section.model_fields["kind"].default)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return made.corpus(tmp_path_factory.mktemp("trainers") / "corpus", [made.text(60, seed=1), made.text(60, seed=2)])


@trainers
def test_the_entries_are_as_many_as_asked_each_once_the_special_ones_with_them(
    trainer: Any, corpus: Artifact, tmp_path: Path
) -> None:
    done = run(VocabConfig(size=300, trainer=trainer()), corpus, tmp_path / "vocab")
    entries = done.file("vocab.txt").read_text("utf-8").splitlines()
    assert len(entries) == len(set(entries)) == done.counts["entries"] == 300
    assert set(SPECIALS) <= set(entries)
    assert done.counts["unknown_rate"] == 0.0, "a text is written with what was learned from it"


@trainers
def test_one_text_gives_one_vocabulary(trainer: Any, corpus: Artifact, tmp_path: Path) -> None:
    one, other = (run(VocabConfig(size=300, trainer=trainer()), corpus, tmp_path / name) for name in "ab")
    assert one.counts["vocabulary"] == other.counts["vocabulary"]
    assert all(one.file(name).read_bytes() == other.file(name).read_bytes() for name in one.names())
