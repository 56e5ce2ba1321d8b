from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.artifact import Artifact
from bertwright.corpus import dropped
from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.dropped import DroppedWriter, dropped_line, gather_dropped, read_dropped
from bertwright.corpus.run import run

pytestmark = pytest.mark.heavy


def line(name: str) -> bytes:
    return dropped_line("min_words", {"title": name}, "x")


def put(folder: Path, cuts: list[int]) -> list[Path]:
    """Parts that extraction cut differently out of the same: of twelve documents every third is kept."""
    parts = [folder / f"{i}" for i in range(len(cuts) - 1)]
    for part, (start, stop) in zip(parts, pairwise(cuts), strict=True):
        writer = DroppedWriter(part)
        kept = 0
        for number in range(start, stop):
            if number % 3:
                writer.add(kept, line(f"{number}"))
            kept += number % 3 == 0
        writer.finish()
    return parts


def later(cuts: list[int]) -> Callable[[Path], Iterator[tuple[int, bytes]]]:
    """What de-duplication drops: of the kept documents those that 6 divides."""

    def of(part: Path) -> Iterator[tuple[int, bytes]]:
        start, stop = cuts[int(part.name)], cuts[int(part.name) + 1]
        for row, number in enumerate(number for number in range(start, stop) if number % 3 == 0):
            if number % 6 == 0:
                yield row, line(f"{number}")

    return of


@each_row("cuts", [[0, 12], [0, 1, 2, 5, 12], [0, 0, 4, 8, 12, 12], list(range(13))])
def test_files_are_in_corpus_order_whatever_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(dropped, "FILE_BYTES", 2 * len(line("1")))
    gather_dropped(put(tmp_path, cuts), tmp_path / "dropped", later(cuts))
    gather_dropped(put(tmp_path, [0, 12]), tmp_path / "expected", later([0, 12]))
    found = {path.name: path.read_bytes() for path in (tmp_path / "dropped").iterdir()}
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "expected").iterdir()}
    assert sorted(found) == [f"{i:05d}.jsonl.zst" for i in range(5)]


def test_no_dropped_documents_no_file(tmp_path: Path) -> None:
    DroppedWriter(tmp_path / "0").finish()
    gather_dropped([tmp_path / "0"], tmp_path / "dropped", lambda part: ())
    assert not (tmp_path / "dropped").exists()


RIVERS = ("old river", "little brook", "long canal", "wild stream")


@pytest.fixture
def corpus(
    tmp_path: Path, export: Callable[..., bytes], new_page: Any, bridges: list[str], small_pieces: None
) -> Callable[..., Artifact]:
    """`corpus(workers)`: of an export with documents of every outcome between good ones."""
    english = "\n\n".join(f"The {name} winds slowly between the hills and meets the sea by evening." for name in RIVERS)
    pages = [
        new_page(201, "Csonk", "Rövid lap.\u2028Vége."),
        *bridges[:9],
        new_page(202, "English", english),
        bridges[3],
        new_page(203, "Üres", "{{sablon}}"),
        *bridges[9:20],
    ]
    (tmp_path / "a.xml").write_bytes(export(pages))

    def make(workers: int, **settings: Any) -> Artifact:
        name = f"{workers} {sorted(settings)}"
        config = CorpusConfig(
            source=str(tmp_path / "a.xml"), language="hu", workers=workers, filter=FilterConfig(**settings)
        )
        return run(config, tmp_path / name)

    return make


def test_every_dropped_document_is_there_with_its_reason(corpus: Callable[..., Artifact]) -> None:
    made = corpus(1)
    found = list(read_dropped(made))
    assert [(each["title"], each["reason"]) for each in found] == [
        ("Csonk", "min_words"),
        ("English", "language"),
        ("4. híd", "duplicate"),
        ("Üres", "empty"),
    ]
    assert found[0]["text"] == "Rövid lap.\nVége." and found[3]["text"] == ""
    assert (found[1]["language"], found[1]["id"], found[1]["paragraphs"]) == ("en", 202, [0, 1, 2, 3])
    assert found[2].keys() == found[1].keys()
    assert sum(made.counts["dropped"].values()) + made.counts["duplicates"] == len(found)


def test_the_number_of_workers_leaves_no_trace(corpus: Callable[..., Artifact]) -> None:
    def files(made: Artifact) -> dict[str, bytes]:
        return {name: made.file(name).read_bytes() for name in made.names(dropped.FOLDER)}

    one = files(corpus(1))
    assert one.keys() == {"dropped/00000.jsonl.zst"}
    assert files(corpus(2)) == one


def test_dropped_documents_can_be_forgotten(corpus: Callable[..., Artifact]) -> None:
    made = corpus(1, keep_dropped=False)
    assert list(read_dropped(made)) == []
    assert made.counts["dropped"] == {"empty": 1, "language": 1, "min_words": 1}
    assert not (made.path / dropped.FOLDER).exists()
