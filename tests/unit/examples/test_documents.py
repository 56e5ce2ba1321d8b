"""Documents are made, chosen and cut without losing a token or giving it to a neighbour."""

from itertools import pairwise

import numpy as np
from tests.rows import each_row

from bertwright.corpus.heldout import heldout_place, is_heldout, text_hash
from bertwright.examples.documents import cut_last_tenth, documents_of, subset
from bertwright.examples.store import Documents

Plain = list[list[list[int]]]


def documents(plain: Plain) -> Documents:
    """Documents of sentences of ids; their hashes are their numbers."""
    sentences = [sentence for document in plain for sentence in document]
    ids = np.array([token for sentence in sentences for token in sentence], np.uint16)
    return documents_of(
        ids, [len(d) for d in plain], np.array([len(s) for s in sentences], np.int64), range(len(plain))
    )


def plain(stored: Documents) -> Plain:
    """The other way round, sentence by sentence."""
    ends = np.cumsum(stored.sentences, dtype=int)
    sentences = [
        stored.tokens[end - n : end].tolist() for end, n in zip(ends, stored.sentences.astype(int), strict=True)
    ]
    return [sentences[a:b] for a, b in pairwise(stored.documents.astype(int))]


TEXTS: Plain = [[[1, 2], [3]], [[4]], [[5, 6, 7], [8], [9, 10]], [[11]]]


@each_row("kept", [[], [0], [3], [1, 2], [0, 3], [0, 1, 2, 3]])
def test_a_subset_has_its_documents_with_their_sentences_and_hashes(kept: list[int]) -> None:
    some = subset(documents(TEXTS), np.isin(np.arange(4), kept))
    assert plain(some) == [TEXTS[i] for i in kept] and some.hashes.tolist() == kept
    assert some.token_starts().tolist() == np.cumsum([0, *(sum(map(len, TEXTS[i])) for i in kept)]).tolist()


def test_a_subset_of_a_subset_starts_from_its_own_beginning() -> None:
    first = subset(documents(TEXTS), np.array([False, True, True, True]))
    assert plain(subset(first, np.array([False, True, True]))) == TEXTS[2:]


def test_a_document_without_a_token_takes_nothing_from_its_neighbours() -> None:
    assert plain(documents([[[1]], [[]], [], [[2], [], [3]], [[]]])) == [[[1]], [[2], [3]]]
    assert documents([]).documents.tolist() == [0]


@each_row(("sentences", "last"), [(2, 1), (9, 1), (10, 1), (19, 1), (20, 2), (105, 10)])
def test_the_last_tenth_is_at_least_a_sentence(sentences: int, last: int) -> None:
    whole = [[[10 * i + j for j in range(1 + i % 3)] for i in range(sentences)]]
    train, heldout = cut_last_tenth(documents(whole))
    assert plain(train) == [whole[0][:-last]] and plain(heldout) == [whole[0][-last:]]
    assert train.hashes.tolist() == heldout.hashes.tolist() == [0]


def test_text_hashes_ignore_sentence_boundaries() -> None:
    texts = [
        ["Az ő háza.", "语言很美。"],
        ["Az ő háza. 语言很美。"],
        ["语言很美。", "Az ő háza."],
        ["Az ő háza."],
        [],
        [""],
    ]
    hashes = {text_hash(text) for text in texts}
    assert len(hashes) == 5, "a text of no sentence is that of an empty one"
    assert text_hash(["a", "b"]) == text_hash(["a\nb"]), "a line is a sentence, so no sentence holds a line's end"
    assert all(0 <= number < 2**64 for number in hashes)


def test_the_share_of_held_out_documents_is_exclusive() -> None:
    hashes = np.array([text_hash([str(i)]) for i in range(50)], np.uint64)
    for place in heldout_place(hashes):
        assert is_heldout(hashes, float(np.nextafter(place, 1))).sum() == is_heldout(hashes, float(place)).sum() + 1
