from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from pydantic import ValidationError
from tests.reference import pairs
from tests.rows import each_row

from bertwright.core.rng import below, fold, key
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.documents import subset
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.store import Documents


def made(counts: list[int], longest: int = 40, seed: int = 0) -> Documents:
    """Documents with these numbers of sentences of 1 to `longest` tokens."""
    lengths = 1 + below(key(seed, "lengths"), np.arange(sum(counts)), longest)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    hashes = fold(key(seed, "hashes"), np.arange(len(counts)))
    return Documents(np.zeros(int(lengths.sum()), np.uint16), lengths.astype(np.uint16), firsts, hashes)


def lists(documents: Documents) -> list[pairs.Document]:
    bounds = documents.documents.astype(int)
    return [documents.sentences[a:b].astype(int).tolist() for a, b in pairwise(bounds)]


def expected_rows(
    documents: Documents, kept: np.ndarray, length: int, config: ExamplesConfig, number: int
) -> list[tuple[int, ...]]:
    chosen = [document for document, keep in zip(lists(documents), kept, strict=True) if keep]
    token = np.concatenate([[0], np.cumsum(documents.sentences, dtype=int)])
    first = documents.documents.astype(int)[:-1][kept]
    rows = []
    for d, text_hash in enumerate(documents.hashes[kept]):
        numbers = pairs.Hashed(int(fold(key(config.seed, "plan", number), text_hash)[0]))
        options = (config.short_seq_prob, config.random_next_prob, config.random_label)
        for pair in pairs.walk(chosen, d, length - 3, numbers, *options):
            (a, a_end), (b, b_end) = (
                token[first[d] + np.array(pair.a)],
                token[first[pair.b_document] + np.array(pair.b)],
            )
            rows.append((a, b, min(a_end - a, 65535), min(b_end - b, 65535), 0, int(pair.is_random)))
    return rows


@each_row("label", ["nvidia", "google"])
@each_row("counts", [[1], [3], [1, 1], [5, 1, 30, 2, 8, 1, 13], list(range(1, 40))])
def test_rows_are_those_of_the_plain_walk(counts: list[int], label: str) -> None:
    documents = made(counts)
    config = ExamplesConfig.model_validate({"random_label": label, "short_seq_prob": 0.3})
    everything = np.ones(len(counts), bool)
    for length in (8, 64, 128):
        plans = plan_passes(documents, everything, length, config, 3)
        for number, plan in enumerate(plans):
            assert plan.tolist() == expected_rows(documents, everything, length, config, number)


def test_a_subset_draws_only_from_itself() -> None:
    documents, config = made(list(range(1, 40))), ExamplesConfig(short_seq_prob=0.5)
    kept = np.arange(39) % 3 == 1
    (plan,) = plan_passes(documents, kept, 64, config, 1)
    assert plan.tolist() == expected_rows(documents, kept, 64, config, 0)
    tokens = np.repeat(np.repeat(kept, np.arange(1, 40)), documents.sentences)
    assert tokens[plan["a_start"]].all() and tokens[plan["b_start"]].all()


def test_no_documents_no_rows() -> None:
    assert [len(p) for p in plan_passes(made([3, 4]), np.zeros(2, bool), 64, ExamplesConfig(), 2)] == [0, 0]


def test_counts_are_capped() -> None:
    documents = Documents(
        np.zeros(0), np.full(3, 65_535, np.uint16), np.array([0, 3], np.uint64), np.array([7], np.uint64)
    )
    (plan,) = plan_passes(documents, np.ones(1, bool), 512, ExamplesConfig(random_next_prob=0.0), 1)
    assert plan["a_count"].max() == 65_535


def _kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The largest distance of two samples' distribution functions, and its limit at a level of 1e-4."""
    points = np.union1d(a, b)
    distance = np.abs(
        np.searchsorted(np.sort(a), points, "right") / len(a) - np.searchsorted(np.sort(b), points, "right") / len(b)
    ).max()
    return float(distance), 2.23 * np.sqrt((len(a) + len(b)) / (len(a) * len(b)))


def test_statistics_are_those_of_the_original_generator() -> None:
    counts = (1 + below(key("sizes"), np.arange(700), 20)).tolist()
    documents, config = made(counts), ExamplesConfig(short_seq_prob=0.2)
    ours = np.concatenate(plan_passes(documents, np.ones(700, bool), 128, config, 4))
    texts = lists(documents)
    theirs = []
    for number in range(700):
        for pair in pairs.walk(texts, number, 125, pairs.Generator(number), short_seq_prob=0.2):
            a_count, b_count = sum(texts[number][slice(*pair.a)]), sum(texts[pair.b_document][slice(*pair.b)])
            theirs += [(a_count, b_count, pair.is_random)]
    a, b, is_random = np.array(theirs).T
    share = is_random.mean()
    deviation = np.sqrt(share * (1 - share) * (1 / len(theirs) + 1 / len(ours)))
    assert share > 0.5
    assert abs(ours["label"].mean() - share) < 4 * deviation
    for mine, original in ((ours["a_count"], a), (ours["b_count"], b)):
        distance, limit = _kolmogorov_smirnov(mine.astype(int), original)
        assert distance < limit


def test_a_swapped_pair_is_the_chunk_the_other_way_round() -> None:
    """Sentence order: chunks are those of the walk without random pairs, one in two swapped, none labelled alone."""
    documents = made([1, 7, 30, 2, 1, 50] * 40)
    everything, in_order = np.ones(240, bool), ExamplesConfig(random_next_prob=0.0, short_seq_prob=0.2)
    (walked,) = plan_passes(documents, everything, 64, in_order.model_copy(update={"plan": "next-sentence"}), 1)
    (plan,) = plan_passes(documents, everything, 64, in_order.model_copy(update={"plan": "sentence-order"}), 1)
    alone = plan["b_count"] == 0
    assert alone.any() and not plan["label"][alone].any()
    swapped = plan["label"] == 1
    assert abs(swapped[~alone].mean() - 0.5) < 4 * 0.5 / np.sqrt((~alone).sum())
    chunks = {(int(r["a_start"]), int(r["a_count"]), int(r["b_count"])) for r in plan[~swapped & ~alone]}
    chunks |= {(int(r["b_start"]), int(r["b_count"]), int(r["a_count"])) for r in plan[swapped]}
    follows = walked[(walked["label"] == 0) & (walked["b_start"] == walked["a_start"] + walked["a_count"])]
    whole = {(int(r["a_start"]), int(r["a_count"]), int(r["b_count"])) for r in follows}
    assert chunks == whole


def full_rows(documents: Documents, stretches: list[list[int]], targets: Iterator[int]) -> list[tuple[int, int, int]]:
    """FULL-SENTENCES restated: (first token, tokens, documents that begin inside), sentence by sentence."""
    found = []
    texts, token = lists(documents), np.concatenate([[0], np.cumsum(documents.sentences, dtype=int)])
    bounds = documents.documents.astype(int)
    for stretch in stretches:
        at, stop = int(token[bounds[stretch[0]]]), int(token[bounds[stretch[-1] + 1]])
        ends = [(int(token[bounds[d] + s + 1]), s == 0) for d in stretch for s in range(len(texts[d]))]
        while at < stop:
            target, begin, breaks = next(targets), at, 0
            for end, opens in (e for e in ends if e[0] > begin):
                first = int(token[np.searchsorted(token, end) - 1])
                cost = int(opens and first > begin)
                if end - begin + breaks + cost > target:
                    if at == begin:  # not one whole sentence fits
                        at = min(end, begin + 62)
                    break
                at, breaks = end, breaks + cost
            found.append((begin, at - begin, breaks))
    return found


@each_row("left_out", [(), (3,), (0, 3, 4, 7), range(8)])
def test_full_sentences_skip_documents_outside_the_range(left_out: list[int]) -> None:
    documents, config = made([1, 7, 30, 2, 9, 1, 1, 5], longest=90), ExamplesConfig(plan="full-sentences")
    member = ~np.isin(np.arange(8), left_out)
    alone, begins = subset(documents, member), documents.token_starts()[:-1].astype(int)[member].tolist()
    bounds = alone.token_starts().astype(int)
    config = config.model_copy(update={"short_seq_prob": 0.0})
    for number, plan in enumerate(plan_passes(documents, member, 64, config, 3)):
        rows: list[tuple[int, int, int]] = []
        if len(alone.hashes):
            walk = fold(key(config.seed, "plan", number), alone.hashes[:1])
            first = 2 + int(below(walk, 1, 61)[0])
            rows = full_rows(alone, [list(range(len(alone.hashes)))], iter([first, *[62] * 10_000]))
        owners = [int(np.searchsorted(bounds, at, side="right")) - 1 for at, _, _ in rows]
        moved = [(begins[d] + at - int(bounds[d]), n, breaks) for d, (at, n, breaks) in zip(owners, rows, strict=True)]
        assert [tuple(map(int, row)) for row in plan[["a_start", "a_count", "breaks"]]] == moved
        assert (plan["a_count"].astype(int) + plan["breaks"] + 2 <= 64).all() and not plan["b_count"].any()


def test_segments_cover_every_token_once() -> None:
    documents = made([1, 7, 30, 2], longest=150)
    config = ExamplesConfig(plan="doc-sentences", short_seq_prob=0.3)
    for plan in plan_passes(documents, np.ones(4, bool), 64, config, 3):
        assert (plan["b_count"] == 0).all() and (plan["label"] == 0).all()
        assert plan["a_count"].min() >= 1 and plan["a_count"].max() <= 62
        ends = plan["a_start"].astype(int) + plan["a_count"]
        assert plan["a_start"][0] == 0 and ends[-1] == len(documents.tokens)
        assert (ends[:-1] == plan["a_start"][1:]).all()


def test_segments_hold_as_many_whole_sentences_as_fit() -> None:
    documents = Documents(
        np.zeros(0),
        np.array([20, 20, 20, 30, 100, 5], np.uint16),
        np.array([0, 4, 6], np.uint64),
        np.array([1, 2], np.uint64),
    )
    config = ExamplesConfig(plan="doc-sentences", short_seq_prob=0.0)
    (plan,) = plan_passes(documents, np.ones(2, bool), 64, config, 1)
    assert plan["a_count"].tolist() == [60, 30, 62, 43]  # 20+20+20 | 30 | 62 of 100 | the other 38, and 5


@each_row("setting", [{"random_next_prob": 0.3}, {"random_label": "google"}])
@each_row("plan", ["sentence-order", "doc-sentences", "full-sentences"])
def test_settings_of_random_pairs_are_refused_where_there_are_none(plan: str, setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=f"{next(iter(setting))} have an effect only with plan = next-sentence"):
        ExamplesConfig.model_validate({"plan": plan, **setting})
