import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import each_row
from tests.unit.formats.references import rows_of
from tests.unit.formats.samples import VOCABULARY, same, sample

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances, concatenate
from bertwright.formats import lddl, parquet_checks
from bertwright.formats.errors import ShardError
from bertwright.formats.format import Shape

STATIC, DYNAMIC = Shape(None, None, True), Shape(None, None, False)


def serialised(positions):
    """lddl/utils.py, serialize_np_array."""
    memory = io.BytesIO()
    np.save(memory, np.asarray(positions, dtype=np.uint16))
    return memory.getvalue()


def table(found, masks, binned=False):
    """The table that lddl/dask/bert/pretrain.py writes."""
    rows = []
    for row in rows_of(found):
        pieces = [VOCABULARY[i] for i in row["ids"]]
        second = row["segments"].index(1)
        one = {"A": " ".join(pieces[1 : second - 1]), "B": " ".join(pieces[second:-1])}
        one |= {"is_random_next": bool(row["next"]), "num_tokens": len(pieces)}
        if masks:
            labels = " ".join(VOCABULARY[i] for i in row["labels"])
            one |= {"masked_lm_positions": serialised(row["positions"]), "masked_lm_labels": labels}
        rows.append(one | ({"bin_id": len(pieces) // 8} if binned else {}))
    fields = [("A", pa.string()), ("B", pa.string()), ("is_random_next", pa.bool_()), ("num_tokens", pa.uint16())]
    fields += [("masked_lm_positions", pa.binary()), ("masked_lm_labels", pa.string())] if masks else []
    fields += [("bin_id", pa.int64())] if binned else []
    return pa.Table.from_pylist(rows, pa.schema(fields))


@each_row("masks", [True, False])
@each_row("binned", [True, False])
def test_files_of_lddl_are_read(tmp_path, masks, binned):
    found = sample(200, masks=masks)
    file = tmp_path / ("part.0.parquet_1" if binned else "part.0.parquet")
    pq.write_table(table(found, masks, binned), file, row_group_size=70)
    assert lddl.facts(file).examples == 200
    assert lddl.facts(file).shape.static == masks
    assert same(concatenate(list(lddl.read(file, VOCABULARY))), found)


@each_row("masks", [True, False])
def test_lddl_finds_what_it_would_have_written(tmp_path, masks):
    found = sample(200, masks=masks)
    file = tmp_path / "shard-0.parquet"
    parts = iter([found.take(slice(0, 30)), found.take(slice(30, None))])
    assert lddl.write(file, parts, STATIC if masks else DYNAMIC, VOCABULARY) == 200
    assert pq.read_table(file).equals(table(found, masks))


def test_a_vocabulary_is_needed_and_must_fit(tmp_path):
    pq.write_table(table(sample(5), True), tmp_path / "f")
    with pytest.raises(DataError, match="Give the vocabulary"):
        list(lddl.read(tmp_path / "f"))
    with pytest.raises(ShardError, match=r"no piece '(##)?w\d+'"):
        list(lddl.read(tmp_path / "f", VOCABULARY[:20]))


def test_what_lddl_cannot_hold_is_named(tmp_path):
    found = sample(5)
    for column, value, said in (
        ("next_sentence_labels", -1, "has no next-sentence label, but LDDL supports only pairs with a label"),
        ("second", found.lengths[3], r"is not \[CLS\] A \[SEP\] B \[SEP\]"),
    ):
        array = vars(found)[column].copy()
        array[3] = value
        with pytest.raises(DataError, match=f"example 3 {said}"):
            lddl.write(tmp_path / "f", iter([Instances(**(vars(found) | {column: array}))]), STATIC, VOCABULARY)
    blank = [entry.replace("w", "w ") for entry in VOCABULARY]
    with pytest.raises(DataError, match="contains a space"):
        lddl.write(tmp_path / "f", iter([found]), STATIC, blank)
    assert not list(tmp_path.iterdir())


class Payload:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was loaded')",)


@each_row("stored", ["pickle", "float", "short", "long", "text"])
def test_positions_are_only_16_bit_arrays(tmp_path, stored):
    memory = io.BytesIO()
    if stored == "pickle":
        np.save(memory, np.array([Payload()], object), allow_pickle=True)
    elif stored == "float":
        np.save(memory, np.ones(3))
    data = {"short": serialised([1, 2, 3])[:-1], "long": serialised([1, 2, 3]).replace(b"(3,)", b"(9,)"), "text": b"x"}
    found = table(sample(5), True)
    column = found.column("masked_lm_positions").to_pylist()
    column[2] = data.get(stored, memory.getvalue())
    pq.write_table(found.set_column(4, "masked_lm_positions", pa.array(column, pa.binary())), tmp_path / "f")
    with pytest.raises(ShardError, match="example 2: masked_lm_positions is not an array of uint16"):
        list(lddl.read(tmp_path / "f", VOCABULARY))


@each_row(
    ("column", "values", "fault"),
    [
        (3, pa.array([9] * 5, pa.uint16()), "not num_tokens"),
        (0, pa.array([None] * 5, pa.string()), "has no A"),
        (5, pa.array(["w5"] * 5, pa.string()), "the numbers of labels and positions differ"),
    ],
)
def test_rows_that_contradict_themselves_are_named(tmp_path, column, values, fault):
    found = table(sample(5), True)
    pq.write_table(found.set_column(column, found.schema.field(column), values), tmp_path / "f")
    with pytest.raises(ShardError, match=f"example 0.*{fault}"):
        list(lddl.read(tmp_path / "f", VOCABULARY))


def test_other_parquet_files_are_refused(tmp_path):
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "f")
    with pytest.raises(ShardError, match="lacks the columns A, B"):
        lddl.facts(tmp_path / "f")


PLAIN = {"A": ["w5 w7"], "B": ["w7"], "is_random_next": [True], "num_tokens": [6]}


@each_row(
    ("column", "values", "fault"),
    [
        ("A", [1], "A holds int64"),
        ("A", [["w5"]], "cannot be read"),
        ("B", pa.array([None]), "B holds null"),
        ("num_tokens", pa.array([2**64 - 1], pa.uint64()), "too many for the value of num_tokens"),
        ("num_tokens", [-6], "too many for the value of num_tokens"),
        ("num_tokens", [6.0], "num_tokens holds double"),
        ("masked_lm_labels", ["w5"], "lacks the columns masked_lm_positions"),
    ],
)
def test_columns_of_other_types_are_refused(tmp_path, column, values, fault):
    pq.write_table(pa.table(PLAIN), tmp_path / "f")
    assert sum(map(len, lddl.read(tmp_path / "f", VOCABULARY))) == 1
    pq.write_table(pa.table(PLAIN | {column: values}), tmp_path / "f")
    with pytest.raises(ShardError, match=fault):
        list(lddl.read(tmp_path / "f", VOCABULARY))


@each_row("column", ["A", "masked_lm_positions"])
def test_repeated_text_is_not_expanded(tmp_path, column):
    """A file of 20 kB that would take gigabytes."""
    text = "w5 " * 100_000 if column == "A" else b"x" * 300_000
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), pa.array([text]))
    table = {name: values * 4096 for name, values in PLAIN.items()}
    table |= {"masked_lm_positions": [b""] * 4096, "masked_lm_labels": [""] * 4096}
    pq.write_table(pa.table(table | {column: repeated}), tmp_path / "f", store_schema=False)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ShardError, match=f"example 0 has 300,000 bytes of {column}"):
        list(lddl.read(tmp_path / "f", VOCABULARY))
    assert (tmp_path / "f").stat().st_size < 50_000
    assert pa.default_memory_pool().max_memory() < max(before, 50 * 2**20) + 1


def test_long_examples_are_read_in_several_pieces(tmp_path):
    """Lists of pieces take memory by tokens, not by examples."""
    found = sample(200, length=4000, predictions=500)
    lddl.write(tmp_path / "f", iter([found]), Shape(None, None, static=True), VOCABULARY)
    blocks = list(lddl.read(tmp_path / "f", VOCABULARY))
    assert len(blocks) > 1 and same(concatenate(blocks), found)


def test_a_small_file_cannot_unfold_to_any_number_of_tokens(tmp_path, monkeypatch):
    """One text a million times takes 15 kB, and took minutes."""
    count = 1_000_000
    text = pa.array(["w5 w7 " * 20]).take(pa.array(np.zeros(count, int)))
    columns = {
        "A": text,
        "B": text,
        "is_random_next": np.zeros(count, bool),
        "num_tokens": np.full(count, 83, np.uint16),
    }
    pq.write_table(pa.table(columns), tmp_path / "f", compression="zstd")
    assert (tmp_path / "f").stat().st_size < 50_000
    monkeypatch.setattr(parquet_checks, "_FREE", 2**19)  # a sixteenth, for the test's sake
    with pytest.raises(
        ShardError, match=r"f: it decompresses to [\d,]+ (rows|tokens) from [\d,]+ bytes, more than any text"
    ):
        list(lddl.read(tmp_path / "f", VOCABULARY))
    monkeypatch.setattr(parquet_checks, "_FREE", 2**20)
    blocks = lddl.read(tmp_path / "f", VOCABULARY)
    with pytest.raises(ShardError, match="decompresses to .* tokens"):
        assert sum(map(len, blocks)) < 2**20 // 83
