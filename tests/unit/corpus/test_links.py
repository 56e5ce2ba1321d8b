"""The categories and links that a corpus keeps of a wiki's articles, for exams."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.corpus.exports import article

from bertwright.corpus import links
from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.corpus.links import LINKS, read_links
from bertwright.corpus.run import run
from bertwright.corpus.text import read_documents, shard_names
from bertwright.corpus.wikitext.links import article_links, categories, page_title
from bertwright.corpus.wikitext.site import Site

SITE = Site("hu", {14: ("Kategória",), 6: ("Fájl",)})
Export = Callable[..., bytes]
Page = Callable[..., str]


@each_row(
    "wikitext, found",
    [
        ("[[Duna]]", [("Duna", "Duna")]),
        ("a [[duna|folyó]]", [("folyó", "Duna")]),
        ("[[Duna_(folyó)#Vize|''vize'']]", [("vize", "Duna (folyó)")]),
        ("[[:Duna]]", [("Duna", "Duna")]),
        ("[[Fájl:a.jpg|a [[Duna]] képe]] [[Kategória:Folyók]] [[en:Danube]]", [("Duna", "Duna")]),
        ("[[#Vize]]", []),
        ("[[Duna", []),
    ],
)
def test_links_have_texts_and_targets(wikitext: str, found: list[tuple[str, str]]) -> None:
    assert list(article_links(wikitext, SITE)) == found


def test_categories_are_those_of_the_page() -> None:
    wikitext = "[[:Kategória:Hidak]] [[Category:Folyók|Duna]]\n[[kategória: magyar_hidak ]] [[Duna]] [[en:Danube]]"
    assert categories(wikitext, SITE) == ["Folyók", "Magyar hidak"]
    assert page_title("caf%C3%A9_au lait#a") == "Café au lait"


@pytest.fixture
def dump(export: Export, new_page: Page, tmp_path: Path) -> Path:
    texts = [
        f"{article(i)}\n\nA híd [[Budapest]]en áll, a [[Duna|nagy folyó]] fölött.\n[[Kategória:Hidak]]"
        for i in range(1, 13)
    ]
    path = tmp_path / "wiki.xml"
    path.write_bytes(export([new_page(i, f"{i}. híd", text) for i, text in enumerate(texts)]))
    return path


def built(source: Path, out: Path) -> list[dict[str, object]]:
    config = CorpusConfig(
        source={"path": str(source)},  # type: ignore[arg-type]
        language="hu",
        workers=1,
        filter=FilterConfig(enabled=False),
    )
    corpus = run(config, out)
    found = list(read_links(corpus))
    hashed = {line["hash"]: line for line in found if "hash" in line}
    for name in shard_names(corpus):
        for document in read_documents(corpus, name):
            # Positions are those of the sentences.
            for sentence, start, end, target in hashed.get(f"{text_hash(document):016x}", {"links": []})["links"]:
                if target == "Duna":
                    assert document[sentence][start:end] == "nagy folyó"
    return found


def test_positions_are_of_whole_words(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SHARE", 1.0)
    found = built(dump, tmp_path / "corpus")
    assert len(found) == 12
    assert all(line["categories"][-1] == "Hidak" for line in found)  # type: ignore[index]
    # "Budapesten" is one word, of which the link is a part.
    assert all([link[3] for link in line["links"]] == ["Duna"] for line in found)  # type: ignore[attr-defined]


def test_articles_that_are_not_held_out_keep_few_links(dump: Path, tmp_path: Path) -> None:
    text = dump.read_text(encoding="utf-8")
    many = "".join(f" A [[Híd {i}|{word}]] szép." for i, word in enumerate(("kapu", "torony", "pillér", "lánc")))
    dump.write_text(text.replace("A híd [[Buda", f"{many} A híd [[Buda"), encoding="utf-8")
    found = built(dump, tmp_path / "corpus")
    assert [line["title"] for line in found] == [f"{i}. híd" for i in range(12)]
    held = is_heldout(np.array([int(str(line["hash"]), 16) for line in found], np.uint64), links.SHARE)
    assert not held.all()
    numbers = [len(line["links"]) for line in found]  # type: ignore[arg-type]
    assert numbers == [5 if is_held else links.FEW for is_held in held]
    # Which ones is drawn for each article, and their order is that of the text.
    assert len({str([link[3] for link in line["links"]]) for line in found}) > 3  # type: ignore[attr-defined]
    assert all(line["links"] == sorted(line["links"]) for line in found)  # type: ignore[call-overload]


def test_a_corpus_of_no_wiki_has_no_links(tmp_path: Path) -> None:
    sentences = "A híd a folyó fölött áll. Minden reggel sokan járnak át rajta a városba. Este kivilágítják.\n"
    (tmp_path / "text.txt").write_text(sentences * 8)
    assert built(tmp_path / "text.txt", tmp_path / "corpus") == []
    assert not (tmp_path / "corpus" / LINKS).exists()
