"""Pairs of texts from a corpus: what belongs together, who is held out, and what is too easy."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.corpus.exports import article

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.corpus import articles
from bertwright.corpus.articles import Article, passage, read_articles
from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.heldout import heldout_documents, text_hash
from bertwright.corpus.leads import Leads
from bertwright.corpus.pairs import HELDOUT, TRAIN, PairsConfig, heldout_share, make_pairs
from bertwright.corpus.run import run

Export = Callable[..., bytes]
Page = Callable[..., str]
SHARE = 0.3


def sentence(i: int, j: int) -> str:
    return f"Ez a {i}. cikk {j}. mondata a nagy folyóról és a hídról szól."


@pytest.fixture
def wiki(export: Export, new_page: Page, tmp_path: Path) -> Artifact:
    """Thirty articles with two sections; each links to the next, and there are three categories."""
    texts = [
        f"{sentence(i, 0)} {sentence(i, 1)} A {i}. híd [[{(i + 1) % 30}. híd|szomszédja]] is ott áll.\n\n"
        f"== Története ==\n\n{sentence(i, 2)}\n\n{sentence(i, 3)}\n\n"
        f"== Jegyzetek ==\n\n{sentence(i, 4)}\n\n[[Kategória:{i % 3}. fajta]]"
        for i in range(30)
    ]
    path = tmp_path / "wiki.xml"
    path.write_bytes(export([new_page(i, f"{i}. híd", text) for i, text in enumerate(texts)]))
    return build(path, tmp_path / "corpus")


def build(source: Path, out: Path, workers: int = 1) -> Artifact:
    config = CorpusConfig(
        source={"path": str(source)},  # type: ignore[arg-type]
        language="hu",
        workers=workers,
        filter=FilterConfig(enabled=False),
        deduplicate={"near_documents": False},  # type: ignore[arg-type]
    )
    return run(config, out)


def lines(pairs: Artifact, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pairs.file(name).read_text(encoding="utf-8").splitlines()]


def both(pairs: Artifact) -> Iterator[tuple[bool, dict[str, Any]]]:
    for held, name in ((False, TRAIN), (True, HELDOUT)):
        yield from ((held, line) for line in lines(pairs, name))


def test_pairs_of_a_wiki_belong_together(wiki: Artifact, tmp_path: Path) -> None:
    pairs = make_pairs(wiki, PairsConfig(heldout=SHARE), tmp_path / "pairs")
    kinds = Counter[str]()
    for _, line in both(pairs):
        number = int(line["group"].partition(".")[0])
        anchor, positive, kind = line["anchor"], line["positive"], line["kind"]
        kinds[kind] += 1
        if kind == "title":
            assert anchor == f"{number}. híd"
            assert positive.startswith((sentence(number, 0), sentence(number, 1)))
        elif kind == "section":
            assert (anchor, positive) in [
                (f"{number}. híd: Története", sentence(number, 2)),
                (f"{number}. híd: Jegyzetek", sentence(number, 4)),
            ]
        elif kind == "link":
            assert anchor == f"A {number}. híd szomszédja is ott áll."
            assert positive.startswith(sentence((number + 1) % 30, 0))
        else:
            assert kind == "neighbour"
            assert anchor[: anchor.index(". mondata")].startswith(f"Ez a {number}. cikk")
        for negative in line.get("negatives", ()):
            other = int(negative.split()[2].rstrip("."))
            right = (number + 1) % 30 if kind == "link" else number
            assert kind in ("title", "link")
            assert other % 3 == right % 3
            assert other not in (right, number)
    assert kinds["title"] == 30
    assert kinds["section"] == 60
    assert kinds["neighbour"] == 90
    assert pairs.counts["train"] == Counter(line["kind"] for line in lines(pairs, TRAIN))
    assert pairs.counts["heldout_pairs"] == len(lines(pairs, HELDOUT))


def test_held_out_articles_give_only_held_out_pairs(wiki: Artifact, tmp_path: Path) -> None:
    held = {text_hash(document) for document in heldout_documents(wiki, SHARE)}
    of_article = {each.title: each.hash in held for each in read_articles(wiki)}
    assert 0 < sum(of_article.values()) < 30
    pairs = make_pairs(wiki, PairsConfig(heldout=SHARE), tmp_path / "pairs")
    found = Counter[bool]()
    for is_held, line in both(pairs):
        assert of_article[line["group"]] == is_held
        texts = [line["positive"], *line.get("negatives", ())]
        numbers = [int(text.split()[2].rstrip(".")) for text in texts if text.startswith("Ez a ")]
        assert all(of_article[f"{number}. híd"] == is_held for number in numbers)
        found[is_held] += line["kind"] == "link"
    # A link from a held-out article to another one, or the other way round, gives no pair.
    linked = [(of_article[f"{i}. híd"], of_article[f"{(i + 1) % 30}. híd"]) for i in range(30)]
    assert found == {held: sum(a == b == held for a, b in linked) for held in (False, True)}


def test_the_same_pairs_every_time(wiki: Artifact, tmp_path: Path) -> None:
    first = make_pairs(wiki, PairsConfig(heldout=SHARE), tmp_path / "a")
    again = build(tmp_path / "wiki.xml", tmp_path / "again", workers=2)
    second = make_pairs(again, PairsConfig(heldout=SHARE), tmp_path / "b")
    assert first.manifest["files"] == second.manifest["files"]
    assert not list((tmp_path / "a").glob(".*"))


def test_text_without_titles_gives_neighbours_and_halves(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(
        "".join("".join(f"{sentence(i, j)}\n" for j in range(6)) + "\n" for i in range(20)), encoding="utf-8"
    )
    pairs = make_pairs(build(tmp_path / "text.txt", tmp_path / "corpus"), PairsConfig(heldout=SHARE), tmp_path / "p")
    assert set(pairs.counts["train"]) <= {"neighbour", "halves"}
    assert all(line["negatives"] == [] for _, line in both(pairs))


def test_a_share_of_the_articles_keeps_to_the_limit(wiki: Artifact, tmp_path: Path) -> None:
    every = make_pairs(wiki, PairsConfig(heldout=SHARE), tmp_path / "a")
    some = make_pairs(wiki, PairsConfig(heldout=SHARE, most=100), tmp_path / "b")
    assert 0 < some.counts["train_pairs"] < 150 < every.counts["train_pairs"] + 50
    kept = {line["group"] for line in lines(some, TRAIN)}
    assert [line for line in lines(every, TRAIN) if line["group"] in kept] == lines(some, TRAIN)
    assert lines(every, HELDOUT) == lines(some, HELDOUT)


def test_a_corpus_of_one_document_is_refused(export: Export, new_page: Page, tmp_path: Path) -> None:
    (tmp_path / "wiki.xml").write_bytes(export([new_page(1, "Egy híd", article(1))]))
    corpus = build(tmp_path / "wiki.xml", tmp_path / "corpus")
    with pytest.raises(DataError, match=r"gives no (training|held-out) pairs: 1 documents .*--pairs"):
        make_pairs(corpus, PairsConfig(heldout=SHARE), tmp_path / "pairs")
    assert not (tmp_path / "pairs").exists()


def test_passages_end_after_a_whole_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(articles, "WORDS", 10)
    assert passage(["a b c d e", "f g h i", "j k"]) == ["a b c d e", "f g h i"]
    assert passage(["a " * 30, "b"]) == ["a " * 30]
    assert passage(["Too short."]) == []
    assert Article(["Lead of an article that has enough words, here."], {}).lead
    assert Article(["x"], {"headings": [[0, "At once"]], "paragraphs": [0], "title": "T"}).lead == []


def test_small_corpora_hold_out_a_tenth() -> None:
    assert heldout_share(0.02, 500) == 0.1
    assert heldout_share(0.02, 20_000) == 0.05
    assert heldout_share(0.02, 1_000_000) == 0.02
    assert heldout_share(0.3, 10) == 0.3


def test_leads_are_found_by_title(wiki: Artifact, tmp_path: Path) -> None:
    with Leads(wiki, 0.0, tmp_path / "leads") as leads:
        assert len(leads) == 30
        assert leads.find("3. híd", held=False)[0] == sentence(3, 0)
        assert leads.find("3. híd", held=True) == []
        assert leads.find("Nincs ilyen", held=False) == []
        assert leads.other("Nincs ilyen", held=False) == ""
        others = {leads.other(f"{i}. híd", held=False, but="0. híd") for i in range(0, 30, 3)}
        assert len(others) > 3
        assert not any(sentence(0, 0) in each for each in others)
    assert not (tmp_path / "leads").exists()
