import lzma
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import near_copies
from tests.reference.near_copies import resemblance
from tests.rows import each_row

from bertwright.core.tasks import Pool
from bertwright.corpus.decisions import COPIES
from bertwright.corpus.dedup import id_files, near
from bertwright.corpus.dedup.id_files import Dropped
from bertwright.corpus.dedup.minhash import SignPart, read_signatures, sign_part, signatures_of, write_signatures
from bertwright.corpus.dedup.near import find_near
from bertwright.corpus.part import DOCUMENT, DOCUMENTS, write_array

pytestmark = pytest.mark.heavy

WritePart = Callable[..., Path]


def dropped(parts: tuple[Path, ...], folder: Path, similarity: float = 0.65) -> Dropped:
    for part in parts:
        sign_part(SignPart(part, spaced=True))
    with Pool(1) as here:
        return find_near(parts, similarity, folder, here)


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
    for bucket, run, pairs, cuts in (
        (2**20, 2**15, 2**14, [24]), (100, 5, 3, [3, 3, 10, 24]), (10, 1, 5, [1, 24])
    ):  # fmt: skip
        for module in ("id_files", "near"):
            monkeypatch.setattr(f"bertwright.corpus.dedup.{module}.BUCKET", bucket)
        monkeypatch.setattr("bertwright.corpus.dedup.id_files.RUN", run)
        monkeypatch.setattr("bertwright.corpus.dedup.near._AT_ONCE", pairs)
        monkeypatch.setattr("bertwright.corpus.dedup.near._GATHERED", pairs)
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


@each_row(("bucket", "run"), [(2**20, 2**15), (150, 40), (30, 1)])
def test_the_drop_list_is_that_of_the_rule_restated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int, run: int
) -> None:
    """400 documents, most of them like others by 0.4 to 1, where the order of comparing would show."""
    for module in ("id_files", "near"):
        monkeypatch.setattr(f"bertwright.corpus.dedup.{module}.BUCKET", bucket)
    monkeypatch.setattr("bertwright.corpus.dedup.id_files.RUN", run)
    draw = np.random.default_rng(3)
    rows = draw.integers(2**32 - 1, size=(12, 32, 4), dtype=np.uint32)[draw.integers(12, size=400)]
    other = draw.random(rows.shape) < draw.uniform(0, 0.45, size=(400, 1, 1))
    rows[other] = draw.integers(2**32 - 1, size=int(other.sum()))
    rows[::50] = 2**32 - 1  # without a word
    parts = tuple(tmp_path / str(number) for number in range(4))
    for number, part in enumerate(parts):
        _write_signed(part, rows[100 * number : 100 * number + 100])
    with Pool(1) as here:
        found = find_near(parts, 0.65, tmp_path, here)
    mine = [100 * number + row for number in range(4) for row in found.rows(number).tolist()]
    worded = [row for row in range(400) if row % 50]
    signed = [[tuple(band) for band in rows[row].tolist()] for row in worded]
    assert mine == [worded[place] for place in near_copies.dropped(signed, 0.65)]
    assert 100 < len(mine) < 380


def _write_signed(part: Path, rows: NDArray[np.uint32]) -> None:
    write_signatures(part, rows)
    write_array(part.with_suffix(DOCUMENTS), np.zeros(len(rows), DOCUMENT))
    write_array(part.with_suffix(COPIES), np.ones(len(rows), np.uint8))


def test_documents_below_the_threshold_stay(tmp_path: Path, write_part: WritePart) -> None:
    original = made_up(5, 500)
    part = write_part(tmp_path / "0", [lines(original), lines(changed(original, 0.02, 1, made_up(6, 50)))])
    assert dropped((part,), tmp_path, similarity=0.95).rows(0).tolist() == []


def test_cost_is_linear_for_thousands_of_similar_stubs(
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


def test_reads_and_writes_grow_linearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in bytes and in files, of parts of 100 documents and tasks of 400; half of the documents are alike."""
    monkeypatch.setattr("bertwright.corpus.dedup.id_files.RUN", 1600)
    for module in ("id_files", "near"):
        monkeypatch.setattr(f"bertwright.corpus.dedup.{module}.BUCKET", 400)
    small, large = (_work(monkeypatch, tmp_path / str(n), 100 * n) for n in (16, 32))
    assert small["dropped"] > 700 and large["dropped"] / small["dropped"] == pytest.approx(2, rel=0.1)
    for name in ("bytes written", "rows copied", "signatures read", "signature files"):
        assert 1.8 < large[name] / small[name] < 2.2, name


def _work(monkeypatch: pytest.MonkeyPatch, folder: Path, documents: int) -> dict[str, int]:
    """What a search of so many signed documents does."""
    folder.mkdir()
    work = dict.fromkeys(("dropped", "bytes written", "rows copied", "signatures read", "signature files"), 0)
    draw = np.random.default_rng(0)
    parts = tuple(folder / str(number) for number in range(documents // 100))
    originals = draw.integers(2**32 - 1, size=(documents // 2, 32, 4), dtype=np.uint32)
    for number, part in enumerate(parts):  # 50 new documents, and a copy of each with every tenth number changed
        rows = np.repeat(originals[50 * number : 50 * number + 50], 2, axis=0)
        other = draw.random(rows.shape) < 0.1
        rows[other] = draw.integers(2**32 - 1, size=int(other.sum()))
        _write_signed(part, rows)
    with monkeypatch.context() as patched:
        write, read_sorted = id_files.write_columns, id_files.read_sorted

        def written(path: Path, *arrays: id_files.Columns) -> None:
            work["bytes written"] += arrays[-1].nbytes  # without the fences, which are few where tasks are large
            write(path, *arrays)

        def rows(*task: object) -> id_files.Columns:
            found = read_sorted(*task)  # type: ignore[arg-type]
            work["rows copied"] += found.shape[1]
            return found

        def read(part: Path, rows: list[int], into: object) -> None:
            work["signature files"] += 1
            work["signatures read"] += len(rows)
            read_signatures(part, rows, into)  # type: ignore[arg-type]

        def all_of(part: Path) -> object:
            work["signature files"] += 1
            work["signatures read"] += 100
            return signatures_of(part)

        for module in (id_files, near):
            patched.setattr(module, "write_columns", written)
            patched.setattr(module, "read_sorted", rows)
        patched.setattr(near, "read_signatures", read)
        patched.setattr(near, "signatures_of", all_of)
        with Pool(1) as here:
            found = find_near(parts, 0.65, folder, here)
    work["dropped"] = sum(len(found.rows(number)) for number in range(len(parts)))
    return work


def test_planted_copies_in_novels_are_found_without_false_hits(
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
