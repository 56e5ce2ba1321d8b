import errno
import io
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.tasks import Pool
from bertwright.corpus.balance import tally, tally_bytes
from bertwright.corpus.config import DeduplicateConfig
from bertwright.corpus.decisions import (
    DECISIONS,
    KEPT_PARAGRAPHS,
    DecidePart,
    Outcome,
    copies,
    decide_part,
    list_dropped,
)
from bertwright.corpus.dedup.find import find_repetitions
from bertwright.corpus.part import DOCUMENTS

WritePart = Callable[..., Path]
Documents = list[list[list[str]]]


def decisions(parts: tuple[Path, ...], folder: Path, *, spaced: bool = True, **config: object) -> list[np.ndarray]:
    repeated = find_repetitions(DeduplicateConfig(**config), parts, folder, Pool(1), spaced=spaced)
    for number, part in enumerate(parts):
        decide_part(DecidePart(part, number, repeated, 2))
    return [np.load(part.with_suffix(DECISIONS)) for part in parts]


def paragraph(name: str, words: int = 24) -> list[str]:
    """Two sentences of made-up words, which no other name has."""
    half = words // 2
    return [" ".join(f"{name}{chr(97 + i)}" for i in range(start, start + half)) for start in (0, half)]


def test_every_document_has_one_outcome(tmp_path: Path, write_part: WritePart) -> None:
    a, b, c, d, e, f = (paragraph(name) for name in "abcdef")
    documents: Documents = [
        [a, b],
        [a, b],  # the same text
        [a, c],  # loses a
        [c, [f"{d[0]}.", d[1]]],  # loses c
        [b, ["Egy mondat."]],  # only one sentence is left
        [["Egy mondat."]],  # never had more
        [[e[0], f"{e[1]} x"], f],
        [[f"{e[0]}!", e[1].upper()], f],  # the same but for a mark, a word and letter case
    ]
    part = write_part(tmp_path / "0", documents)
    (rows,) = decisions((part,), tmp_path)
    expected = [
        Outcome.KEPT,
        Outcome.DUPLICATE,
        Outcome.KEPT,
        Outcome.KEPT,
        Outcome.EMPTIED,
        Outcome.KEPT,
        Outcome.KEPT,
        Outcome.NEAR_DUPLICATE,
    ]
    assert [Outcome(outcome) for outcome in rows["outcome"]] == expected
    assert rows["copies"].tolist() == [1, 0, 1, 1, 0, 1, 1, 0]
    assert rows["sentences"][[0, 2, 3, 5]].tolist() == [4, 2, 2, 1]
    assert rows["words"][[0, 2, 5]].tolist() == [48, 24, 2]
    assert rows["bytes"][2] == len("\n".join(c).encode()) + 2
    whole = [len("\n".join(chain(*document)).encode()) + 2 for document in documents]
    lost = sum(len("\n".join(paragraph).encode()) + 1 for paragraph in (a, c))
    assert tally_bytes([part]) == {
        "kept": sum(whole[i] for i in (0, 2, 3, 5, 6)) - lost,
        "duplicates": whole[1],
        "near_duplicates": whole[7],
        "emptied": whole[4],
        "not_drawn": 0,
        "duplicate_paragraphs": lost,
    }
    assert dict(tally([part])) == {
        "kept": 5, "duplicates": 1, "near_duplicates": 1, "emptied": 1, "not_drawn": 0, "duplicate_paragraphs": 2,
        "copies": 5, "sentences": 13, "words": 48 + 24 + 24 + 2 + 49,
        "text_bytes": rows["bytes"][rows["outcome"] == 0].sum(),
    }  # fmt: skip


def test_repetitions_cross_parts_and_steps_can_be_disabled(tmp_path: Path, write_part: WritePart) -> None:
    a, b, c = (paragraph(name) for name in "abc")

    def outcomes(**config: object) -> list[list[int]]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        parts = (write_part(folder / "0", [[a, b]]), write_part(folder / "1", [[a, b], [c, a]]))
        return [rows["sentences"].tolist() + rows["outcome"].tolist() for rows in decisions(parts, folder, **config)]

    assert outcomes() == [[4, 0], [0, 2, Outcome.DUPLICATE, Outcome.KEPT]]
    assert outcomes(documents=False) == [[4, 0], [0, 2, Outcome.NEAR_DUPLICATE, Outcome.KEPT]]
    assert outcomes(documents=False, near_documents=False)[1] == [0, 2, Outcome.EMPTIED, Outcome.KEPT]
    assert outcomes(min_words=25) == [[4, 0], [0, 4, Outcome.DUPLICATE, Outcome.KEPT]]
    off = {"documents": False, "near_documents": False, "paragraphs": False}
    assert outcomes(**off) == [[4, 0], [4, 4, Outcome.KEPT, Outcome.KEPT]]


def test_paragraphs_are_the_same_but_for_letter_case(tmp_path: Path, write_part: WritePart) -> None:
    a = [*paragraph("a"), "1912-ben."]
    others = [[line.upper() for line in a], [*a[:2], "1913-ban."], [f"{a[0]} {a[1]}", a[2]]]
    part = write_part(tmp_path / "0", [[a], *([["Első."], other, ["Utolsó."]] for other in others)])
    (rows,) = decisions((part,), tmp_path, near_documents=False)
    assert rows["sentences"].tolist() == [3, 2, 5, 2]


def test_without_spaces_two_characters_count_for_a_word(tmp_path: Path, write_part: WritePart) -> None:
    long, short = (
        "これは四十文字より長い段落であるから、二度目に現れるときには文書から取り除かれるはずである。",
        "短い段落は残る。",
    )
    ends = ["最初の文書はここで終わる。まったく別の話題が続く。", "二番目の文書には橋と川についての説明がある。"]
    part = write_part(tmp_path / "0", [[[long], [short], [end], ["終"]] for end in ends])
    (rows,) = decisions((part,), tmp_path, spaced=False)
    assert rows["sentences"].tolist() == [4, 3]


@each_row("weight", [0.3, 1.0, 2.0, 2.25, 100])
def test_a_weight_is_the_mean_number_of_copies(tmp_path: Path, write_part: WritePart, weight: float) -> None:
    part = write_part(tmp_path / "0", [[[f"Az {i}. irat.", "Vége."]] for i in range(2000)], weight)
    off = {"documents": False, "near_documents": False, "paragraphs": False}
    (rows,) = decisions((part,), tmp_path, **off)
    assert set(rows["copies"]) <= {int(weight), int(weight) + 1}
    rest = weight % 1
    assert abs(rows["copies"].mean() - weight) <= 4 * (rest * (1 - rest) / 2000) ** 0.5
    assert ((rows["outcome"] == Outcome.NOT_DRAWN) == (rows["copies"] == 0)).all()
    assert tally([part])["copies"] == rows["copies"].sum()


def test_the_lot_follows_the_text_and_the_seed(tmp_path: Path, write_part: WritePart) -> None:
    documents = [[[f"Az {i}. irat.", "Vége."]] for i in range(100)]
    drawn = {}
    for name, order, seed in (("a", documents, 1), ("b", documents[::-1], 1), ("c", documents, 2)):
        part = write_part(tmp_path / name, order, 0.5, seed)
        drawn[name] = copies(part).tolist()
    assert drawn["a"] == drawn["b"][::-1] != drawn["c"]


def test_what_is_not_drawn_takes_no_other_documents_place(tmp_path: Path, write_part: WritePart) -> None:
    """Drawn after the comparison, a text that a source of low weight has first would be lost to the other source."""
    documents = [[paragraph(f"{chr(97 + i % 26)}{chr(97 + i // 26)}{side}") for side in "xy"] for i in range(100)]
    seldom, always = write_part(tmp_path / "0", documents, 0.1), write_part(tmp_path / "1", documents)
    first, second = decisions((seldom, always), tmp_path)
    drawn = first["outcome"] == Outcome.KEPT
    assert 0 < drawn.sum() < 30 and (first["outcome"][~drawn] == Outcome.NOT_DRAWN).all()
    assert ((second["outcome"] == Outcome.KEPT) == ~drawn).all() and (second["sentences"][~drawn] == 4).all()


def test_texts_without_words_are_not_like_each_other(tmp_path: Path, write_part: WritePart) -> None:
    part = write_part(tmp_path / "0", [[["." * i, "?", "…"]] for i in range(1, 8)])
    (rows,) = decisions((part,), tmp_path)
    assert (rows["outcome"] == Outcome.KEPT).all()


def test_what_is_not_kept_can_be_set_aside(tmp_path: Path, write_part: WritePart) -> None:
    a, b = paragraph("a"), paragraph("b")
    part = write_part(tmp_path / "0", [[a], [a], [b, a]])
    decisions((part,), tmp_path)
    ((row, line),) = list_dropped(part)
    assert row == 1
    assert json.loads(line) == {"reason": "duplicate", "id": 1, "headings": [], "paragraphs": [0], "text": "\n".join(a)}


def test_a_decided_part_is_not_decided_again(tmp_path: Path, write_part: WritePart) -> None:
    part = write_part(tmp_path / "0", [[["Egy.", "Kettő."]]])
    decisions((part,), tmp_path)
    before = part.with_suffix(KEPT_PARAGRAPHS).stat().st_mtime_ns
    decisions((part,), tmp_path, documents=False)
    assert part.with_suffix(KEPT_PARAGRAPHS).stat().st_mtime_ns == before


def test_disk_error_names_the_file_when_bytes_are_summed(
    tmp_path: Path, write_part: WritePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = write_part(tmp_path / "0", [[paragraph("a")]])
    decisions((part,), tmp_path)
    opened = open

    class Broken(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "the disk")

        readall = read

    def broken(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        return Broken(file) if str(file).endswith(DOCUMENTS) else opened(file, mode, *rest, **options)

    monkeypatch.setattr("builtins.open", broken)
    with pytest.raises(OSError, match="the disk") as failed:
        tally_bytes([part])
    assert failed.value.filename == str(part.with_suffix(DOCUMENTS))
