"""The exam made from a wiki: only held-out documents, one point of difference, the same items every time."""

from pathlib import Path

import pytest

from bertwright import Recipe, run
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import DataError
from bertwright.core.log import SILENT
from bertwright.exams.wiki import Wiki, WikiExam, heldout_documents, make_exam

SHARE = 0.3


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("wiki") / "run"
    run(Recipe.load("demo", ["corpus.workers=1"]), folder, ["corpus"], SILENT)
    return open_artifact(folder / "corpus", "corpus")


@pytest.fixture(scope="module")
def exam(corpus: Artifact) -> WikiExam:
    return make_exam(corpus, SHARE, 50)


def test_items_are_of_heldout_documents_only(corpus: Artifact, exam: WikiExam) -> None:
    held = {sentence for document in heldout_documents(corpus, SHARE) for sentence in document}
    assert exam.inflection
    assert exam.order
    assert exam.belonging
    assert {pair.good for pair in exam.inflection} <= held
    for pair in exam.order:
        assert any(pair.good.startswith(sentence) and pair.good[len(sentence) + 1 :] in held for sentence in held)


def test_an_inflected_pair_differs_in_one_word(exam: WikiExam) -> None:
    for good, bad, _ in exam.inflection:
        differing = [(a, b) for a, b in zip(good.split(), bad.split(), strict=True) if a != b]
        assert len(differing) == 1
        ((a, b),) = differing
        assert a[:4] == b[:4] or a.strip('„"(')[:4] == b.strip('„"(')[:4]


def test_an_order_pair_has_the_same_words(exam: WikiExam) -> None:
    for good, bad, _ in exam.order:
        assert good != bad
        assert sorted(good.split()) == sorted(bad.split())


def test_only_the_first_part_belongs(corpus: Artifact, exam: WikiExam) -> None:
    documents = [" ".join(document) for document in heldout_documents(corpus, SHARE)]
    for item in exam.belonging:
        (own,) = [document for document in documents if item.beginning in document]
        assert item.parts[0] in own
        assert len(set(item.parts)) == 5
        assert not any(part in own for part in item.parts[1:])


def test_the_same_corpus_gives_the_same_exam(corpus: Artifact, exam: WikiExam, tmp_path: Path) -> None:
    assert make_exam(corpus, SHARE, 50) == exam
    exam.write(tmp_path / "exam.json")
    assert WikiExam.read(tmp_path / "exam.json") == exam
    assert Wiki(data=tmp_path / "exam.json").title == "wiki"


def test_an_exam_needs_heldout_documents(corpus: Artifact, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the documents is held out"):
        make_exam(corpus, 0.0)
    (tmp_path / "exam.json").write_text('{"order": []}')
    with pytest.raises(DataError, match="is no exam made from a wiki"):
        WikiExam.read(tmp_path / "exam.json")
