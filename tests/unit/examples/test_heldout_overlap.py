from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.core.files import write_json
from bertwright.core.stage_context import StageContext
from bertwright.corpus.contamination import contamination
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.examples import heldout_overlap
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.heldout_overlap import SAMPLE, heldout_contamination, training_text
from bertwright.examples.run import run
from bertwright.examples.run_tasks import Inputs
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer


def write_store(folder: Path, tokenizer: Tokenizer, train: list[str], heldout: list[str]) -> Path:
    """The files of a token store that are read here."""
    for split, sentences in (("train", train), ("heldout", heldout)):
        ids, lengths = tokenizer.encode_sentences(sentences)
        ids.astype("<u2").tofile(folder / f"{split}.tokens")
        lengths.astype("<u2").tofile(folder / f"{split}.sentences")
        write_json(folder / f"{split}.json", {"dtype": "<u2"})
    return folder


@pytest.fixture(scope="module")
def tokenizer(examples: Artifact) -> Tokenizer:
    return load_tokenizer(examples.path.parent / "vocab")


def some_words(count: int, seed: int) -> list[str]:
    return " ".join(document[0].rstrip(".").lower() for document in made.text(40, seed)).split()[:count]


@each_row("block", [2**22, 7])
def test_sentences_with_thirteen_words_of_the_training_text_are_found(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(heldout_overlap, "_BLOCK", block)
    train, other = some_words(60, 3), some_words(60, 4)
    heldout = [
        " ".join(train[5:18]),  # just enough
        " ".join([*other[:3], *train[20:27]]) + ". " + " ".join(train[27:33]) + ".",
        " ".join([*train[:12], *other[:12]]),  # twelve only
        " ".join(other[20:40]),
        " ".join(train[:10]),  # too short to count
    ]
    store = write_store(tmp_path, tokenizer, [" ".join(train[:30]), " ".join(train[30:]) + "."], heldout)
    assert heldout_contamination(store, tokenizer.vocabulary) == {
        "sentences": 4,
        "found": 2,
        "share": 0.5,
        "run": "13 words",
    }
    (tmp_path / "other").mkdir()
    elsewhere = write_store(tmp_path / "other", tokenizer, [" ".join(other[15:45])], [])
    found = heldout_contamination(store, tokenizer.vocabulary, training_text(elsewhere))
    assert found == {"sentences": 4, "found": 1, "share": 0.25, "run": "13 words"}


def test_it_agrees_with_the_search_in_the_text(tmp_path: Path) -> None:
    """Documents that share every fourth sentence, so that most held-out ones have some in the training text."""
    shared = made.text(30, seed=5)
    texts = [[*document, *shared[i % 30][:2]] for i, document in enumerate(made.text(150, seed=6))]
    source = made.corpus(tmp_path / "corpus", [texts[:70], texts[70:]])
    vocab = made.vocabulary(tmp_path / "vocab", source)
    config = ExamplesConfig(passes=1, heldout=0.2, workers=1)
    found = run(config, made.SETS, Inputs(source, vocab), StageContext(tmp_path / "examples")).counts[
        "heldout_contamination"
    ]
    heldout = is_heldout(np.array([text_hash(document) for document in texts], np.uint64), 0.2).tolist()
    train = [document for document, held in zip(texts, heldout, strict=True) if not held]
    test = [line for document, held in zip(texts, heldout, strict=True) if held for line in document]
    expected = contamination(train, {"heldout": test})["heldout"]
    assert 0 < expected["found"] < expected["sentences"] < SAMPLE
    assert found == {name: expected[name] for name in ("sentences", "found", "share", "run")}


def write_pieces(folder: Path, train: str, heldout: list[str]) -> tuple[Path, list[str]]:
    """A store of texts of which each character is a piece, and its vocabulary."""
    letters = sorted({*train, *"".join(heldout)} - {" "})
    vocabulary = ["[UNK]", "，", *letters, *("##" + letter for letter in letters)]
    ids = {entry: i for i, entry in enumerate(vocabulary)}
    folder.mkdir()
    for split, sentences in (("train", [train]), ("heldout", heldout)):
        # As BERT has it, an ideograph is a word, and of other letters those up to a space.
        pieces = [
            [ids["##" + c if i and word[0] < "一" else c] for word in text.split() for i, c in enumerate(word)]
            for text in sentences
        ]
        np.array([*chain(*pieces)], "<u2").tofile(folder / f"{split}.tokens")
        np.array([len(sentence) for sentence in pieces], "<u2").tofile(folder / f"{split}.sentences")
        write_json(folder / f"{split}.json", {"dtype": "<u2"})
    return folder, vocabulary


IDEOGRAPHS = "".join(map(chr, range(0x4E00, 0x4E80)))
THAI = "".join(chr(0x0E01 + (7 * i * i + i) % 46) for i in range(95))


@each_row(
    ("train", "heldout", "found"),
    [
        (IDEOGRAPHS[:60], IDEOGRAPHS[30:45] + IDEOGRAPHS[90:120], 0),  # share fifteen characters
        (IDEOGRAPHS[:60], IDEOGRAPHS[30:55] + IDEOGRAPHS[90:120], 0),
        (IDEOGRAPHS[:60], IDEOGRAPHS[30:43] + "，" + IDEOGRAPHS[43:56] + IDEOGRAPHS[90:120], 1),  # twenty-six
        (IDEOGRAPHS[:60], IDEOGRAPHS[30:56], 1),  # no more than these
        (f"กก {THAI} ขข", THAI, 1),
        (f"กก {THAI} ขข", f"{THAI[:25]} กขค", 0),
        (f"กก {THAI[:13]} {THAI[13:]}", f"คค {THAI[:26]}", 1),
    ],
)
def test_where_no_spaces_separate_words_runs_are_of_characters(
    tmp_path: Path, train: str, heldout: str, found: int
) -> None:
    store, vocabulary = write_pieces(tmp_path / "store", train, [heldout, heldout[:20]])
    result = heldout_contamination(store, vocabulary)
    assert result == {"sentences": 1, "found": found, "share": found, "run": "26 characters"}
    assert contamination([[train]], {"heldout": [heldout]}, spaced=False)["heldout"]["found"] == found


def test_long_pieces_are_searched_by_their_characters(tmp_path: Path) -> None:
    store, _ = write_pieces(tmp_path / "store", IDEOGRAPHS[0], [IDEOGRAPHS[0]])
    vocabulary = ["[UNK]", "，", THAI[:30], THAI[30:]]
    for split in ("train", "heldout"):
        np.array([2, 3], "<u2").tofile(store / f"{split}.tokens")
        np.array([2], "<u2").tofile(store / f"{split}.sentences")
    assert heldout_contamination(store, vocabulary)["found"] == 1


def test_nothing_held_out_is_long_enough(tmp_path: Path, tokenizer: Tokenizer) -> None:
    store = write_store(tmp_path, tokenizer, ["ba cé di."], ["ba cé."])
    assert heldout_contamination(store, tokenizer.vocabulary) == {
        "sentences": 0,
        "found": 0,
        "share": 0.0,
        "run": "13 words",
    }
