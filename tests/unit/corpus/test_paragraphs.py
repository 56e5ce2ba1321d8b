import re
from collections import Counter

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.corpus.config import FilterConfig
from bertwright.corpus.paragraphs import ParagraphRules


def ruled(paragraph: str, **settings: object) -> tuple[str, dict[str, int]]:
    """What the rules leave of the paragraph, and what they counted."""
    counts: Counter[str] = Counter()
    return ParagraphRules(FilterConfig(**settings)).apply(paragraph, counts), dict(counts)


def test_no_rule_is_on_by_default() -> None:
    text = "Write to a@b.org or call +36 1 234 5678 {about cookies}: lorem ipsum."
    assert ruled(text) == (text, {})
    assert not ParagraphRules(FilterConfig()).active
    assert ParagraphRules(FilterConfig(patterns=("x",))).active


@each_row(
    "text",
    [
        "Please enable JavaScript to see this page.",
        "Lorem ipsum dolor sit amet.",
        "if (x) { return; }",
        "This site uses cookies.",
        "See our Privacy Policy.",
    ],
)
def test_boilerplate_is_removed(text: str) -> None:
    assert ruled(text, boilerplate=True) == ("", {"removed.boilerplate": 1})


def test_running_text_is_not_boilerplate() -> None:
    text = "The baker's cookies cost $2 [each]; the terms were fair."
    assert ruled(text, boilerplate=True) == (text, {})


def test_patterns_are_searched_for_in_any_case() -> None:
    settings = {"patterns": (r"süti\w*", "^Cikkajánló")}
    assert ruled("A SÜTIK kezelése", **settings) == ("", {"removed.boilerplate": 1})
    assert ruled("Lásd: Cikkajánló", **settings) == ("Lásd: Cikkajánló", {})
    with pytest.raises(RecipeError, match="is not a valid regular expression"):
        FilterConfig(patterns=("(",))


@each_row(
    "address", ["info@example.hu", "a.b-c+d@mail.uni-x.co.uk", "őr@magyar.hu", "x_1%y@a.museum", "иван@пошта.укр"]
)
def test_emails_are_masked_or_dropped(address: str) -> None:
    text = f"Írjon ide: {address}, vagy ({address})."
    mask = "name@example.com"
    assert ruled(text, emails="mask") == (f"Írjon ide: {mask}, vagy ({mask}).", {"masked.email": 2})
    assert ruled(text, emails="drop") == ("", {"removed.email": 1})


@each_row("text", ["egy @ jel", "@nick", "a@b", "x@y.z", "5 @ 3.20", "user@localhost", "a@.com", "a@b..com"])
def test_text_without_emails_is_unchanged(text: str) -> None:
    assert ruled(text, emails="mask") == (text, {})


@each_row(
    "number",
    [
        "+36 1 234 5678", "+36-30-123-4567", "+44 (0)20 7946 0958", "+1 (713) 853-5984", "0049 30 1234567",
        "06-30-123-4567", "06 30 123 4567", "(06 1) 234-5678", "020 7946 0958", "(555) 123-4567", "555-123-4567",
        "555.123.4567", "1-800-555-1234",
    ],
)  # fmt: skip
def test_phone_numbers_are_masked_or_dropped(number: str) -> None:
    assert ruled(f"Hívja: {number}.", phones="mask") == ("Hívja: 000 000 000.", {"masked.phone": 1})
    assert ruled(f"Hívja: {number}.", phones="drop") == ("", {"removed.phone": 1})


@each_row("text", ["Tel.: 234 56 78", "Telefon: 1 234-567", "тел. 044 123-45-67", "phone 234 5678"])
def test_a_word_before_it_makes_a_phone_number(text: str) -> None:
    assert ruled(text, phones="mask")[1] == {"masked.phone": 1}


@each_row(
    "text",
    [
        "01.02.2003", "2010. 08. 05.", "2010-08-05", "1848–1849", "1 234 567", "1 000 000 000", "12 345 678 901",
        "ISBN 978-0-691-15529-6", "ISBN 0-691-15529-6", "ISBN 0060513047", "192.168.100.200", "10:30:20", "123456789",
        "Nature 421 (2003) 1234-1240", "1999-2000-2001", "3.14159265358979", "S. 112-118, 120-124",
    ],
)  # fmt: skip
def test_dates_amounts_and_isbns_are_not_phone_numbers(text: str) -> None:
    assert ruled(text, phones="mask") == (text, {})


def test_masks_are_unchanged() -> None:
    settings = {"emails": "mask", "phones": "mask"}
    once, _ = ruled("Írjon: info@example.hu, hívja: +36 1 234 5678!", **settings)
    assert once == "Írjon: name@example.com, hívja: 000 000 000!"
    assert ruled(once, **settings)[0] == once


@each_row(
    "bait",
    [
        "a", "a.a-", "@", "a@", "a@b.", "a@" + "b" * 63 + ".", "%" * 64 + "@x.", "1", "1 ", "(1", "+1-", "0 12 ",
        "1-1 ", "tel 1234567 ", "1 (1) ", "mobil", "0 (0", "call ",
    ],
)  # fmt: skip
def test_long_baits_cost_steps_in_proportion_to_their_length(bait: str) -> None:
    """A pattern that backtracked with the square of the length would not end in the life of this test."""
    text = bait * (300_000 // len(bait))
    left, _ = ruled(text, emails="mask", phones="mask", boilerplate=True)
    assert re.sub(r"[^@]", "", left) == re.sub(r"[^@]", "", text)
