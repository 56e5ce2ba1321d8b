from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.unit.examples import made

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.rng import fold
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.corpus.text import read_documents, shard_names
from bertwright.examples.documents import documents_of, in_range
from bertwright.examples.store import Store, token_dtype
from bertwright.vocab.tokenizer import load_tokenizer

HASHES = fold(77, np.arange(20_000))


def test_the_store_holds_the_text(examples: Artifact) -> None:
    base = examples.path.parent
    source, tokenizer = open_artifact(base / "corpus"), load_tokenizer(base / "vocab")
    texts = [document for name in shard_names(source) for document in read_documents(source, name)]
    stores = {split: Store.open(examples, split) for split in ("train", "heldout")}
    read: dict[str, list[list[list[int]]]] = {}
    for split, store in stores.items():
        ends = np.cumsum(store.sentences, dtype=int)
        sentences = [
            store.tokens[end - n : end].tolist() for end, n in zip(ends, store.sentences.astype(int), strict=True)
        ]
        bounds = store.documents.astype(int)
        read[split] = [sentences[a:b] for a, b in pairwise(bounds)]
    heldout = is_heldout(np.array([text_hash(text) for text in texts], np.uint64), 0.1)
    for split, member in (("train", ~heldout), ("heldout", heldout)):
        wanted = [text for text, take in zip(texts, member, strict=True) if take]
        assert read[split] == [[tokenizer.encode_sentences([s])[0].tolist() for s in text] for text in wanted]
        assert stores[split].hashes.tolist() == [text_hash(text) for text in wanted]
        sizes = [sum(map(len, document)) for document in read[split]]
        assert stores[split].starts.tolist() == [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    assert 0 < heldout.sum() < 30


def test_a_token_takes_about_two_bytes() -> None:
    """At the sentence and document lengths of real Wikipedia text (22 tokens, 500 tokens)."""
    documents, sentences = 100, 100 * 23
    store = documents_of(
        np.zeros(sentences * 22, np.uint16), [23] * documents, np.full(sentences, 22), range(documents)
    )
    size = sum(array.nbytes for array in vars(store).values())
    assert size / len(store.tokens) <= 2.15


def test_large_vocabularies_take_four_bytes() -> None:
    assert [token_dtype(n) for n in (30_000, 65_536, 65_537)] == ["<u2", "<u2", "<u4"]


def test_empty_texts_are_dropped_and_long_sentences_split() -> None:
    store = documents_of(np.zeros(70_012), [2, 1, 0, 2], np.array([0, 5, 0, 70_000, 7]), [11, 12, 13, 14])
    assert store.sentences.tolist() == [5, 65_535, 70_000 - 65_535, 7]
    assert store.documents.tolist() == [0, 1, 4]
    assert store.hashes.tolist() == [11, 14]


def test_a_sentence_of_exactly_the_limit_stays_whole() -> None:
    assert documents_of(np.zeros(2 * 65_535), [1], np.array([2 * 65_535]), [1]).sentences.tolist() == [65_535, 65_535]


def test_disjoint_shares_share_no_document() -> None:
    shares = [in_range(HASHES, share) for share in ((0.0, 0.9), (0.9, 1.0))]
    assert not (shares[0] & shares[1]).any() and (shares[0] | shares[1]).all()
    assert abs(shares[1].mean() - 0.1) < 0.01


def test_held_out_is_independent_of_the_share() -> None:
    heldout = is_heldout(HASHES, 0.1)
    assert abs(heldout.mean() - 0.1) < 0.01
    assert abs(heldout[in_range(HASHES, (0.0, 0.1))].mean() - 0.1) < 0.03


def test_held_out_depends_on_the_text_alone() -> None:
    shuffled = HASHES[::-1]
    assert (is_heldout(HASHES, 0.1) == is_heldout(shuffled, 0.1)[::-1]).all()
    assert not (is_heldout(HASHES, 0.05) & ~is_heldout(HASHES, 0.1)).any(), "a larger share keeps the smaller one's"


def test_another_vocabulary_is_refused(examples: Artifact, tmp_path: Path) -> None:
    base = examples.path.parent
    Store.open(examples, vocab=open_artifact(base / "vocab"))
    other = made.vocabulary(tmp_path / "vocab", open_artifact(base / "corpus"), size=250)
    with pytest.raises(ArtifactError, match="another vocabulary"):
        Store.open(examples, vocab=other)
