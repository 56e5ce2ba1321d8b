"""Codes of wikis, and what stands in their place."""

import re

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.wikis import wiki_code, wikis


@each_row("code", ["hu", "uk", "simple", "be-tarask", "zh-min-nan", "ltg", "nb", "xx"])
def test_a_code_is_taken_as_it_is(code: str) -> None:
    assert CorpusConfig(source="a", language=code).language == code  # type: ignore[arg-type]


@each_row(
    ("written", "meant"),
    [
        ("hungarian", "hu"),
        ("Hungarian", "hu"),
        ("hungarain", "hu"),
        ("hun", "hu"),
        ("HU", "hu"),
        ("huwiki", "hu"),
        ("hu_HU", "hu"),
        ("en-us", "en"),
        ("ger", "de"),
        ("deu", "de"),
        ("cmn", "zh"),
        ("zh-hant-tw", "zh"),
        ("jp", "ja"),
        ("iw", "he"),
        ("farsi", "fa"),
        ("bokmal", "no"),
    ],
)
def test_other_names_suggest_the_code(written: str, meant: str) -> None:
    says = f"corpus.language|CorpusConfig: language: .*did you mean '{meant}' .{re.escape(wikis()[meant])}"
    with pytest.raises(RecipeError, match=says):
        CorpusConfig(source="a", language=written)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match=f"did you mean '{meant}'"):
        CorpusConfig(source="a", language="hu", filter={"languages": [written]})  # type: ignore[arg-type]


@each_row("written", ["x", "日本語", "h u", ""])
def test_malformed_codes_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match="only lower-case letters and hyphens, such as 'hu'"):
        wiki_code(written)


def test_table_is_sorted_without_duplicate_codes() -> None:
    codes = list(wikis())
    assert codes == sorted(codes) and len(codes) > 340 and all(wikis().values())
    assert not [code for code in codes if wiki_code(code) != code]
