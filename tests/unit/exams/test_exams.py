"""What exams say: of probes as scikit-learn does, of pairs with ties, of vectors, of the words of a wiki."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef, roc_auc_score
from sklearn.preprocessing import StandardScaler
from tests.rows import each_row
from tests.unit.exams.conftest import ENTRIES, Folder

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.log import SILENT
from bertwright.exams.acceptability import Acceptability, areas, best_matthews, read_sentences
from bertwright.exams.interval import interval_of_mean, interval_of_mean_difference
from bertwright.exams.minimal_pairs import MinimalPairs, Pair, read_pairs, score_pairs
from bertwright.exams.probe import probe
from bertwright.exams.pseudo_likelihood import pseudo_likelihoods
from bertwright.exams.suite import Suite, score_models, take, untrained
from bertwright.exams.vectors import Neighbours, Vectors, deviation, mean_cosine, neighbours
from bertwright.model.text_encoder import Encoder


def test_probes_answer_as_those_of_scikit_learn() -> None:
    random = np.random.default_rng(5)
    labels = random.integers(4, size=300)
    features = (random.normal(size=(300, 12)) * 3 + labels[:, None] * random.normal(size=12)).astype(np.float32)
    found = probe((features[:200], labels[:200]), features[200:], 4)
    scaler = StandardScaler().fit(features[:200])
    their = LogisticRegression(C=1.0, max_iter=2_000, tol=1e-8).fit(scaler.transform(features[:200]), labels[:200])
    assert (found == their.predict(scaler.transform(features[200:]))).mean() >= 0.99


def test_a_probe_ignores_features_that_never_change() -> None:
    features = np.zeros((20, 3), np.float32)
    features[:, 0] = np.arange(20) % 2
    assert (probe((features, np.arange(20) % 2), features, 2) == np.arange(20) % 2).all()


def test_intervals_cover_the_standard_error() -> None:
    items = (np.arange(400) % 4 == 0).astype(np.float64)
    value, low, high = interval_of_mean(items)
    assert value == 0.25
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(0.25 * 0.75 / 400), rel=0.1)
    assert interval_of_mean(items) == (value, low, high)


@each_row(
    "text, pairs",
    [
        (
            "UID\tfield\tsentence_good\tsentence_bad\nx\tsyntax\tA cat.\tA cats.\n",
            [Pair("A cat.", "A cats.", "syntax")],
        ),
        ("phenomenon\tsen\twrong_sen\nSV-#\tgut\tguts\n", [Pair("gut", "guts", "SV-#")]),
    ],
)
def test_pairs_of_published_columns_are_read(text: str, pairs: list[Pair], tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(text)
    assert read_pairs(tmp_path / "pairs.tsv") == pairs


def test_files_without_pairs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(DataError, match="needed are sentence_good and sentence_bad"):
        read_pairs(tmp_path / "pairs.tsv")


def test_pairs_of_a_kind_are_spread_evenly(tmp_path: Path) -> None:
    rows = [f"{kind}\t{kind} {i}\tbad\n" for kind in ("a", "b") for i in range(10)]
    (tmp_path / "pairs.tsv").write_text("field\tsentence_good\tsentence_bad\n" + "".join(rows))
    assert [pair.good for pair in read_pairs(tmp_path / "pairs.tsv", 2)] == ["a 0", "a 5", "b 0", "b 5"]


def test_a_tie_is_wrong(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    pairs = [Pair("the cat sat", "the cat sat", "same"), Pair("a dog ran", "a dog ran", "same")]
    (score,) = score_pairs(encoder, pairs, "pairs")
    assert (score.value, score.chance) == (0.0, 0.5)


def test_the_more_probable_sentence_wins(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    texts = ["the cat sat on a mat", "house house house", "a dog ran", "mat the the on ."]
    sums = pseudo_likelihoods(encoder, texts).sums
    pairs = [Pair(texts[i], texts[j], f"{i}{j}") for i in range(4) for j in range(4) if i != j]
    scores = {score.name: score.value for score in score_pairs(encoder, pairs, "pairs")}
    assert all(scores[f"{i}{j}"] == (sums[i] > sums[j]) for i in range(4) for j in range(4) if i != j)
    assert scores["all"] == 0.5


def test_areas_and_correlations_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    for ties in (1, 0.25):
        labels = random.integers(2, size=120).astype(float)
        scores = np.round((random.normal(size=120) + labels) / ties) * ties
        items = np.stack([scores, labels], axis=1)
        assert areas(items[None])[0] == pytest.approx(roc_auc_score(labels, scores))
        best = max(matthews_corrcoef(labels, scores >= threshold) for threshold in set(scores))
        assert best_matthews(items) == pytest.approx(best)
    assert best_matthews(np.array([[1.0, 1.0], [1.0, 0.0]])) == 0


@each_row(
    "name, text, found",
    [
        ("cola.tsv", "gj04\t1\t\tthe cat sat\nbc01\t0\t*\tcat the\n", [("the cat sat", 1), ("cat the", 0)]),
        ("own.tsv", "sentence\tlabel\nthe cat\t1\nhouse cat\t0\n", [("the cat", 1), ("house cat", 0)]),
        (
            "hucola.json",
            '[{"id": "0", "Sent": "a dog", "label": "1"}, {"id": "1", "Sent": "dog a", "label": "0"}]',
            [("a dog", 1), ("dog a", 0)],
        ),
    ],
)
def test_accepted_sentences_are_read(name: str, text: str, found: list[tuple[str, float]], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_sentences(tmp_path / name) == found


@each_row(
    "text, message",
    [
        ("sentence\tlabel\nthe cat\t1\n", "no sentences of both kinds"),
        ("sentence\tlabel\nthe cat\tgood\n", "line 2 needs a sentence, and the label 1 or 0"),
    ],
)
def test_sentences_without_labels_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_sentences(tmp_path / "own.tsv")


def test_sentences_are_scored_by_their_mean_piece(tmp_path: Path, folder: Folder) -> None:
    encoder, texts = Encoder(folder("bert")), ["the cat sat on a mat", "house house", "a dog ran", "mat the the on ."]
    (tmp_path / "own.tsv").write_text("sentence\tlabel\n" + "".join(f"{t}\t{i % 2}\n" for i, t in enumerate(texts)))
    area, _ = Acceptability(data=tmp_path / "own.tsv").take(encoder)
    found = pseudo_likelihoods(encoder, texts)
    assert area.value == pytest.approx(roc_auc_score([0, 1, 0, 1], found.sums / found.pieces))


def test_collapsed_vectors_are_recognised() -> None:
    same = np.ones((50, 8), np.float32)
    assert mean_cosine(same) == pytest.approx(1)
    assert deviation(same) == pytest.approx(0)
    spread = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
    assert abs(mean_cosine(spread)) < 0.02
    assert deviation(spread) == pytest.approx(1, abs=0.02)


def test_neighbours_are_nearest_by_cosine(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    weights = encoder.model.encoder.token_weight
    with torch.no_grad():
        weights[7] = 3 * weights[6]  # dog points where cat does
    found = neighbours(encoder, ["cat", "unheard"], 1)
    assert found == {"cat": [("dog", pytest.approx(1))]}


def test_neighbours_agree_with_plain_cosines(folder: Folder) -> None:
    encoder = Encoder(folder("bert"))
    rows = encoder.model.encoder.token_weight.detach().numpy()
    scores = Neighbours(words=("mat", "##s", "the")).take(encoder)
    for score, own in zip(scores, (13, 5), strict=True):
        cosines = [
            (float(np.dot(rows[own], row) / np.linalg.norm(rows[own]) / np.linalg.norm(row)), ENTRIES[i])
            for i, row in enumerate(rows)
            if i >= 5 and i != own and not ENTRIES[i].startswith("##")
        ]
        best = sorted(cosines, reverse=True)[:5]
        assert score.text == ", ".join(entry for _, entry in best)
        assert score.value == pytest.approx(best[0][0], abs=1e-5)


def test_differences_are_of_the_same_items() -> None:
    random = np.random.default_rng(1)
    hard = random.random(300)
    worse, better = (hard < 0.5).astype(float), (hard < 0.56).astype(float)
    value, low, _ = interval_of_mean_difference(better, worse)
    assert value == pytest.approx(better.mean() - worse.mean())
    # Apart on the same items, although the intervals of the models overlap.
    assert low > 0
    assert interval_of_mean(better).low < interval_of_mean(worse).high
    assert interval_of_mean_difference(worse, worse) == (0, 0, 0)


def test_random_weights_do_not_disturb_the_generator(folder: Folder) -> None:
    network = Encoder(folder("bert")).model.config
    torch.manual_seed(9)
    wanted = torch.rand(3)
    torch.manual_seed(9)
    first = untrained(network).state_dict()
    assert torch.equal(torch.rand(3), wanted)
    assert all(torch.equal(tensor, first[name]) for name, tensor in untrained(network).state_dict().items())


def test_a_baseline_has_the_same_shape(folder: Folder) -> None:
    exams = [Vectors(texts=("the cat sat", "a dog ran", "house"))]
    scores = score_models([str(folder("bert"))], exams, SILENT, baseline=True)
    assert list(scores) == ["untrained", str(folder("bert"))]
    (drawn, _), (trained, _) = scores.values()
    assert drawn.value != trained.value


def test_a_suite_names_files_beside_it(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "pairs.tsv").write_text("sentence_good\tsentence_bad\nthe cat\tcat the\n")
    (tmp_path / "suite.toml").write_text('[[exam]]\nkind = "pairs"\ndata = "pairs.tsv"\nname = "grammar"\n')
    suite = Suite.load(tmp_path / "suite.toml")
    assert suite.exam == (MinimalPairs(data=tmp_path / "pairs.tsv", name="grammar"),)
    (score,) = take(suite.exam, Encoder(folder("bert")), "model", SILENT)
    assert (score.exam, score.name) == ("grammar", "all")


@each_row(
    "text, message",
    [
        ("exam = 1", "exam"),
        ('[[exam]]\nkind = "none"', "none"),
        ('[[exam]]\nkind = "pairs"\ndata = "x.tsv"\nmistake = 1', "mistake"),
        ("exam = [", "not valid TOML"),
        ('[[exam]]\nkind = "pairs"\ndata = "x.tsv"\n' * 2, "2 exams are called 'pairs': give each a name"),
    ],
)
def test_mistakes_in_suites_are_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(RecipeError, match=message):
        Suite.load(tmp_path / "suite.toml")


def test_a_model_without_a_head_skips_what_needs_one(tmp_path: Path, folder: Folder) -> None:
    from safetensors.torch import load_file, save_file

    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
        (bare / name).write_bytes((folder("bert") / name).read_bytes())
    tensors = load_file(folder("bert") / "model.safetensors")
    kept = {name.removeprefix("bert."): tensor for name, tensor in tensors.items() if name.startswith("bert.")}
    save_file(kept, bare / "model.safetensors")
    texts = ["the cat sat", "a dog ran", "house"]
    encoder = Encoder(bare)
    np.testing.assert_allclose(encoder.encode(texts), Encoder(folder("bert")).encode(texts), atol=1e-6)
    with pytest.raises(RecipeError, match="no head that fills masks"):
        encoder.fill_mask("the [MASK]")
    exams = [f'[[exam]]\nkind = "{kind}"\ntexts = {json.dumps(texts)}\n' for kind in ("masked", "vectors")]
    (tmp_path / "suite.toml").write_text("".join(exams))
    scores = list(take(Suite.load(tmp_path / "suite.toml").exam, encoder, "bare", SILENT))
    assert {score.exam for score in scores} == {"vectors"}
    (tmp_path / "masked.toml").write_text(exams[0])
    with pytest.raises(RecipeError, match=r"no model could take an exam \(masked\)"):
        score_models([str(bare)], Suite.load(tmp_path / "masked.toml").exam, SILENT)
