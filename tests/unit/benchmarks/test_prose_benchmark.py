"""The labels of the prose benchmark, and what the filter makes of two wikis on which nothing was chosen."""

import sys
import tomllib
from pathlib import Path

import pytest
from tests.conftest import SHARED
from tests.rows import each_row

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the script imports its neighbours by their short names
try:
    from benchmarks.prose import LABELS, Counts, count, language_of, row
finally:
    sys.path.remove(str(ROOT / "benchmarks"))

WIKIS = tomllib.loads(LABELS.read_text(encoding="utf-8"))


def test_two_hundred_documents_of_ten_wikis_are_labelled() -> None:
    assert [len(wiki["documents"]) for wiki in WIKIS.values()] == [20] * 10
    assert sum(wiki["chosen_on"] for wiki in WIKIS.values()) == 5
    for wiki in WIKIS.values():
        assert len({document["id"] for document in wiki["documents"]}) == 20
        assert all(document["title"] and document["reason"] for document in wiki["documents"])


@each_row("language", ["ltg", "zh"])
@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason=f"no real data at {SHARED}; set BERTWRIGHT_SHARED")
def test_prose_is_kept_and_what_is_dropped_is_none(language: str) -> None:
    labels = {document["id"]: document["prose"] for document in WIKIS[language]["documents"]}
    counts = count(SHARED / "data" / "wiki" / WIKIS[language]["file"], language, labels)
    assert counts.labelled.total() == 20
    assert counts.prose[True] >= 0.95 * counts.prose.total()
    dropped = counts.labelled[False, False], counts.labelled[True, False]
    assert dropped[0] >= 0.9 * sum(dropped)
    assert language == "zh" or dropped[0] >= 10


def test_a_row_says_shares() -> None:
    counts = Counts()
    counts.size.update({"kept": 90, "language": 10})
    counts.labelled.update({(True, True): 3, (False, False): 3, (False, True): 1, (True, False): 1})
    counts.prose.update({True: 30, False: 10})
    assert row("xx", counts) == ["xx", "90.0%", "75.0%", "75.0% (3 of 4)", "75.0% (3 of 4)"]
    assert row("none", Counts())[1:] == ["-", "-", "- (0 of 0)", "- (0 of 0)"]


@each_row(
    ("name", "language"),
    [("uk.xml.bz2", "uk"), ("ukwiki-20260101-pages.xml.bz2", "uk"), ("zh_yuewiki.xml.xz", "zh-yue")],
)
def test_a_dump_is_in_the_language_of_its_name(name: str, language: str) -> None:
    assert language_of(Path(name)) == language
