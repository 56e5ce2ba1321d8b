import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.corpus.decisions import OUTCOMES, DecidePart, Outcome, decide_part
from bertwright.corpus.dedup.id_files import Dropped, ids_of, write_columns
from bertwright.corpus.shards import Shard, plan, write_shard
from bertwright.corpus.text import documents_in

NOTHING = Dropped()
WritePart = Callable[..., Path]
Documents = list[list[list[str]]]


def prepared(
    folder: Path,
    write_part: WritePart,
    documents: list[Documents],
    *,
    weight: float = 1,
    dropped: Dropped = NOTHING,
) -> tuple[Path, ...]:
    """Settled parts in which nothing but the paragraphs in `dropped` is dropped."""
    parts = tuple(write_part(folder / str(n), part, weight) for n, part in enumerate(documents))
    for number, (part, inside) in enumerate(zip(parts, documents, strict=True)):
        np.save(part.with_suffix(OUTCOMES), np.full(len(inside), Outcome.KEPT, np.uint8))
        decide_part(DecidePart(part, number, dropped, 1))
    return parts


def some_documents(count: int) -> Documents:
    return [[[f"Az {i}. irat {j}. mondata." for j in range(1 + i * i % 7)]] for i in range(count)]


def written(shards: list[Shard]) -> list[list[list[str]]]:
    for shard in shards:
        write_shard(shard)
    return [list(documents_in(shard.files[0])) for shard in shards]


def facts_of(shard: Shard) -> list[dict[str, object]]:
    data = zstandard.ZstdDecompressor().decompressobj().decompress(shard.files[1].read_bytes())
    return [json.loads(line) for line in data.splitlines()]


@each_row(("shard_bytes", "count"), [(900, None), (10**6, 7), (10**6, 20), (10**6, None)])
@each_row("weight", [1, 3])
def test_shards_are_cut_by_sentences_wherever_the_parts_are_cut(
    tmp_path: Path, write_part: WritePart, shard_bytes: int, count: int | None, weight: int
) -> None:
    documents = some_documents(60)
    flat = [[sentence for paragraph in document for sentence in paragraph] for document in documents]
    total = weight * sum(map(len, flat))
    size = weight * sum(len("\n".join(lines).encode()) + 2 for lines in flat)
    shards = count or -(-size // shard_bytes)
    expected: list[list[list[str]]] = [[] for _ in range(shards)]
    done = 0
    for lines in flat:
        expected[done * shards // total] += [lines] * weight
        done += weight * len(lines)
    results = []
    for cuts in ([60], [1, 1, 50, 60]):
        folder = tmp_path / str(len(cuts))
        folder.mkdir()
        cut = [documents[a:b] for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
        planned = plan(prepared(folder, write_part, cut, weight=weight), shard_bytes, count, folder)
        results.append(written(planned))
        assert [shard.number for shard in planned] == list(range(shards))
        assert [len(facts_of(shard)) for shard in planned] == [len(each) for each in expected]
    assert all(result == expected for result in results)


def test_documents_stay_whole_and_too_many_shards_are_refused(tmp_path: Path, write_part: WritePart) -> None:
    documents: Documents = [[["Egy."]], [["Kettő."] * 50], [["Három."]]]
    parts = prepared(tmp_path, write_part, [documents])
    with pytest.raises(DataError, match=r"corpus.shards=4 is too many.* Set corpus.shards=2,"):
        plan(parts, 10**6, 4, tmp_path)
    assert written(plan(parts, 100, None, tmp_path)) == [[["Egy."], ["Kettő."] * 50], [["Három."]]]


def test_the_count_that_is_advised_can_be_met(tmp_path: Path, write_part: WritePart) -> None:
    uneven: Documents = [[["Egy."] * (1 + 7 * i % 11)] for i in range(20)]
    parts = prepared(tmp_path, write_part, [uneven])
    with pytest.raises(DataError, match="Set corpus.shards=") as caught:
        plan(parts, 10**6, 20, tmp_path)
    advice = int(str(caught.value).partition("Set corpus.shards=")[2].partition(",")[0])
    assert len(plan(parts, 10**6, advice, tmp_path)) == advice


def test_offsets_follow_removed_paragraphs(tmp_path: Path, write_part: WritePart) -> None:
    """Headings stand before every second paragraph; where all of a section is gone, so is its heading."""
    document = [["a1", "a2"], ["b1"], ["c1", "c2"], ["d1"], ["e1", "é2"]]
    write_columns(tmp_path / "drop", ids_of(0, np.array([0, 5 + 1, 5 + 2, 10 + 0, 10 + 4])))
    parts = prepared(tmp_path, write_part, [[document] * 4], dropped=Dropped((tmp_path / "drop",), (0,)))
    (shard,) = plan(parts, 10**6, None, tmp_path)
    ((first, second, third, fourth),) = written([shard])
    assert first == ["b1", "c1", "c2", "d1", "e1", "é2"]
    assert second == ["a1", "a2", "d1", "e1", "é2"]
    assert third == ["b1", "c1", "c2", "d1"]
    assert fourth == ["a1", "a2", "b1", "c1", "c2", "d1", "e1", "é2"]
    facts = [(line["paragraphs"], line["headings"]) for line in facts_of(shard)]
    assert facts == [
        ([0, 1, 3, 4], [[0, "heading 1"], [3, "heading 3"]]),
        ([0, 2, 3], [[2, "heading 3"]]),
        ([0, 1, 3], [[0, "heading 1"], [3, "heading 3"]]),
        ([0, 2, 3, 5, 6], [[2, "heading 1"], [5, "heading 3"]]),
    ]


def test_finished_shards_are_not_written_again(tmp_path: Path, write_part: WritePart) -> None:
    shards = plan(prepared(tmp_path, write_part, [some_documents(20)]), 10**6, 2, tmp_path)
    written(shards)
    before = [path.stat().st_mtime_ns for shard in shards for path in shard.files]
    shards[0].files[1].unlink()
    written(shards)
    after = [path.stat().st_mtime_ns for shard in shards for path in shard.files]
    assert [a == b for a, b in zip(after, before, strict=True)] == [False, False, True, True]
