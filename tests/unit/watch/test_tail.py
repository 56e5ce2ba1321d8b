"""Files that are appended to, cut, replaced and damaged while they are read."""

import os
import random
from pathlib import Path

from tests.rows import each_row

from bertwright.watch.tail import LONGEST, Tail


def follow(tail: Tail, lines: list[bytes]) -> list[bytes]:
    """The lines after a change, as a reader keeps them."""
    while True:
        change = tail.read()
        lines = lines[: change.kept] + change.lines
        if not change.lines or tail.read_bytes == tail.size:
            return lines


def test_only_whole_lines_are_read_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    tail = Tail(path)
    assert tail.read() == (0, []) and tail.generation == 0
    path.write_bytes(b"one\ntw")
    assert tail.read() == (0, [b"one\n"])
    assert tail.read() == (1, [])
    with path.open("ab") as file:
        file.write(b"o\r\x85\nthree\n")
    assert tail.read() == (1, [b"two\r\x85\n", b"three\n"])
    assert [tail.line(i) for i in range(3)] == [b"one\n", b"two\r\x85\n", b"three\n"]
    assert len(tail) == 3 and tail.generation == 0


def test_nothing_that_is_known_is_read_again(tmp_path: Path) -> None:
    path, read = tmp_path / "rows", []
    path.write_bytes(b"".join(b"row %d\n" % i for i in range(100_000)))
    tail = Tail(path)
    follow(tail, [])
    pread = os.pread

    def counted(descriptor: int, size: int, start: int) -> bytes:
        read.append(len(data := pread(descriptor, size, start)))
        return data

    os.pread = counted
    try:
        assert tail.read() == (100_000, []) and not read, "of a file that has not changed nothing at all"
        with path.open("ab") as file:
            file.write(b"another\n")
        assert tail.read() == (100_000, [b"another\n"])
        # As a training resumes: a new file with the first lines of the old one.
        path.with_name("new").write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:60_000]))
        path.with_name("new").replace(path)
        assert tail.read() == (60_000, [])
    finally:
        os.pread = pread
    assert sum(read) < 1000 and tail.generation == 1


@each_row(
    ("before", "after", "kept"),
    [
        (b"a\nb\nc\n", b"a\nb\n", 2),  # cut
        (b"a\nb\nc\n", b"a\nb\nd\ne\n", 2),  # cut, and longer than before
        (b"a\nb\nc\n", b"a\nb\nlonger", 2),
        (b"a\nb\nc\n", b"", 0),
        (b"a\nb\nc\n", b"x\ny\nz\n", 0),  # another file
        (b"a\nb\nc\n", b"a\nb\nc", 2),  # half a line
        (b"a\nb\nc\n", b"a\nb\nc more\n", 2),  # the last row is completed
        (b"a\nb\nc\n", b"\0\0\0\0\0\0", 0),  # after a power cut
        (b"", b"a\n", 0),
    ],
)
def test_lines_that_are_still_there_are_kept(before: bytes, after: bytes, kept: int, tmp_path: Path) -> None:
    for new_file in (False, True):
        path = tmp_path / f"{kept} {new_file} {len(after)} {after[:9].hex()}"
        path.write_bytes(before)
        tail = Tail(path)
        lines = follow(tail, [])
        if new_file:
            path.with_name("new").write_bytes(after)
            path.with_name("new").replace(path)
        else:
            path.write_bytes(after)
            os.utime(path, ns=(1, random.getrandbits(40)))
        change = tail.read()
        assert change.kept == kept
        assert lines[:kept] + change.lines == [line + b"\n" for line in after.split(b"\n")[:-1]]
        assert tail.generation == (len(before) > 0)


def test_a_file_that_changes_at_random_is_read_as_it_is(tmp_path: Path) -> None:
    draw, path, written = random.Random(7), tmp_path / "rows", list[bytes]()
    tail, lines = Tail(path), list[bytes]()
    for step in range(300):
        kind = draw.random()
        if kind < 0.2:
            written = written[: draw.randrange(len(written) + 1)]
            path.with_name("new").write_bytes(b"".join(written))
            path.with_name("new").replace(path)
        elif kind < 0.25:
            path.unlink(missing_ok=True)
            written = []
        else:
            new = [b"%d %d\n" % (step, draw.getrandbits(draw.choice((4, 400)))) for _ in range(draw.randrange(9))]
            written += new
            with path.open("ab") as file:
                file.write(b"".join(new))
        if draw.random() < 0.7:
            change = tail.read(draw.choice((64, 10**6)))
            lines = lines[: change.kept] + change.lines
            assert lines == written[: len(lines)]
    assert follow(tail, lines) == written and [tail.line(i) for i in range(len(written))] == written


def test_a_line_without_an_end_is_not_kept_in_memory_forever(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"x" * (2 * LONGEST + 5) + b"\nrow\n")
    assert [len(line) for line in follow(Tail(path), [])] == [LONGEST, LONGEST, 6, 4]


def test_a_folder_in_the_place_of_the_file_has_no_lines(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    assert tail.read() == (0, [])
