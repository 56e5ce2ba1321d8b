import os
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab import entries
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.load import check_fit, read_vocabulary

SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
UNCASED = SHARED / "data" / "vocab" / "bert-base-uncased-vocab.txt"
SPECIALS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
LETTERS = [chr(c) for c in range(ord("a"), ord("z") + 1)]
LOWER = SPECIALS.split() + [p + c for c in LETTERS for p in ("", "##")]
CASED = LOWER + [p + c.upper() for c in LETTERS for p in ("", "##")]
ACCENTED = CASED + [p + c for c in "áéíóöőúüűÁÉÍÓ" for p in ("", "##")]


@each_row(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (SPECIALS.encode() + b"\xe1rv\n", r"not UTF-8 \(byte 31\)"),
        ((SPECIALS + "a\n\nb\n").encode(), "line 7: empty entry"),
        ((SPECIALS + "a\nb\na\n").encode(), "line 8: 'a' is on line 6 already"),
        (b"[PAD]\n[UNK]\n[CLS]\na\n", r"lacks \[SEP\], \[MASK\]"),
        (b"<html>\n<body>\n", "not a BERT vocabulary"),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vocabulary(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.txt cannot be read: No such file"):
        read_vocabulary(tmp_path / "nowhere.txt")


def test_a_file_that_is_no_vocabulary_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_recipe: Path
) -> None:
    (tmp_path / "dump.xml").write_bytes(b"x" * 200)
    monkeypatch.setattr(entries, "MAX_FILE", 100)
    with pytest.raises(DataError, match=r"dump\.xml cannot be read: it is larger than 100 bytes\. Give the path of"):
        read_vocabulary(tmp_path / "dump.xml")
    with pytest.raises(RecipeError, match=r"vocab\.file: .*dump\.xml cannot be read: it is larger than 100 bytes"):
        Recipe.load(small_recipe, [f"vocab.file={tmp_path / 'dump.xml'}", "vocab.size=", "vocab.alphabet_coverage="])


@each_row("ending", ["\n", "\r\n"])
def test_a_good_file_is_read_as_it_is(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff".encode() + ending.join([*LOWER, "\u2028"]).encode() + ending.encode())
    assert read_vocabulary(path) == [*LOWER, "\u2028"]


CAPITALS = ["The Big River Runs Past Every Old House Of Our Town"] * 3
HUNGARIAN = ["Az árvíztűrő tükörfúrógép őrült módon zörög"] * 3


def config(**settings: bool) -> VocabConfig:
    return VocabConfig.model_validate({"file": "vocab.txt", **settings})


def test_matching_settings_pass() -> None:
    check_fit(LOWER, config(lower_case=True, strip_accents=True), CAPITALS + HUNGARIAN)
    check_fit(CASED, config(), CAPITALS)
    check_fit(ACCENTED, config(), CAPITALS + HUNGARIAN)


def test_an_uncased_vocabulary_needs_lower_casing() -> None:
    with pytest.raises(RecipeError, match=r"vocab\.lower_case=false.*are unknown.*With vocab\.lower_case=true"):
        check_fit(LOWER, config(), CAPITALS)


def test_a_cased_vocabulary_refuses_lower_casing() -> None:
    with pytest.raises(RecipeError, match=r"vocab\.lower_case=true.*52 of its 109 entries could never occur"):
        check_fit(CASED, config(lower_case=True), CAPITALS)


def test_an_accented_vocabulary_refuses_stripping() -> None:
    with pytest.raises(RecipeError, match=r"vocab\.strip_accents=true.*could never occur \(such as 'á'"):
        check_fit(ACCENTED, config(strip_accents=True), HUNGARIAN)


def test_a_vocabulary_of_another_script_is_refused() -> None:
    with pytest.raises(RecipeError, match="Use a vocabulary made for this language"):
        check_fit(CASED, config(), ["Это совсем другое письмо"] * 3)


@pytest.mark.skipif(not UNCASED.exists(), reason=f"no shared data at {SHARED}")
def test_the_published_uncased_vocabulary() -> None:
    entries = read_vocabulary(UNCASED)
    assert len(entries) == 30_522
    check_fit(entries, config(lower_case=True, strip_accents=True), CAPITALS)
    with pytest.raises(RecipeError, match=r"With vocab\.lower_case=true"):
        check_fit(entries, config(), CAPITALS)
