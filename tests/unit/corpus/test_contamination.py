from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.core.tasks import Pool
from bertwright.corpus import contamination as module
from bertwright.corpus.contamination import check_files, contamination, read_lines, text_hash

TEXT = "a régi híd a folyó fölött ível át és naponta sokan járnak rajta kelet felé tavasztól késő őszig"
WORDS = TEXT.split()
TRAIN = [
    ["Első mondat.", "A régi híd, a folyó fölött ível át", "és naponta sokan járnak rajta!", "Vége van."],
    ["Egészen más szöveg áll itt, amelyben a híd szó is előfordul, de semmi egyéb közös nincs benne a többivel."],
]


def found_by_definition(train: list[list[str]], sentence: str, n: int) -> bool:
    """Whether `n` words in a row of the sentence stand in one document; all of a shorter one as a sentence."""

    def plain(text: str) -> list[str]:
        return [word for word in (word.strip(".,!–").casefold() for word in text.split()) if word]

    words = plain(sentence)
    if len(words) < n:
        return any(plain(line) == words for document in train for line in document)
    texts = [f" {' '.join(plain(' '.join(document)))} " for document in train]
    return any(f" {' '.join(words[i : i + n])} " in text for i in range(len(words) - n + 1) for text in texts)


@each_row(("start", "stop", "found"), [(0, 13, True), (0, 12, False), (0, 18, True), (1, 18, False)])
def test_thirteen_words_in_a_row_of_one_document_are_a_find(start: int, stop: int, found: bool) -> None:
    sentence = " ".join(WORDS[start:stop])
    report = contamination(TRAIN, {"set": [sentence]})["set"]
    long = stop - start >= 13
    assert (report["sentences"], report["short"]) == (int(long), int(not long))
    assert report["found"] + report["short_found"] == found == found_by_definition(TRAIN, sentence, 13)
    assert report["examples"] == [sentence] * found


def test_reports_count_apart_and_show_the_first(tmp_path: Path) -> None:
    line = "A RÉGI HÍD – a folyó fölött ível át és naponta sokan járnak rajta"
    test = {
        "leaks": [line, *(f"{line} {i}" for i in range(6)), "vége van", "Vége!", "", "– …"],
        "clean": ["Ez a mondat sehol sem áll a szövegben, pedig tizenhárom szónál is több van benne, ha jól számolom."],
        "empty": [],
    }
    reports = contamination(TRAIN, test)
    assert reports["leaks"] == {
        "run": "13 words", "sentences": 7, "found": 7, "share": 1.0, "short": 2, "short_found": 1,
        "examples": [line, *(f"{line} {i}" for i in range(4))],
    }  # fmt: skip
    assert (reports["clean"]["sentences"], reports["clean"]["share"]) == (1, 0.0)
    assert reports["empty"] == {
        "run": "13 words", "sentences": 0, "found": 0, "share": 0.0, "short": 0, "short_found": 0, "examples": []
    }  # fmt: skip


def test_runs_do_not_cross_from_one_document_to_the_next() -> None:
    halves = [[" ".join(WORDS[:7])], [" ".join(WORDS[7:13])]]
    assert contamination(halves, {"set": [" ".join(WORDS[:13])]})["set"]["found"] == 0
    assert contamination([[*halves[0], *halves[1]]], {"set": [" ".join(WORDS[:13])]})["set"]["found"] == 1


def test_without_spaces_a_run_is_twenty_six_characters() -> None:
    text = "東京は日本の首都であり世界最大の都市の一つである人口は約千四百万人"
    test = {"set": [text[2:28], f"{text[:25]}々"]}
    report = contamination([[text[:15], text[15:]]], test, spaced=False)["set"]
    assert (report["found"], report["run"]) == (1, "26 characters")


def test_files_are_checked_against_all_shards(tmp_path: Path) -> None:
    shards = []
    for number, document in enumerate(TRAIN):
        shards.append(tmp_path / f"{number}.txt.zst")
        shards[-1].write_bytes(zstandard.compress(("\n".join(document) + "\n\n").encode()))
    lines = [" ".join(WORDS[:14]), TRAIN[1][0], "Más."]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"id": 3, "pair": ["Más.", "Vége van."]}\n\n', encoding="utf-8")
    files = (tmp_path / "a.txt", tmp_path / "b.jsonl")
    reports = check_files(files, shards, tmp_path, Pool(1))
    assert reports == {
        str(files[0]): contamination(TRAIN, {"a": lines})["a"],
        str(files[1]): contamination(TRAIN, {"b": ["Más.", "Vége van."]})["b"],
    }
    assert [report["found"] for report in reports.values()] == [2, 0]
    assert reports[str(files[1])]["short_found"] == 1
    assert check_files((), shards, tmp_path, Pool(1)) == {}


def test_unusable_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"cannot read .*missing.txt.*corpus.contamination"):
        text_hash(tmp_path / "missing.txt")
    (tmp_path / "a.jsonl").write_bytes(b'"fine"\n{"text": \n')
    with pytest.raises(DataError, match=r"a.jsonl, line 2: not JSON .*rename"):
        list(read_lines(tmp_path / "a.jsonl"))
    (tmp_path / "d.jsonl").write_bytes(b"[" * 100_000)
    with pytest.raises(DataError, match=r"d.jsonl, line 1: not JSON \(it is nested deeper than 64 levels\)"):
        list(read_lines(tmp_path / "d.jsonl"))
    monkeypatch.setattr(module, "_MAX_BYTES", 10)
    (tmp_path / "c.txt").write_text("eleven bytes")
    with pytest.raises(DataError, match=r"cannot read .*c.txt: it is larger than 10 bytes. Name its single files"):
        text_hash(tmp_path / "c.txt")
    (tmp_path / "b.txt").write_bytes("őr".encode("iso-8859-2"))
    with pytest.raises(DataError, match=r"b.txt is not UTF-8 at byte 0"):
        list(read_lines(tmp_path / "b.txt"))
