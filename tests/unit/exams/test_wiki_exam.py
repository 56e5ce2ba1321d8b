"""The exam made from a wiki: only held-out documents, one point of difference, the same items every time."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.unit.exams.conftest import Folder

from bertwright import Recipe, run
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import DataError
from bertwright.core.log import SILENT
from bertwright.corpus.heldout import heldout_documents, text_hash
from bertwright.corpus.links import read_links
from bertwright.exams import wiki
from bertwright.exams.cloze import Cloze, right_titles
from bertwright.exams.next_sentence import make_pairs
from bertwright.exams.pseudo_likelihood import Phrase, phrase_likelihoods
from bertwright.exams.wiki import Wiki, WikiExam, make_exam
from bertwright.model.text_encoder import Encoder

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


def test_pairs_of_a_document_share_no_sentence() -> None:
    documents = [[f"This is sentence number {i} of document {number}." for i in range(9)] for number in range(5)]
    pairs = wiki._order(documents, lambda sentence: True, 12)
    assert len(pairs) == 12
    # A pair of each document, a second one of each, and two more.
    assert sorted({pair.good.split(" of document ")[1][0]: 0 for pair in pairs[:5]}) == list("01234")
    asked = [f"{sentence}." for pair in pairs for sentence in pair.good.removesuffix(".").split(". ")]
    assert len(set(asked)) == len(asked) == 24
    assert all(
        pair.bad == f"{pair.good[len(pair.good) // 2 + 1 :]} {pair.good[: len(pair.good) // 2]}" for pair in pairs
    )


def test_titles_are_of_a_link_and_its_category(corpus: Artifact, exam: WikiExam) -> None:
    held = heldout_documents(corpus, SHARE)
    kept = {line["hash"]: line for line in read_links(corpus) if "hash" in line}
    categories = {line["title"]: set(line["categories"]) for line in read_links(corpus)}
    targets = defaultdict[str, set[str]](set)
    for document in held:
        for sentence, start, end, target in kept.get(f"{text_hash(document):016x}", {"links": []})["links"]:
            targets[document[sentence][start:end]].add(target)
    sentences = {sentence for document in held for sentence in document}
    assert exam.cloze
    for before, after, titles, by in exam.cloze:
        assert f"{before}{titles[0]}{after}" in sentences
        assert len({title.casefold() for title in titles}) == 5
        assert len({title[0].isupper() for title in titles}) == 1
        assert not any(title.casefold() in f"{before}{after}".casefold() for title in titles[1:])
        own = set[str]().union(*(categories.get(target, set()) for target in targets[titles[0]]))
        for title in titles[1:]:
            others = set[str]().union(*(categories.get(target, set()) for target in targets[title]))
            assert by == "article" or own & others


def test_sentences_of_the_training_text_are_not_asked(
    corpus: Artifact, exam: WikiExam, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaked = exam.cloze[0].before + exam.cloze[0].titles[0] + exam.cloze[0].after
    documents = list(wiki.split_documents(corpus, SHARE))
    monkeypatch.setattr(wiki, "split_documents", lambda *_: [*documents, (False, [leaked])])
    again = make_exam(corpus, SHARE, 50)
    assert exam.cloze[0] not in again.cloze
    assert leaked not in {f"{each.before}{each.titles[0]}{each.after}" for each in again.cloze}


def test_the_title_with_the_best_mean_is_chosen(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    titles = ("cat", "dogs", "mat house", "ran", "the word7 word9")
    sentences = [("the", "sat ."), ("a", "ran on the mat")]
    items = [Cloze(a, b, (*titles[n:], *titles[:n]), "article") for a, b in sentences for n in range(5)]
    for number, (before, after) in enumerate(sentences):
        found = phrase_likelihoods(encoder, [Phrase(before, title, after) for title in titles])
        best = int(np.argmax(found.sums / found.pieces))
        right = right_titles(encoder, items[5 * number : 5 * number + 5])
        assert right == [float(n == best) for n in range(5)]
    tie = Cloze("the", "sat", ("cat", "cat", "dog", "mat", "ran"), "article")
    assert right_titles(encoder, [tie]) == [0.0]


def test_half_of_the_next_sentences_follow() -> None:
    held = [[f"Sentence {i} of document {number}." for i in range(30)] for number in range(5)]
    owner = {sentence: number for number, document in enumerate(held) for sentence in document}
    neighbours = {pair for document in held for pair in pairwise(document)}
    pairs = make_pairs(held, 60)
    assert len(pairs) == 60
    for number, (first, second, follows) in enumerate(pairs):
        assert follows == (number % 2 == 0)
        assert ((first, second) in neighbours) == follows
        assert (owner[first] == owner[second]) == follows
    assert make_pairs(held[:1]) == ()


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
