"""Retrieval and likeness of sentences: ranks, ties, BM25 and Spearman, each against a plain restatement."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.exams.conftest import Folder

from bertwright.core.errors import DataError
from bertwright.exams.retrieval import (
    Question,
    Retrieval,
    RetrievalItems,
    bm25_scores,
    make_items,
    read_items,
    score_retrieval,
    vector_ranks,
    word_ranks,
)
from bertwright.exams.similarity import Similarity, read_likeness, score_similarity, spearman
from bertwright.exams.suite import named_suite
from bertwright.exams.word_ranking import K1, B, bm25, words_of
from bertwright.model.text_encoder import Encoder

PASSAGES = tuple(f"passage {i} about word{i} and word{i // 2}, of the house" for i in range(12))


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """A vector with the counts of digits, and some noise so that no two texts are equally near."""
    noise = np.stack([np.random.default_rng(list(text.encode())).random(10) for text in texts])
    return (np.array([[text.count(c) for c in "0123456789"] for text in texts]) + noise / 100).astype(np.float32)


def test_a_rank_counts_what_is_at_least_as_near() -> None:
    items = RetrievalItems(tuple(Question(f"{i} {i % 3}", i, "") for i in range(12)), PASSAGES)
    found = vector_ranks(items, encode)
    unit = [np.array(v, np.float64) / np.linalg.norm(v) for v in encode(PASSAGES)]
    for number, question in enumerate(items.questions):
        cosines = [float(encode([question.query])[0] @ each) for each in unit]
        assert found[number] == sum(cosine >= cosines[question.right] for cosine in cosines)


def test_equal_vectors_are_all_wrong() -> None:
    items = RetrievalItems((Question("a", 3, ""),), PASSAGES)
    assert vector_ranks(items, lambda texts: np.ones((len(texts), 4), np.float32)).tolist() == [12]
    assert vector_ranks(items, lambda texts: np.full((len(texts), 4), np.nan, np.float32)).tolist() == [12]


def test_the_query_itself_and_its_other_passages_are_no_wrong_answers() -> None:
    query = "a sentence of more than twenty-four characters"
    passages = (query, f"And {query}, too.", "the right one", "another right one", query.upper())
    items = RetrievalItems((Question(query, 2, ""), Question(query, 3, "")), passages)

    def same(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), np.float32)

    # Only the one in upper case is a wrong answer.
    assert vector_ranks(items, same).tolist() == [2, 2]


def test_bm25_is_that_of_the_formula() -> None:
    pytest.importorskip("bm25s")
    passages = ["a cat and a cat", "the dog ran", "a dog and a long, long tale of a cat", "nothing"]
    tokens = [Counter(words_of(passage)) for passage in passages]
    mean = sum(map(sum, (each.values() for each in tokens))) / len(tokens)
    queries = ("cat dog", "long cat cat", "unknown")
    for query, found in zip(queries, bm25(queries, passages), strict=True):
        for counts, score in zip(tokens, found, strict=True):
            expected = 0.0
            for word in words_of(query):
                having = sum(word in each for each in tokens)
                if not having:
                    continue
                idf = math.log(1 + (len(tokens) - having + 0.5) / (having + 0.5))
                length = sum(counts.values())
                expected += idf * counts[word] / (counts[word] + K1 * (1 - B + B * length / mean))
            assert score == pytest.approx(expected, abs=1e-5)


def test_words_of_any_script() -> None:
    assert words_of("Az Árvíztűrő 3 tükörfúrógépe!") == ["az", "árvíztűrő", "3", "tükörfúrógépe"]
    assert words_of("東京都は日本") == ["東京", "京都", "都は", "は日", "日本"]
    assert words_of("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert words_of("... !") == []


def test_scores_have_bm25_beside_them(tmp_path: Path, folder: Folder) -> None:
    pytest.importorskip("bm25s")
    rows = [
        {"anchor": f"word{i} word{i // 2}", "positive": PASSAGES[i], "kind": "ab"[i % 2], "negatives": [f"no {i}"]}
        for i in range(12)
    ] * 2
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = read_items(file)
    assert len(items.passages) == 24
    assert len(items.questions) == 24
    scores = {score.name: score for score in Retrieval(data=file).take(Encoder(folder("bert")))}
    assert list(scores) == ["recall@1", "recall@10", "MRR", "MRR a", "MRR b"]
    ranks = word_ranks(items)
    expected = f"recall@1 {100 * (ranks == 1).mean():.1f}, recall@10 {100 * (ranks <= 10).mean():.1f}"
    assert scores["MRR"].healthy.startswith(f"BM25 on the same 24 passages has {expected}, MRR ")
    assert scores["recall@10"].chance == 10 / 24
    assert scores["MRR"].chance == pytest.approx(sum(1 / rank for rank in range(1, 25)) / 24)
    assert {each.name: each.value for each in bm25_scores(items, "")}["MRR"] == pytest.approx((1 / ranks).mean())


def test_long_exams_are_cut_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.exams.retrieval.QUERIES", 20)
    found = make_items((f"query {i}", f"text {i}", (), "rare" if i % 10 == 0 else "often") for i in range(200))
    assert Counter(question.kind for question in found.questions) == {"rare": 2, "often": 18}
    assert len(found.passages) == 200
    assert all(found.passages[each.right] == each.query.replace("query", "text") for each in found.questions)


def test_files_without_pairs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": "b"}\n')
    with pytest.raises(
        DataError, match=r"has the columns 'text', 'label', none of which is known to be that of the anchor"
    ):
        read_items(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text('{"query": "a", "passage": null}\n')
    with pytest.raises(DataError, match=r"line 1 has no text in query and passage"):
        read_items(tmp_path / "b.jsonl")
    with pytest.raises(DataError, match=r"there are 1 pairs, too few"):
        make_items([("a", "b", (), "")])


def test_spearman_is_scipys() -> None:
    spearmanr = pytest.importorskip("scipy.stats").spearmanr
    random = np.random.default_rng(3)
    first, second = random.integers(0, 9, size=(2, 5, 40)).astype(np.float64)
    expected = [spearmanr(a, b).statistic for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(spearman(first, second), expected, atol=1e-12)
    assert spearman(np.ones((1, 4)), np.arange(4.0)[None]).tolist() == [0.0]


def test_likeness_is_scored_by_the_order_of_cosines(tmp_path: Path) -> None:
    file = tmp_path / "dev.tsv"
    rows = [("0", "0", 5.0), ("01", "02", 2.5), ("0", "1", 0.0), ("012", "013", 3.0)]
    file.write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{c}\n" for a, b, c in rows))
    (score,) = score_similarity(read_likeness(file), encode, "sts")
    assert score.value == pytest.approx(1.0)
    (exam,) = named_suite("sts", tmp_path, file)
    assert exam == Similarity(data=file)


def test_files_without_scores_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("sentence1\tsentence2\tscore\na\tb\thigh\n")
    with pytest.raises(DataError, match=r"line 2 has no two sentences with a score.*the last one a number"):
        read_likeness(tmp_path / "a.tsv")
    (tmp_path / "b.tsv").write_text("sentence1\tsentence2\tscore\n" + "a\tb\t1\n" * 5)
    with pytest.raises(DataError, match=r"one score for all"):
        read_likeness(tmp_path / "b.tsv")


def test_retrieval_takes_functions(folder: Folder) -> None:
    items = make_items((f"query {i}", f"text {i}", (), "") for i in range(20))
    assert [score.name for score in score_retrieval(items, encode, "r")] == [
        "recall@1",
        "recall@10",
        "MRR",
    ]


def test_prompts_are_read_before_queries_and_passages() -> None:
    items, read = make_items((f"query {i}", f"text {i}", (), "") for i in range(20)), list[str]()

    def encode_and_record(texts: Sequence[str]) -> NDArray[np.float32]:
        read.extend(texts)
        return np.eye(20, dtype=np.float32)[[int(text.split()[-1]) for text in texts]]

    prompts = {"query": "search: ", "document": "passage: "}
    scores = list(score_retrieval(items, encode_and_record, "r", prompts=prompts))
    assert sorted(read) == sorted(f"{word} {i}" for word in ("search: query", "passage: text") for i in range(20))
    assert scores[0].value == 1
