import tracemalloc
from dataclasses import replace

import numpy as np
from tests.reference import masking as reference_masking
from tests.reference import pairs as reference_pairs
from tests.reference.batch_types import TYPES, types
from tests.rows import each_row

from bertwright.core.rng import below, fold, key
from bertwright.examples.batch import batch_hash, split
from bertwright.examples.config import MaskingConfig
from bertwright.examples.masking import Masking
from bertwright.examples.planned import Rows, collate
from bertwright.examples.store import Store
from bertwright.examples.vocabulary import Vocabulary

VOCABULARY = Vocabulary(hash="", size=5000, pad=0, unk=1, cls=2, sep=3, mask=4, unused=(5, 6), continues=())
MASKING = Masking(MaskingConfig(), 0.15, 20, VOCABULARY)


def store(tokens: int = 4000, starts: tuple[int, ...] = (0,)) -> Store:
    empty = np.zeros(0, np.uint64)
    ids = np.arange(7, 7 + tokens, dtype=np.uint16)
    return Store(
        ids, np.zeros(0, np.uint16), empty, empty, np.array(starts, np.uint64), np.array([0, tokens]), VOCABULARY
    )


def rows(a: list[int], b: list[int], tokens: int = 4000) -> Rows:
    n = len(a)
    a_count, b_count = np.array(a), np.array(b)
    place = below(key("places"), np.arange(n), tokens - 700)
    other = below(key("places"), np.arange(n, 2 * n), tokens - 700)
    return Rows(fold(key("rows"), np.arange(n)), place, a_count, other, b_count, np.zeros(n, int), np.arange(n) % 2)


def plain(rows: Rows, number: int, longest: int, ids: np.ndarray) -> tuple[list[int], list[int], list[int], list[int]]:
    """(tokens, positions, labels, segments) of one row by the plain rules."""
    a, b = (ids[start : start + count].tolist() for start, count in (
        (rows.a_start[number], rows.a_count[number]), (rows.b_start[number], rows.b_count[number])))  # fmt: skip
    row_key = int(rows.key[number])
    a, b = reference_pairs.truncate(
        a, b, longest - (3 if b else 2), lambda side, j: reference_masking.front(row_key, side, j)
    )
    tokens = [2, *a, 3, *b, 3] if b else [2, *a, 3]
    segments = [0] * (len(a) + 2) + [1] * (len(tokens) - len(a) - 2)
    m = reference_masking.mask(tokens, len(a), row_key, 0.15, 20, 4, VOCABULARY.words.tolist())
    return m.tokens, m.positions, m.labels, segments


A = [1, 1, 60, 60, 61, 62, 63, 300, 2, 500, 0 + 61, 400, 33]
B = [1, 300, 1, 65, 64, 64, 63, 2, 290, 600, 64, 61, 34]


@each_row("longest", [128, 127, 9])
def test_sequences_are_those_of_the_plain_rules(longest: int) -> None:
    chosen, ids = rows(A, B), store()
    for one, batch in enumerate(split(collate(chosen, longest, ids, MASKING), [np.array([1])] * len(A))):
        tokens, positions, labels, segments = plain(chosen, one, longest, ids.tokens)
        assert batch.token_ids.tolist() == tokens
        assert batch.prediction_positions.tolist() == positions
        assert batch.labels.tolist() == labels
        assert batch.segment_ids.tolist() == segments
        assert batch.position_ids.tolist() == list(range(len(tokens)))
        assert batch.cu_seqlens.tolist() == [0, len(tokens)] and len(tokens) <= longest
        assert batch.sequence_labels.tolist() == [one % 2] and batch.sequence_weights.tolist() == [1.0]
        assert batch.weights.tolist() == [1.0] * len(positions)


def test_single_segments_have_one_separator_and_no_pair() -> None:
    chosen = rows([5, 20, 62], [0, 0, 0])
    for one, batch in enumerate(split(collate(chosen, 64, store(), MASKING), [np.array([1])] * 3)):
        tokens, positions, labels, segments = plain(chosen, one, 64, store().tokens)
        assert (batch.token_ids.tolist(), batch.prediction_positions.tolist()) == (tokens, positions)
        assert (batch.labels.tolist(), batch.segment_ids.tolist()) == (labels, segments)
        assert batch.sequence_weights.tolist() == [0.0]


def test_the_first_and_last_tokens_of_the_store_are_reached() -> None:
    ids = store(40)
    edge = Rows(*(np.array(column) for column in ([np.uint64(1)], [0], [10], [30], [10], [0], [0])))
    batch = collate(edge, 64, ids, Masking(MaskingConfig(), 0.01, 1, VOCABULARY))
    original = batch.token_ids.copy()
    original[batch.prediction_positions] = batch.labels
    assert original.tolist() == [2, *range(7, 17), 3, *range(37, 47), 3]


def test_documents_inside_a_segment_follow_a_separator() -> None:
    starts = (0, 10, 20, 21, 50)
    columns = ([1, 2, 3, 4], [3, 10, 18, 49], [7, 10, 12, 3], [0, 0, 0, 30], [0, 0, 0, 4], [0, 0, 2, 1], [0] * 4)
    across = Rows(*(np.array(column) for column in columns))
    batch = collate(across, 64, store(60, (*starts, 60)), Masking(MaskingConfig(), 0.1, 1, VOCABULARY))
    original = batch.token_ids.copy()
    original[batch.prediction_positions] = batch.labels
    pieces = [(range(3, 10),), (range(10, 20),), (range(18, 20), range(20, 21), range(21, 30))]
    pieces.append((range(49, 50), range(50, 52), range(30, 34)))
    sequences = [[2, *(token for piece in parts for token in [*(i + 7 for i in piece), 3])] for parts in pieces]
    assert original.tolist() == [token for sequence in sequences for token in sequence]
    assert np.diff(batch.cu_seqlens).tolist() == list(map(len, sequences)) == across.lengths(64).tolist()
    assert batch.segment_ids.tolist() == [0] * (len(original) - 5) + [1] * 5
    assert not np.isin(batch.labels, [2, 3]).any()


def test_a_segment_goes_on_in_the_next_document_that_the_plans_are_of() -> None:
    ids = replace(store(60, (0, 10, 20, 21, 50, 60)), members=np.array([0, 2, 4]))
    columns = ([1, 2, 3], [3, 8, 0], [8, 5, 21], [0] * 3, [0] * 3, [1, 2, 2], [0] * 3)
    across = Rows(*(np.array(column) for column in columns))
    batch = collate(across, 64, ids, Masking(MaskingConfig(), 0.1, 1, VOCABULARY))
    original = batch.token_ids.copy()
    original[batch.prediction_positions] = batch.labels
    pieces = [(range(3, 10), range(20, 21)), (range(8, 10), range(20, 21), range(50, 52))]
    pieces.append((range(10), range(20, 21), range(50, 60)))
    sequences = [[2, *(token for piece in parts for token in [*(i + 7 for i in piece), 3])] for parts in pieces]
    assert original.tolist() == [token for sequence in sequences for token in sequence]


def test_looking_for_documents_does_not_copy_where_they_begin() -> None:
    """A search for signed numbers among unsigned ones makes floats of them all: of a file that may exceed memory."""
    many = store(4000, tuple(range(4000)) + (4000,) * 200_000)
    chosen = Rows(*(np.array(column) for column in ([np.uint64(1)], [10], [5], [0], [0], [4], [0])))
    tracemalloc.start()
    collate(chosen, 64, many, MASKING)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < many.starts.nbytes / 2


def test_types_are_what_torch_takes_as_they_are() -> None:
    batch = collate(rows(A, B), 128, store(), MASKING)
    assert types(batch) == TYPES


def test_cutting_and_joining_agree() -> None:
    chosen = rows(A, B)
    parts = split(collate(chosen, 128, store(), MASKING), [np.ones(n, int) for n in (4, 0, 5, 4)])
    assert [part.counts.sequences for part in parts] == [4, 0, 5, 4]
    assert batch_hash(parts[2]) == batch_hash(collate(chosen[slice(4, 9)], 128, store(), MASKING))
    assert parts[1].counts == (0, 0, 0) and parts[1].cu_seqlens.tolist() == [0]


def test_replacements_leave_out_special_and_unused_entries() -> None:
    assert VOCABULARY.words.tolist() == list(range(7, 5000))
