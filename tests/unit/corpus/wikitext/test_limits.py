"""No input raises, explodes or costs more than its length."""

import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright.corpus.config import WikitextConfig
from bertwright.corpus.wikitext.clean import is_disambiguation, paragraphs
from bertwright.corpus.wikitext.definitions import Definitions
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import Site

pytestmark = pytest.mark.heavy

GOLDEN = Path(__file__).parents[3] / "golden" / "wikitext"
SITE = Site("en", {6: ("File",), 14: ("Category",)})
CONFIG = WikitextConfig(maths="tex", expand_templates=True)
DEFINITIONS = Definitions({"a": "{{{1}}}", "b": "#a"})

MARKUP = [
    "{{", "}}", "[[", "]]", "{|", "|}", "{{{", "}}}", "|", "!", "=", "==", "''", "'''", "'''''",
    "*", "#", ":", ";", "----", "\n", "\n\n", "(", ")", ",", ".", "—", "&", "&amp;", "&#91;",
    "<ref>", "</ref>", "<ref/>", "<!--", "-->", "<nowiki>", "</nowiki>", "<br>", "<table>",
    "</table>", "<math>", "</math>", "<", ">", "[http://a", "]", "__TOC__", "-{", "}-",
    "nowrap|", "convert|", "lang|", "val|", "File:", "Category:", "[[File:a.jpg|", "[[:",
    "{{sup|", "{{a|", "{{b}}", "zh-hans:", "{{{1}}}", 'id="mw', "<chem>", "</chem>", "{{PAGENAME}}", "{{quote|",
    "\U0010002d", "\U0010000a",
    "#redirect", "a", "é", "ক", " ", "\u0301", "\u200d", "\x85", "\u2028"
]  # fmt: skip
soup = st.lists(st.sampled_from(MARKUP), max_size=60).map("".join)


@settings(max_examples=400, derandomize=True)
@given(soup | st.text(max_size=200))
def test_any_text_gives_clean_lines_no_longer_than_itself(wikitext: str) -> None:
    result = paragraphs(wikitext, SITE, CONFIG, "T", DEFINITIONS)
    redirect_target(wikitext, SITE)
    is_disambiguation(wikitext, SITE)
    for paragraph in result:
        assert paragraph.text == paragraph.text.strip()
        assert paragraph.text.splitlines() == [paragraph.text]
        assert any(map(str.isalnum, paragraph.text))
        assert unicodedata.is_normalized("NFC", paragraph.text)
    # Literals of patterns such as " ± " are shorter than the calls they stand in.
    longest = len(unicodedata.normalize("NFC", wikitext))
    assert sum(len(paragraph.text) for paragraph in result) <= longest + 8


words = st.text("abcdé", min_size=1, max_size=5)
leaves = words.map(lambda w: (w, w)) | words.map(lambda w: (f"x<ref>{w}</ref>", "x"))


def nested(inside: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    """Pairs of markup and the text a reader sees, built around such pairs."""
    pair = st.lists(inside, min_size=1, max_size=4).map(
        lambda parts: ("".join(p[0] for p in parts), "".join(p[1] for p in parts))
    )
    return st.one_of(
        pair,
        pair.map(lambda p: (f"{{{{nowrap|{p[0]}}}}}", p[1])),
        pair.map(lambda p: (f"{{{{lang|hu|{p[0]}}}}}", p[1])),
        pair.map(lambda p: (f"[[Target|{p[0]}]]", p[1])),
        pair.map(lambda p: (f"<i>{p[0]}</i>", p[1])),
        pair.map(lambda p: (f"x{{{{Unknown|{p[0]}|y={p[0]}}}}}", "x")),
        pair.map(lambda p: (f"x[[File:y.png|thumb|{p[0]}]]", "x")),
    )


@settings(max_examples=200, derandomize=True)
@given(st.recursive(leaves, nested, max_leaves=12))
def test_well_formed_nesting_reads_as_composed(pair: tuple[str, str]) -> None:
    wikitext, text = pair
    assert [paragraph.text for paragraph in paragraphs(wikitext, SITE)] == [text]


def calls(function: Callable[[], object]) -> int:
    """How many function calls, Python's and C's, the function makes."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


BAIT = {
    "open templates": lambda n: "{{" * n,
    "open links": lambda n: "[[" * n,
    "open tables": lambda n: "\n{|" * n,
    "open everything": lambda n: "{{[[\n{|<ref><!-" * n,
    "nested templates": lambda n: "{{nowrap|a" * n + "}}" * n,
    "nested links": lambda n: "[[a|b" * n + "]]" * n,
    "crossing ends": lambda n: "[[" * n + "}}" * n + "\n|}" * n,
    "open tags": lambda n: "<ref><nowiki><math><b <" * n,
    "external links": lambda n: "[http://a " * n,
    "external links with brackets": lambda n: "[http://a [" * n + "[mailto:" * n,
    "ends of links": lambda n: "[" * n + "a]]" * n + "]]" * n,
    "bold": lambda n: "a'''b''c'" * n,
    "commas": lambda n: ", " * n + ",;" * n,
    "brackets": lambda n: "( " * n + ") " * n,
    "headings": lambda n: "=a" * n + "\n==b" * n + "\n=" + "a===" * n + "b",
    "open variants": lambda n: "-{" * n + "a}-" * n,
    "variants across links": lambda n: "[[-{" * n + "]]}-" * n,
    "variant rules": lambda n: "-{" + "zh-hans:a;" * n + "}-" + "-{" + ";" * n + "}-",
    "defined templates": lambda n: "a {{a|b}} " * n,
    "nested defined templates": lambda n: "{{a|" * n + "}}" * n,
    "maths": lambda n: "<math>a</math><math>" * n,
    "escaped tags": lambda n: '<nowiki><i id="mw' * n + "</nowiki>" * n,
    "combining marks": lambda n: "a" + "\u0301\u0323" * n,
}


@each_row("bait", BAIT.values())
def test_twice_the_bait_takes_twice_the_calls(bait: Callable[[int], str]) -> None:
    paragraphs("warm {{nowrap|up}}", SITE)
    once, twice = (calls(lambda n=n: paragraphs(bait(n), SITE, CONFIG, "", DEFINITIONS)) for n in (2_000, 4_000))
    assert twice <= 2.1 * once + 100


@each_row("bait", BAIT.values())
def test_a_hundred_thousand_of_anything_ends_without_growing(bait: Callable[[int], str]) -> None:
    """No recursion limit, no explosion; quadratic work on any of these would take many minutes."""
    wikitext = bait(100_000)
    result = paragraphs(wikitext, SITE, CONFIG, "", DEFINITIONS)
    assert sum(len(paragraph.text) for paragraph in result) <= len(wikitext)


@pytest.mark.slow
def test_a_page_of_ten_megabytes_is_as_clean_as_a_short_one() -> None:
    page = (GOLDEN / "en.wiki").read_text("utf-8")
    times = 10_000_000 // len(page)
    once = [paragraph.text for paragraph in paragraphs(page, SITE)]
    assert [paragraph.text for paragraph in paragraphs(page * times, SITE)] == once * times
