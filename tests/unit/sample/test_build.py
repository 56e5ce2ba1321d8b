"""The shipped exports: rebuilt byte for byte, valid XML, and with the content the demo relies on."""

import bz2
import hashlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.rows import each_row

from bertwright.evaluate.config import GAP
from bertwright.sample import SAMPLE, SMALL
from tools.sample.build import PAGES_PER_STREAM, REPEATED

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
NS = "{http://www.mediawiki.org/xml/export-0.11/}"


@cache
def streams(path: Path) -> list[str]:
    """Each bzip2 stream of a file, decompressed on its own."""
    data, found = path.read_bytes(), []
    while data:
        stream = bz2.BZ2Decompressor()
        found.append(stream.decompress(data).decode("utf-8"))
        data = stream.unused_data
    return found


@cache
def pages(path: Path) -> list[dict[str, str]]:
    root = ElementTree.fromstring("".join(streams(path)))
    return [
        {
            "title": page.findtext(f"{NS}title") or "",
            "ns": page.findtext(f"{NS}ns") or "",
            "text": page.findtext(f"{NS}revision/{NS}text") or "",
            "sha1": page.findtext(f"{NS}revision/{NS}sha1") or "",
            "bytes": page.find(f"{NS}revision/{NS}text").attrib["bytes"],  # type: ignore[union-attr]
            "redirect": page.find(f"{NS}redirect").attrib["title"] if page.find(f"{NS}redirect") is not None else "",  # type: ignore[union-attr]
        }
        for page in root.iter(f"{NS}page")
    ]


@cache
def plain() -> str:
    """The articles without markup, roughly: good enough to count words and look for sentences."""
    text = "\n".join(page["text"] for page in pages(SAMPLE) if page["ns"] == "0")
    text = re.sub(r"<ref[^>/]*>.*?</ref>|<[^>]*>|\{\{[^{}]*\}\}|'''?", "", text, flags=re.DOTALL)
    return re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", text)


def test_the_command_makes_the_shipped_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tools.sample.build", str(tmp_path)], cwd=ROOT, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {SAMPLE.name, SMALL.name}
    for shipped in (SAMPLE, SMALL):
        same = (tmp_path / shipped.name).read_bytes() == shipped.read_bytes()
        assert same, "run `python -m tools.sample.build` after changing the sample's sources"


def test_sizes() -> None:
    assert SAMPLE.stat().st_size < 400_000 and SMALL.stat().st_size < 60_000
    assert len(plain().encode()) > 1_800_000 and len(pages(SAMPLE)) > 1300 and len(pages(SMALL)) > 120


@each_row("path", [SAMPLE, SMALL])
def test_streams_as_in_a_multistream_dump(path: Path) -> None:
    head, *blocks, tail = streams(path)
    assert head.startswith("<mediawiki ") and head.rstrip().endswith("</siteinfo>") and tail == "</mediawiki>\n"
    counts = [block.count("<page>") for block in blocks]
    assert counts[:-1] == [PAGES_PER_STREAM] * (len(counts) - 1) and 0 < counts[-1] <= PAGES_PER_STREAM
    for block in blocks:
        ElementTree.fromstring(f"<pages>{block}</pages>")


def test_siteinfo_and_pages() -> None:
    root = ElementTree.fromstring(streams(SAMPLE)[0] + "</mediawiki>")
    names = {int(n.attrib["key"]): n.text for n in root.iter(f"{NS}namespace")}
    assert root.attrib["{http://www.w3.org/XML/1998/namespace}lang"] == "hu"
    assert (names[0], names[6], names[10], names[14]) == (None, "Fájl", "Sablon", "Kategória")
    titles = [page["title"] for page in pages(SAMPLE)]
    assert len(set(titles)) == len(titles)
    for page in pages(SAMPLE):
        text = page["text"].encode()
        assert int(page["bytes"]) == len(text)
        assert int(page["sha1"], 36) == int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest(), "big")
        name = names[int(page["ns"])]
        assert page["title"].startswith(f"{name}:") if name else ":" not in page["title"]


def test_the_markup_that_matters_is_there() -> None:
    text = "\n".join(page["text"] for page in pages(SAMPLE))
    marks = ("{{nowrap|", "{{convert|", "{|", "\n|}\n|}", "<ref name=", "/>", "<references />", "\n* ", "\n** ", "\n# ",
             "\n; ", "\n: ", "<gallery>", "<math>", "<nowiki>", "<!--", "&nbsp;", "&ndash;", "&amp;", "[https://",
             "[[en:", "[[Kategória:", "[[Category:", "__NOTOC__", "{{DEFAULTSORT:", "&shy;", "{{egyért}}",
             "<noinclude>", "#ÁTIRÁNYÍTÁS", "#REDIRECT")  # fmt: skip
    assert [mark for mark in marks if mark not in text] == []
    assert re.search(r"\[\[Fájl:[^\[\]]*\[\[", text), "a file whose caption has a link"
    assert {page["redirect"] for page in pages(SAMPLE)} == {"", "Kerékpár", "Világítótorony", "Compost"}
    assert {page["ns"] for page in pages(SAMPLE)} == {"0", "1", "10", "14", "100"}


def test_repeated_pages_repeat_and_no_others_do() -> None:
    texts = {page["title"]: page["text"] for page in pages(SAMPLE) if page["ns"] == "0"}
    assert all(texts[copy] == texts[title] for title, copy in REPEATED.items())
    assert sum(count - 1 for count in Counter(texts.values()).values()) == len(REPEATED)


def test_words() -> None:
    words = Counter(re.findall(r"\w+", plain().lower()))
    assert len(words) > 5000 and sum(count >= 5 for count in words.values()) > 3000


def demo_lines() -> list[str]:
    recipe = tomllib.loads((ROOT / "recipes" / "demo.toml").read_text(encoding="utf-8"))
    lines: list[str] = recipe["evaluate"]["cloze"]
    return lines


@each_row("line", demo_lines())
def test_the_demo_asks_for_words_of_the_sample_in_sentences_it_does_not_have(line: str) -> None:
    before, word, after = GAP.split(line)
    assert Counter(re.findall(r"\w+", plain()))[word] >= 40
    assert f"{before}{word}{after}".rstrip(".") not in plain()
