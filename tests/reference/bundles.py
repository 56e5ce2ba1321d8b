"""Makes TensorFlow checkpoints, damaged ones too, from the description of the format."""

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from torch import Tensor

from bertwright.core.checksums import masked_crc
from bertwright.model.importers.leveldb_table import MAGIC


def varint(number: int) -> bytes:
    number %= 2**64
    head = bytearray()
    while number >= 0x80:
        head.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*head, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(*sizes: int) -> bytes:
    return b"".join(field(2, field(1, size)) for size in sizes)


def variable(
    sizes: tuple[int, ...], size: int | None = None, offset: int = 0, shard: int = 0, dtype: int = 1, more: bytes = b""
) -> bytes:
    """A BundleEntryProto, by default of float32 at the beginning of the file."""
    found = field(1, dtype) + field(2, shape(*sizes)) + field(3, shard) + field(4, offset)
    return found + field(5, 4 * math.prod(sizes) if size is None else size) + more


def sliced(sizes: tuple[int, ...], *parts: tuple[int, int]) -> bytes:
    """The entry of a variable of slices along its first dimension, each given as its start and its length."""
    rest = field(1, b"") * (len(sizes) - 1)
    slices = (field(7, field(1, field(1, start) + field(2, length)) + rest) for start, length in parts)
    return field(1, 1) + field(2, shape(*sizes)) + b"".join(slices)


def block(entries: Iterable[tuple[bytes, bytes]], restarts: bytes = struct.pack("<II", 0, 1)) -> bytes:
    """A block without shared prefixes."""
    return b"".join(b"\0" + varint(len(k)) + varint(len(v)) + k + v for k, v in entries) + restarts


def table(blocks: list[bytes], index: Callable[[list[tuple[int, int]]], bytes] | None = None, kind: int = 0) -> bytes:
    """A table of LevelDB with valid checksums."""
    data, places = b"", list[tuple[int, int]]()

    def add(content: bytes) -> tuple[int, int]:
        nonlocal data
        place = (len(data), len(content))
        data += content + bytes([kind]) + struct.pack("<I", masked_crc(content + bytes([kind])))
        return place

    places = [add(each) for each in blocks]
    made = index or (lambda places: block((b"\xff%d" % n, place(*each)) for n, each in enumerate(places)))
    footer = place(*add(block([]))) + place(*add(made(places)))
    return data + footer.ljust(40, b"\0") + MAGIC


def place(start: int, size: int) -> bytes:
    return varint(start) + varint(size)


def bundle(entries: dict[str, bytes], header: bytes = field(1, 1), more: dict[bytes, bytes] | None = None) -> bytes:
    rows = {name.encode(): entry for name, entry in entries.items()} | (more or {})
    return table([block([(b"", header), *sorted(rows.items())])])


def checked(data: int | bytes) -> bytes:
    """The checksum of bytes, or of so many zeros, as a field."""
    return varint(6 << 3 | 5) + struct.pack("<I", masked_crc(bytes(data)))


def write_google(folder: Path, config: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Path:
    """Write a pre-trained BERT, with the names of transformers, as Google's program does; returns its prefix."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix, entries, data = folder / "bert_model.ckpt", dict[str, bytes](), b""
    for name, tensor in tensors.items():
        module, _, parameter = name.replace("encoder.layer.", "encoder.layer_").rpartition(".")
        kind = {"weight": "kernel"}.get(parameter, parameter)
        if module.endswith("LayerNorm"):
            kind = {"weight": "gamma", "bias": "beta"}[parameter]
        if module in ("cls.predictions", "cls.seq_relationship"):
            kind = {"weight": "output_weights", "bias": "output_bias"}[parameter]
        is_table = "_embeddings" in module
        own = tensor.T.contiguous() if kind == "kernel" and not is_table else tensor
        key, stored = (module if is_table else f"{module}.{kind}").replace(".", "/"), own.numpy().tobytes()
        entries[key] = variable(tuple(own.shape), offset=len(data), more=checked(stored))
        data += stored
    prefix.with_name(f"{prefix.name}.index").write_bytes(bundle(entries))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
    (folder / "bert_config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "model_type"}))
    return prefix
