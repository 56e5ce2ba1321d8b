"""What the quality benchmark reads from a parse tree; needs mwparserfromhell, which is no dependency."""

import pytest

pytest.importorskip("mwparserfromhell", reason="mwparserfromhell is not installed")

from benchmarks.cleaners.markup import facts

HIDDEN = {"файл": "caption", "file": "caption", "category": "category"}
PAGE = """{{Infobox|a=b}}
'''Pest''' is a city of {{convert|5|km2|{{abbr|x|y}}}} on the river.<ref>A book.</ref>
[[File:Map.svg|thumb|200px|A [[map]] of it]] [[Category:Cities]] [[fr:Pest]] [[:Category:Towns]]
== History ==
{| class="wikitable"
| cell
|}
It was [[old|ancient]]; write <nowiki>''x''</nowiki>. [[:File:A.png|File:A.png]]
"""


def test_prose_is_the_text_without_captions_categories_tables_references_and_headings() -> None:
    words = " ".join(str(facts(PAGE, HIDDEN)["prose"]).split())
    assert words == "Pest is a city of on the river. It was ancient; write ''x''. File:A.png"


def test_the_text_is_strip_codes_own() -> None:
    text = str(facts(PAGE, HIDDEN)["text"])
    assert "thumb|200px|A map of it" in text
    assert "History" in text


def test_raw_tables_and_references_are_no_prose() -> None:
    broken = "Words <ref name=a b>note</ref> stay.\n:{| border\n| cell\n|}\nMore."
    assert str(facts(broken, HIDDEN)["prose"]).split() == ["Words", "stay.", "More."]


def test_lines_hold_text_and_outermost_calls() -> None:
    lines = facts(PAGE, HIDDEN)["lines"]
    assert ["Pest", " is a city of ", ["convert"], " on the river."] in [[p for p in line if p] for line in lines]  # type: ignore[attr-defined]
    assert all("cell" not in str(line) and "map" not in str(line) for line in lines)  # type: ignore[attr-defined]


def test_literal_text_and_headings() -> None:
    page = facts(PAGE, HIDDEN)
    assert str(page["literal"]).split("\n") == ["''x''", "File:A.png"]
    assert page["headings"] == ["History"]
