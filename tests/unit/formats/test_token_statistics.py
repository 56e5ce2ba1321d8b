import numpy as np
from tests.rows import each_row
from tests.unit.formats.samples import MASK, UNK, VOCABULARY, token_documents
from tests.unit.formats.test_megatron import write_new

from bertwright.formats import token_statistics
from bertwright.formats.megatron.documents import write_documents
from bertwright.formats.statistics import statistics

DOCUMENTS = [[[9] * 8, [10] * 9], [[UNK, 11]], [], [[]], [[12] * 600, [13], [14]]]


def numbers_of(folder, **arguments):
    (found,) = statistics(folder, **arguments)["sets"]
    return found


@each_row("at_once", [1, 1 << 20])
def test_documents_sentences_and_tokens_are_counted(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(token_statistics, "_AT_ONCE", at_once)
    write_new(tmp_path / "a", DOCUMENTS, np.uint16, 8)
    assert numbers_of(tmp_path, vocabulary=VOCABULARY) == {
        "folder": str(tmp_path),
        "kind": "megatron",
        "holds": "documents",
        "files": 1,
        "documents": 5,
        "empty": 2,
        "single": 2,
        "sentences": 7,
        "tokens": 621,
        "lengths": {
            "up to 8": 5, "up to 16": 1, "up to 32": 0, "up to 64": 0, "up to 128": 0, "up to 256": 0, "up to 512": 0,
            "longer": 1,
        },
        "largest_id": 14,
        "unknown_rate": 1 / 621,
        "faults": [],
    }  # fmt: skip
    some = numbers_of(tmp_path, limit=2)
    assert (some["documents"], some["tokens"], some["unknown_rate"]) == (2, 19, None)


def test_faults_are_named(tmp_path):
    for number in range(2):
        write_documents(tmp_path / f"{number}.idx", [token_documents([[[20 + i] * 9] for i in range(9)])], 500)
    write_documents(tmp_path / "2.idx", [token_documents([[[600, 601, MASK], [MASK]]])], 700)
    write_new(tmp_path / "3", [[[5]], [[6, -7]], [[8]]], np.int32, 4)
    assert [fault.replace(str(tmp_path), "") for fault in numbers_of(tmp_path, vocabulary=VOCABULARY)["faults"]] == [
        "damaged: /3.bin: a document from 0 to 2 has a negative id. Make or fetch this file again, or skip it with "
        "the option quarantine.",
        "2 ids are outside the vocabulary of 500 entries (the largest is 601)",
        "90.0% of the documents occur in several files",
        "[MASK] occurs 2 times",
    ]
