import lzma
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.reference.near_copies import resemblance

from bertwright.corpus.dedup import near
from bertwright.corpus.dedup.ids import Dropped
from bertwright.corpus.dedup.minhash import SignPart, sign_part
from bertwright.corpus.dedup.near import bands, find_near

WritePart = Callable[..., Path]


def dropped(parts: tuple[Path, ...], folder: Path, similarity: float = 0.65) -> Dropped:
    for part in parts:
        sign_part(SignPart(part, spaced=True))
    tasks = bands(parts, similarity, folder)
    for task in tasks:
        find_near(task)
    return Dropped(tuple(task.out for task in tasks))


def changed(words: list[str], share: float, seed: int, pool: list[str]) -> list[str]:
    """A copy with this share of its words taken from elsewhere."""
    draw = np.random.default_rng(seed)
    hit = draw.random(len(words)) < share
    return [pool[draw.integers(len(pool))] if now else word for word, now in zip(words, hit.tolist(), strict=True)]


def made_up(seed: int, words: int) -> list[str]:
    return [f"szó{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in np.random.default_rng(seed).integers(0, 600, words)]


def lines(words: list[str]) -> list[list[str]]:
    return [[" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]]


def test_copies_with_few_changed_words_go_and_others_stay(tmp_path: Path, write_part: WritePart) -> None:
    """The first of each group stays, whichever part it is in; what is dropped resembles an earlier document."""
    originals = [made_up(i, 400) for i in range(12)]
    copies = [changed(original, 0.02, i, made_up(99, 50)) for i, original in enumerate(originals)]
    documents = [*originals, *copies]
    parts = tuple(
        write_part(tmp_path / str(n), [lines(words) for words in documents[n * 8 : n * 8 + 8]]) for n in range(3)
    )
    found = dropped(parts, tmp_path)
    assert [found.rows(n).tolist() for n in range(3)] == [[], [4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]]
    for a, b in combinations(range(24), 2):
        assert (resemblance(" ".join(documents[a]), " ".join(documents[b])) > 0.6) == (b - a == 12)


def test_the_cut_into_parts_and_tasks_leaves_no_trace(
    tmp_path: Path, write_part: WritePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains of ever more changed copies, where it would show if a decision leaned on another one."""
    documents = [made_up(1, 200)]
    for i in range(23):
        documents.append(changed(documents[-1], 0.03, i, made_up(2, 80)))
    results = []
    for bucket, pairs, cuts in ((2**20, 2**14, [24]), (100, 3, [3, 3, 10, 24]), (10, 5, [1, 24])):
        for module in ("ids", "near"):
            monkeypatch.setattr(f"bertwright.corpus.dedup.{module}.BUCKET", bucket)
        monkeypatch.setattr("bertwright.corpus.dedup.near._PAIRS", pairs)
        folder = tmp_path / str(len(results))
        folder.mkdir()
        starts = [0, *cuts[:-1]]
        parts = tuple(
            write_part(folder / str(n), [lines(words) for words in documents[start:stop]])
            for n, (start, stop) in enumerate(zip(starts, cuts, strict=True))
        )
        found = dropped(parts, folder)
        results.append([start + row for n, start in enumerate(starts) for row in found.rows(n).tolist()])
    assert results[0] == results[1] == results[2]
    assert 12 < len(results[0]) <= 23


def test_documents_below_the_threshold_stay(tmp_path: Path, write_part: WritePart) -> None:
    original = made_up(5, 500)
    part = write_part(tmp_path / "0", [lines(original), lines(changed(original, 0.02, 1, made_up(6, 50)))])
    assert dropped((part,), tmp_path, similarity=0.95).rows(0).tolist() == []


def test_the_cost_is_linear_where_thousands_of_stubs_share_a_template(
    tmp_path: Path, write_part: WritePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differ in a number alone; 1,500 documents have a million pairs."""
    stub = "Galda község Kemő vármegyében fekszik a Tar folyó mellett és {} lakosa él benne a legutóbbi számlálás óta"
    part = write_part(tmp_path / "0", [[[stub.format(10 + i)]] for i in range(1500)])
    compared: list[int] = []
    signatures = near._signatures

    def counted(parts: tuple[Path, ...], ids: near.Ids) -> object:
        compared.append(len(ids))
        return signatures(parts, ids)

    monkeypatch.setattr(near, "_signatures", counted)
    assert dropped((part,), tmp_path).rows(0).tolist() == list(range(1, 1500))
    assert 0 < sum(compared) <= 2 * 1500  # all are in one group in every band, and a pair is compared once


def test_planted_copies_in_novels_are_found_and_no_real_text_is_flagged(
    tmp_path: Path, shared: Path, write_part: WritePart
) -> None:
    """300 chunks of 10 KB of Hungarian novels and 60 copies of them with 2.5 % of the words changed."""
    with lzma.open(shared / "text" / "hu_eltec.txt.xz") as stream:
        data = stream.read(3_100_000).decode(errors="ignore")
    words = data.split()
    size = len(words) // 300
    chunks = [words[i * size : (i + 1) * size] for i in range(300)]
    planted = [changed(chunks[i * 5], 0.025, i, words) for i in range(60)]
    part = write_part(tmp_path / "0", [lines(chunk) for chunk in [*chunks, *planted]])
    found = dropped((part,), tmp_path).rows(0)
    assert (found < 300).sum() == 0
    assert (found >= 300).sum() >= 58
