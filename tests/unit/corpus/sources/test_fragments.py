"""Pieces and neighbours of a dump, each with the remedy that helps."""

import bz2
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.wiki import read_header

Build = Callable[..., bytes]
WIKITEXT = b"'''Berlin''' is the [[capital]] of [[Germany]].\n\n== History ==\n{{Infobox}}\n" * 9


@each_row(
    ("name", "cut", "message"),
    [
        ("pages.xml", lambda d: d[d.index(b"<page>") :], "may be a part of one: it begins with <page>.*Put the head"),
        ("stream.bz2", lambda d: bz2.compress(d[d.index(b"<page>") :]), "has tags of an export.*Put the head"),
        ("head.xml", lambda d: d[d.index(b"<siteinfo>") :], "it begins with <siteinfo>"),
        ("middle.xml", lambda d: d[d.index(b"<text") + 90 :], "does not begin with an element"),
        ("middle", lambda d: d[d.index(b"<text") + 90 :], "has tags of an export, but no <mediawiki> before them"),
        ("api.xml", lambda _: b"<?xml version='1.0'?><api><query/></api>", "a response of the wiki's API"),
        ("abstract.xml", lambda _: b"<feed><doc><title>A</title></doc></feed>", "a file of abstracts"),
        ("other.xml", lambda _: b"<root/>", "root element is <root>, not <mediawiki>; use the dump"),
        ("index.txt", lambda _: b"600:1:A\n600:2:B: C\n900:3:D\n", "index of a multistream dump"),
        ("page.sql", lambda _: b"-- MySQL dump 10.19\n\nDROP TABLE IF EXISTS `page`;\n", "a table of a database"),
        ("berlin.wiki", lambda _: WIKITEXT, "looks like wikitext.*Special:Export"),
    ],
)
def test_a_piece_of_a_dump_is_refused_with_what_to_do(
    tmp_path: Path, export: Build, bridges: list[str], name: str, cut: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / name).write_bytes(cut(export(bridges)))
    with pytest.raises(SourceError, match=message):
        examine(tmp_path / name)


def test_empty_export_has_its_own_remedy(tmp_path: Path, export: Build) -> None:
    (tmp_path / "a.xml").write_bytes(export([]))
    with pytest.raises(SourceError, match="ends after its head. Name pages"):
        read_header(examine(tmp_path / "a.xml"))
    (tmp_path / "a.xml").write_bytes(export([], tail=""))
    with pytest.raises(SourceError, match="Download it again"):
        read_header(examine(tmp_path / "a.xml"))


@each_row(
    "text", ["Use [[links]] sparingly.\n", "A {{template}} and a [[link]].\n", "12:30:00 noon\n", "SELECT is SQL.\n"]
)
def test_plain_text_may_speak_of_markup(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text * 5)
    assert examine(tmp_path / "a.txt").format == "text"


def test_wikitext_is_text_if_the_recipe_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(WIKITEXT)
    assert examine(tmp_path / "a.txt", "text").format == "text"


@each_row("opening", ["[[x ", "[", "{{x ", "{", "<text ", "==x ", "\n==x", "<!-- ", "1234"])
def test_what_is_opened_again_and_again_costs_its_length(tmp_path: Path, opening: str) -> None:
    """A million bytes: what looks for an end from every beginning would take hours for them."""
    (tmp_path / "a.txt").write_text("Text. " + opening * (2**20 // len(opening)))
    assert examine(tmp_path / "a.txt").format == "text"
