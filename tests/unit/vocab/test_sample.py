import pytest
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.vocab.run import Sample, first_sentences

SHARDS = [made.text(300, seed=seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return made.corpus(tmp_path_factory.mktemp("sample") / "corpus", SHARDS)


def test_a_small_corpus_is_read_whole(corpus: Artifact) -> None:
    sample = Sample(corpus, 10**9, seed=1)
    assert list(sample.sentences()) == [s for shard in SHARDS for document in shard for s in document]
    assert sample.share == 1 and sample.documents == 900 and sample.bytes == corpus.counts["text_bytes"]


def test_of_a_large_one_whole_documents_are_drawn_from_every_shard(corpus: Artifact) -> None:
    wanted = corpus.counts["text_bytes"] // 5
    sample = Sample(corpus, wanted, seed=1)
    drawn = list(sample.sentences())
    assert sample.share == pytest.approx(0.2, rel=1e-4)
    assert 0.7 * wanted < sample.bytes < 1.3 * wanted
    texts = set(drawn)
    of_shard = [sum(set(document) <= texts for document in shard) for shard in SHARDS]
    assert all(30 < n < 95 for n in of_shard) and sum(of_shard) >= sample.documents
    assert len(drawn) == sum(len(d) for shard in SHARDS for d in shard if set(d) <= texts)


def test_the_number_of_sentences_bounds_it_too(corpus: Artifact) -> None:
    total = sum(len(document) for shard in SHARDS for document in shard)
    counted = Artifact(corpus.path, {**corpus.manifest, "counts": {**corpus.counts, "sentences": total}})
    sample = Sample(counted, 10**9, seed=1, max_sentences=total // 4)
    assert sample.share == pytest.approx(0.25, rel=1e-2)
    assert 0.8 * total / 4 < len(list(sample.sentences())) < 1.2 * total / 4


def test_the_seed_decides_and_nothing_else(corpus: Artifact) -> None:
    def drawn(seed: int) -> list[str]:
        return list(Sample(corpus, 20_000, seed).sentences())

    assert drawn(1) == drawn(1) != drawn(2)


def test_what_is_measured_comes_from_the_beginning_of_every_shard(corpus: Artifact) -> None:
    first = first_sentences(corpus, 3000)
    assert 3000 <= sum(map(len, first)) < 4000
    assert all(shard[0][0] in first for shard in SHARDS)
