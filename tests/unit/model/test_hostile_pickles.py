"""Damaged and hostile files of torch.save: tensors or one sentence, and never code that the file brings."""

import io
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processes import PATIENCE
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.members import open_weights

OLDER = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.}X\r\x00\x00\x00little_endian\x88s."
"""What an older file begins with."""


def outcome(file: Path) -> str:
    """The sentence about a file, or "" if its tensors could be read."""
    try:
        weights = open_weights(file)
        _ = weights.left_out, weights.config
        for name, tensor in weights.read().items():
            assert tuple(tensor.shape) == weights.stored[name].shape
            tensor.double().sum()  # reads every element
    except ArtifactError as error:
        assert str(file) in str(error) and len(str(error)) < 600
        return str(error)
    return ""


def archive(file: Path, pickled: bytes, storages: dict[str, bytes] | None = None, **settings: Any) -> Path:
    """A zip archive as torch writes it, with a pickle of our own."""
    with zipfile.ZipFile(file, "w", **settings) as archive:
        archive.writestr("a/data.pkl", pickled)
        for key, content in (storages or {"0": bytes(64)}).items():
            archive.writestr(f"a/data/{key}", content)
    return file


def pickled_tensor(
    shape: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, key: str = "0", kind: str = "FloatStorage"
) -> bytes:
    """The pickle of {"w": a tensor}, whose description says anything."""

    class Writer(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return ("storage", getattr(torch, kind), key, "cpu", 16) if value is STORAGE else None

    class Tensor:
        def __reduce__(self) -> Any:
            return torch._utils._rebuild_tensor_v2, (STORAGE, offset, shape, stride, False, {})

    buffer = io.BytesIO()
    Writer(buffer, 2).dump({"w": Tensor()})
    return buffer.getvalue()


STORAGE = object()


@each_row("as_zip", [True, False])
def test_cut_and_flipped_files_are_tensors_or_a_sentence(tmp_path: Path, as_zip: bool) -> None:
    file, whole = tmp_path / "a.pt", {"a": torch.arange(40.0), "b": torch.ones(3, 5).half(), "c": {"d": 1}}
    torch.save(whole, file, _use_new_zipfile_serialization=as_zip)
    data, dice = file.read_bytes(), random.Random(3)
    assert outcome(file) == ""
    for cut in [*range(64), *(dice.randrange(len(data)) for _ in range(60)), len(data) - 1]:
        file.write_bytes(data[:cut])
        assert outcome(file), cut
    said = 0
    for _ in range(400):
        flipped = bytearray(data)
        flipped[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        file.write_bytes(flipped)
        said += bool(outcome(file))
    assert said > 50


@settings(max_examples=200)
@given(st.lists(st.sampled_from([bytes([code]) for code in range(256)]), max_size=40).map(b"".join) | st.binary())
def test_any_bytes_in_place_of_the_pickle(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "a.pt"
    assert outcome(archive(file, content))
    file.write_bytes(OLDER + content)
    assert outcome(file)


class Runs:
    """Whose pickle runs a command when it is loaded."""

    def __init__(self, command: str, call: Callable[..., Any] = os.system) -> None:
        self.command, self.call = command, call

    def __reduce__(self) -> Any:
        return self.call, (self.command,)


@each_row("as_zip", [True, False])
def test_code_in_a_pickle_does_not_run(tmp_path: Path, as_zip: bool) -> None:
    marker = tmp_path / "it ran"
    touch, code = f"touch '{marker}'", f"open({str(marker)!r}, 'w')"
    attacks: list[Any] = [Runs(touch), Runs(code, eval), Runs(code, exec), Runs(touch, subprocess.getoutput)]
    for number, attack in enumerate(attacks):
        weight = torch.arange(4.0)
        for place, content in enumerate(
            ({"w": weight, "x": attack}, {"model": {"w": weight}, "args": attack}, {"w": weight, "x": [{"y": attack}]})
        ):
            file = tmp_path / f"{number}{place}.pt"
            torch.save(content, file, _use_new_zipfile_serialization=as_zip)
            # The tensors beside it are read; it is a value that is no tensor.
            assert torch.equal(open_weights(file).read()["w"], weight)
        torch.save(attack, file, _use_new_zipfile_serialization=as_zip)
        assert "holds an object of the class" in outcome(file)
    assert not marker.exists()
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=True)  # which refuses such a file as a whole
    torch.load(file, weights_only=False)
    assert marker.exists()  # so the attack works where it is let


@each_row(
    "stolen", [b"cos\nsystem\n(S'touch {}'\ntR.", b"(S'touch {}'\nios\nsystem\n.", b"(cos\nsystem\nS'touch {}'\no."]
)
def test_every_instruction_that_calls_only_describes_the_call(tmp_path: Path, stolen: bytes) -> None:
    marker = tmp_path / "ran"
    file = archive(tmp_path / "a.pt", stolen.replace(b"{}", str(marker).encode()))
    assert "holds an object of the class os.system" in outcome(file) and not marker.exists()


BOMBS = {
    "tuples of tuples": b"(" + b"K\x01\x85" + b"2\x86" * 100_000 + b".",
    "as keys": b"}" + b"K\x01\x85" + b"2\x86" * 64 + b"K\x01s.",
    "as keys of keys": b"}" + b"(" + (b"K\x01\x85" + b"2\x86" * 64 + b"K\x01") * 50 + b"u.",
    "nested lists": b"]" * 200_000 + b"a" * 199_999 + b".",
    "marks": b"(" * 900_000 + b".",
    "a list in itself": b"]q\x00h\x00a.",
    "a dictionary in itself": b"}q\x00X\x05\x00\x00\x00modelh\x00s.",
    "a list copied over and over": b"]q\x00(" + b"]]K\x01K\x02\x86a" * 0 + b"K\x01K\x02\x86" * 50_000 + b"e"
    + (b"ccollections\nOrderedDict\nh\x00\x85R0") * 5_000 + b"}.",
    "a long text": b"X\xff\xff\xff\x7f" + b"a" * 100 + b".",
    "a text of 2^60 bytes": b"\x8d" + struct.pack("<Q", 2**60) + b"a.",
    "bytes of 2^60 bytes": b"\x8e" + struct.pack("<Q", 2**60) + b"a.",
    "a number of 2^31 bytes": b"\x8b" + struct.pack("<i", 2**31 - 1) + b"\x01.",
    "a negative length": b"\x8b" + struct.pack("<i", -5) + b"\x01.",
    "a number of a million digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "a name without end": b"c" + b"a" * 1_000_000,
    "a memo of 2^32": b"K\x01r\xff\xff\xff\xffj\xff\xff\xff\xff.",
    "a memo of any number": b"K\x01p" + b"9" * 4000 + b"\n.",
    "instructions without end": b"K\x010" * 2_000_000 + b".",
    "nothing": b"",
    "only an end": b".",
    "a pop too many": b"0.",
    "another protocol": b"\x80\xffN.",
    "a text without quotes": b"S" + b"a" * 60_000 + b"\n.",
    "out-of-band buffers": b"\x97.",
}  # fmt: skip


@each_row("name", BOMBS)
def test_bombs_end_with_a_sentence(tmp_path: Path, name: str) -> None:
    assert outcome(archive(tmp_path / "a.pt", BOMBS[name]))
    (tmp_path / "b.pt").write_bytes(OLDER + BOMBS[name] + b"].")
    assert outcome(tmp_path / "b.pt")


TENSORS = {
    "more elements than its storage": ((5, 4), (4, 1), 0, "0", "FloatStorage"),
    "an offset beyond its storage": ((4,), (1,), 13, "0", "FloatStorage"),
    "a stride beyond its storage": ((2, 2), (16, 1), 0, "0", "FloatStorage"),
    "2^40 elements": ((2**40,), (1,), 0, "0", "FloatStorage"),
    "2^40 times 2^40, all the same": ((2**40, 2**40), (0, 0), 0, "0", "FloatStorage"),
    "more elements, all the same": ((17,), (0,), 0, "0", "FloatStorage"),
    "a negative size": ((-4,), (1,), 0, "0", "FloatStorage"),
    "a negative stride": ((4,), (-1,), 8, "0", "FloatStorage"),
    "a negative offset": ((4,), (1,), -1, "0", "FloatStorage"),
    "2^70": ((2**70,), (1,), 0, "0", "FloatStorage"),
    "another storage": ((4,), (1,), 0, "1", "FloatStorage"),
    "more strides than sizes": ((4,), (1, 1), 0, "0", "FloatStorage"),
    "eight bytes each": ((16,), (1,), 0, "0", "DoubleStorage"),
    "a kind that is not read": ((4,), (1,), 0, "0", "QInt8Storage"),
}


@each_row("name", TENSORS)
def test_tensors_that_are_not_in_their_storage(tmp_path: Path, name: str) -> None:
    said = outcome(archive(tmp_path / "a.pt", pickled_tensor(*TENSORS[name])))
    assert "the tensor w in" in said and "is damaged" in said and "Restore the file from a copy" in said
    assert outcome(archive(tmp_path / "b.pt", pickled_tensor((4, 4), (4, 1)))) == ""
    empty = open_weights(archive(tmp_path / "c.pt", pickled_tensor((0, 2**40), (2**40, 1)))).read()["w"]
    assert empty.shape == (0, 2**40)


def test_tensors_that_all_read_the_same_elements(tmp_path: Path) -> None:
    table = torch.ones(1000)
    file = tmp_path / "a.pt"
    torch.save({str(number): table for number in range(200)}, file)
    assert "would take more than 32 times as many" in outcome(file)


def test_archives_that_torch_does_not_write(tmp_path: Path) -> None:
    content = pickled_tensor((4,), (1,))
    squeezed = archive(tmp_path / "a.pt", content, {"0": bytes(10**6)}, compression=zipfile.ZIP_DEFLATED)
    assert "is compressed, as torch never writes it" in outcome(squeezed)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(tmp_path / "b.pt", "w") as twice:
        twice.writestr("a/data.pkl", content)
        twice.writestr("a/data.pkl", content)
    assert "two members called 'a/data.pkl'" in outcome(tmp_path / "b.pt")
    with zipfile.ZipFile(tmp_path / "c.pt", "w") as other:
        other.writestr("word/document.xml", "text")
    assert "its archive has no data.pkl" in outcome(tmp_path / "c.pt")
    whole = bytearray(archive(tmp_path / "d.pt", content).read_bytes())
    place = whole.rfind(b"PK\x01\x02")
    for at, value, said in (
        (42, 2**31, "should be at byte 2,147,483,648"),
        (42, 1, "is not where its list of members says"),
        (24, 2**31, "has 64 bytes, but 2,147,483,648 after unpacking"),
    ):
        damaged = bytearray(whole)
        struct.pack_into("<I", damaged, place + at, value)
        (tmp_path / "d.pt").write_bytes(damaged)
        assert said in outcome(tmp_path / "d.pt")
    damaged = bytearray(whole)
    struct.pack_into("<II", damaged, place + 20, 2**31, 2**31)
    (tmp_path / "d.pt").write_bytes(damaged)
    assert "overlaps another or the end" in outcome(tmp_path / "d.pt")
    module = torch.jit.script(torch.nn.Linear(2, 2))
    torch.jit.save(module, tmp_path / "e.pt")
    assert outcome(tmp_path / "e.pt")


def test_a_whole_module_is_named(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "a.pt")
    said = outcome(tmp_path / "a.pt")
    assert "holds an object of the class torch.nn.modules.linear.Linear. Save the network's state_dict" in said
    torch.save([1, 2], tmp_path / "a.pt")
    assert "holds no network" in outcome(tmp_path / "a.pt")
    torch.save({"epoch": 3, "config": {"a": 1}}, tmp_path / "a.pt")
    assert "no weights where a program puts them (its keys: epoch, config)" in outcome(tmp_path / "a.pt")


@pytest.mark.heavy
def test_a_header_of_terabytes_takes_no_memory(tmp_path: Path) -> None:
    """2^40 in each place of a file that says how much follows, under a limit on memory."""
    huge = struct.pack("<q", 2**40)
    older = io.BytesIO()
    torch.save({"w": torch.arange(16.0)}, older, _use_new_zipfile_serialization=False)
    data = older.getvalue()
    place = data.rfind(struct.pack("<q", 16))
    files = {
        "a.pt": data[:place] + huge + data[place + 8 :],
        "b.pt": b"PK\x03\x04"
        + b"PK\x06\x06"
        + huge * 6
        + b"PK\x06\x07"
        + bytes(4)
        + huge * 2
        + b"PK\x05\x06"
        + b"\xff" * 18,
        "c.pt": archive(tmp_path / "c", pickled_tensor((2**40, 2**40), (1, 1))).read_bytes(),
        "d.pt": archive(tmp_path / "d", b"\x8d" + huge).read_bytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    code = f"""
import resource, sys
from pathlib import Path
from bertwright.core.errors import ArtifactError
from bertwright.model.importers.members import open_weights
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
for name in {list(files)!r}:
    try:
        open_weights(Path({str(tmp_path)!r}) / name).stored
    except ArtifactError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    said = [line.removeprefix(f"{tmp_path}/") for line in done.stdout.splitlines()]
    assert [line[:5] for line in said] == ["a.pt ", "b.pt ", "the t", "d.pt "], said
    assert "should have 1,099,511,627,776 elements of 4 bytes" in said[0]
    assert "bytes missing: 1,099,511,627,776" in said[3]
