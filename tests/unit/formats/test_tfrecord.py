import gzip
import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of
from tests.unit.formats.samples import VOCABULARY, same, sample

from bertwright.core.checksums import masked_crc
from bertwright.core.errors import DataError
from bertwright.examples.instances import concatenate
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Shape
from bertwright.formats.tfrecord import examples as tfrecord
from bertwright.formats.tfrecord.records import (
    decode_varints,
    encode_varints,
    frame,
    parse,
    read_records,
    unparse,
)

SHAPE = Shape(32, 5, static=True)


def features_of(row):
    """What create_pretraining_data.py stores for an example."""
    size, masks = len(row["ids"]), len(row["positions"])
    return {
        "input_ids": (row["ids"] + [0] * (32 - size), "int"),
        "input_mask": ([1] * size + [0] * (32 - size), "int"),
        "segment_ids": (row["segments"] + [0] * (32 - size), "int"),
        "masked_lm_positions": (row["positions"] + [0] * (5 - masks), "int"),
        "masked_lm_ids": (row["labels"] + [0] * (5 - masks), "int"),
        "masked_lm_weights": ([1.0] * masks + [0.0] * (5 - masks), "float"),
        "next_sentence_labels": ([row["next"]], "int"),
    }


def test_checksums_are_the_published_ones():
    """RFC 3720 B.4: CRC-32C of 32 zero bytes is 8a9136aa; masked as TensorFlow does."""
    crc = 0x8A9136AA
    assert masked_crc(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def test_integers_of_protocol_buffers():
    """The examples of the encoding guide (1 -> 01, 150 -> 96 01, -2 -> fe ff .. 01), and many random ones."""
    values = np.array([1, 150, -2, 0, 127, 128, 2**63 - 1, -(2**63)])
    data, sizes = encode_varints(values)
    assert data[:3].tobytes() == b"\x01\x96\x01"
    assert data[3:13].tobytes() == b"\xfe" + b"\xff" * 8 + b"\x01"
    assert sizes.tolist() == [1, 2, 10, 1, 1, 2, 9, 10]
    assert np.array_equal(decode_varints(data)[0], values)
    many = np.random.default_rng(0).integers(-(2**62), 2**62, 1000) >> np.random.default_rng(1).integers(0, 62, 1000)
    assert np.array_equal(decode_varints(encode_varints(many)[0])[0], many)
    for broken in (b"\x80", b"\x01\xff", b"\xff" * 10 + b"\x01"):
        with pytest.raises(ValueError, match="integer"):
            decode_varints(np.frombuffer(broken, np.uint8))


@each_row("suffix", ["", ".gz"])
def test_what_is_written_is_read(tmp_path, suffix):
    found = sample(1500)
    file = tmp_path / f"part{suffix}"
    assert tfrecord.write(file, iter([found.take(slice(0, 1100)), found.take(slice(1100, None))]), SHAPE) == 1500
    assert file.read_bytes().startswith(b"\x1f\x8b") == bool(suffix)
    assert tfrecord.facts(file).shape == SHAPE
    blocks = list(tfrecord.read(file, VOCABULARY))
    assert len(blocks) > 1
    assert same(concatenate(blocks), found)


def test_tfrecord_package_round_trip(tmp_path):
    package = pytest.importorskip("tfrecord", reason="the package tfrecord is an independent reader of this format")
    found = sample(50)
    tfrecord.write(tmp_path / "ours", iter([found]), SHAPE)
    kinds = {key: kind for key, (_, kind) in features_of(rows_of(found)[0]).items()}
    records = list(package.tfrecord_loader(str(tmp_path / "ours"), None, kinds))
    assert len(records) == 50
    for row, record in zip(rows_of(found), records, strict=True):
        for key, (values, _) in features_of(row).items():
            assert record[key].tolist() == values
    writer = package.TFRecordWriter(str(tmp_path / "theirs"))
    for row in rows_of(found):
        writer.write(features_of(row))
    writer.close()
    assert same(concatenate(list(tfrecord.read(tmp_path / "theirs", VOCABULARY))), found)


COPY = """
import json, sys
import tensorflow
ours, theirs, compression = sys.argv[1:]
with tensorflow.io.TFRecordWriter(theirs, options=compression) as writer:
    for record in tensorflow.data.TFRecordDataset(ours, compression_type=compression):
        example, copy, row = tensorflow.train.Example.FromString(record.numpy()), tensorflow.train.Example(), {}
        for key, feature in example.features.feature.items():
            kind = feature.WhichOneof("kind")
            row[key] = list(getattr(feature, kind).value)
            getattr(copy.features.feature[key], kind).value.extend(row[key])
        writer.write(copy.SerializeToString())
        print(json.dumps(row))
"""
"""In a process of its own: TensorFlow and the package tfrecord cannot be imported together."""


@pytest.mark.skipif(not find_spec("tensorflow"), reason="TensorFlow is not needed; where it is, it must agree")
@each_row(("suffix", "compression"), [("", ""), (".gz", "GZIP")])
def test_tensorflow_round_trip(tmp_path, suffix, compression):
    found, (ours, theirs) = sample(50), (tmp_path / f"{name}{suffix}" for name in ("ours", "theirs"))
    tfrecord.write(ours, iter([found]), SHAPE)
    lines = subprocess.check_output([sys.executable, "-c", COPY, ours, theirs, compression], text=True).splitlines()
    for row, line in zip(rows_of(found), lines, strict=True):
        assert json.loads(line) == {key: values for key, (values, _) in features_of(row).items()}
    assert same(concatenate(list(tfrecord.read(theirs, VOCABULARY))), found)


def test_unpacked_lists_and_unknown_fields_are_read():
    """Protocol Buffers allow each value as a field of its own, and any other field beside."""
    integers = b"".join(b"\x08" + bytes([value]) for value in (5, 6, 7))
    floats = b"".join(b"\x0d" + np.float32(value).tobytes() for value in (1, 0))
    entries = b""
    for name, number, message in ((b"a", 3, integers), (b"b", 2, floats)):
        feature = bytes([number << 3 | 2, len(message)]) + message
        entry = b"\x0a\x01" + name + b"\x12" + bytes([len(feature)]) + feature + b"\x18\x07"
        entries += b"\x0a" + bytes([len(entry)]) + entry
    found = parse(b"\x0a" + bytes([len(entries)]) + entries + b"\x11" + bytes(8))
    assert found == ({"a": b"\x05\x06\x07"}, {"b": np.array([1, 0], "<f4").tobytes()})
    assert parse(unparse({"a": (False, b"\x05\x06\x07"), "b": (True, found[1]["b"])})) == found


def stored(**changed):
    """A file of one record in which some features differ; None leaves one out."""
    features = {key: values for key, (values, _) in features_of(rows_of(sample(1))[0]).items()} | changed
    message = unparse(
        {
            key: (True, np.array(values, "<f4").tobytes())
            if key == "masked_lm_weights"
            else (False, encode_varints(np.array(values, np.int64))[0].tobytes())
            for key, values in features.items()
            if values is not None
        }
    )
    return frame(message)


@each_row(
    ("changed", "fault"),
    [
        ({"masked_lm_ids": None}, "lacks masked_lm_ids"),
        ({"masked_lm_ids": [5, 6]}, "masked_lm_ids has 2 values, not 5"),
        ({"masked_lm_weights": [0.5, 0, 0, 0, 0]}, "other than 0 and 1"),
        ({"masked_lm_weights": [0, 1, 0, 0, 0]}, "mask is not ones"),
        ({"input_ids": [2**40] * 32}, "32 bits"),
        ({"input_ids": [-4] * 32}, "negative"),
        ({"next_sentence_labels": [7]}, "next-sentence label"),
        ({"input_ids": []}, "at most 32,768"),
    ],
)
def test_invalid_records_are_named(tmp_path, changed, fault):
    (tmp_path / "part").write_bytes(stored(**changed))
    with pytest.raises(ShardError, match=fault) as error:
        list(tfrecord.read(tmp_path / "part"))
    assert "part: " in str(error.value)


def test_a_weight_of_0_is_padding(tmp_path):
    (tmp_path / "part").write_bytes(stored(masked_lm_weights=[1, 0, 0, 0, 0], masked_lm_positions=[4, 9, 3, 0, 0]))
    (found,) = tfrecord.read(tmp_path / "part")
    assert rows_of(found)[0]["positions"] == [4]


def test_large_records_are_refused_before_memory_is_taken(tmp_path):
    length = (2**50).to_bytes(8, "little")
    (tmp_path / "part").write_bytes(length + masked_crc(length).to_bytes(4, "little") + bytes(99))
    with pytest.raises(ShardError, match="1,125,899,906,842,624 bytes; at most"):
        list(read_records(tmp_path / "part"))


def test_every_cut_and_every_flipped_bit_is_noticed(tmp_path):
    """At a cut between records nothing can be noticed: the rest is a whole file."""
    whole = b"".join([stored(), stored()])
    file, record = tmp_path / "part", len(whole) // 2
    for cut in range(1, len(whole), 7):
        if cut != record:
            file.write_bytes(whole[:cut])
            with pytest.raises(ShardError, match="cut off"):
                list(read_records(file))
    for at in range(0, len(whole), 5):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(ShardError, match="checksum"):
            list(read_records(file))
    packed = gzip.compress(whole)
    for cut in range(20, len(packed), 13):
        file.write_bytes(packed[:cut])
        with pytest.raises(ShardError):
            list(read_records(file))


def test_a_shape_is_needed(tmp_path):
    with pytest.raises(DataError, match="needs a length"):
        tfrecord.write(tmp_path / "part", iter([]), Shape(None, None, static=True))
    with pytest.raises(DataError, match="the maximum is 3"):
        tfrecord.write(tmp_path / "part", iter([sample(9)]), Shape(32, 3, static=True))
    assert not list(tmp_path.iterdir())
