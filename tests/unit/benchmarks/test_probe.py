"""The probe of parts of speech: what it reads, that its fit is the optimum, and that it finds what is there."""

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import NOUNS, SHARED, VERBS, small_text
from tests.rows import each_row

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import probe as program
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.vocab.entries import SPECIALS
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer
from probe import Accuracy, Probe, by_word, lines, pieces, probe, readable, states
from softmax_fit import DECAY, fitted, guesses
from tagged import Tagged, read_tagged, spread

CONLLU = """# newdoc
# text = Az olaj dr\u00e1ga.
1\tAz\taz\tDET\t_\t_\t2\tdet\t_\t_
2-3\tolajjal\t_\t_\t_\t_\t_\t_\t_\t_
2\tolaj\tolaj\tNOUN\t_\t_\t3\tnsubj\t_\t_
2.1\tvan\tvan\tVERB\t_\t_\t_\t_\t_\t_
3\tdr\u00e1ga\tdr\u00e1ga\tADJ\t_\t_\t0\troot\t_\t_

1\tNem\tnem\tADV\t_\t_\t0\troot\t_\t_
"""
ENTRIES = [*SPECIALS, "the", "river", "##s", "lamp", "holds", "sees", ".", "a"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(build_tokenizer(ENTRIES, lower_case=False, strip_accents=False))


def network(positions: int = 16, layers: int = 2) -> PreTrainingModel:
    torch.manual_seed(3)
    return PreTrainingModel(
        BertConfig(
            vocab_size=len(ENTRIES),
            hidden_size=16,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=positions,
            next_sentence=False,
        )
    )


def test_conllu_is_read_without_what_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU, encoding="utf-8")
    assert read_tagged(tmp_path / "a.conllu") == [
        [("Az", "DET"), ("olaj", "NOUN"), ("dr\u00e1ga", "ADJ")],
        [("Nem", "ADV")],
    ]


def test_columns_are_read_with_words_that_begin_with_a_hash(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("# doc = a/b\n#Hungry\tNOUN\tO\nis\x85\tVERB\tO\n\n\nNem\tADV\tO", encoding="utf-8")
    assert read_tagged(tmp_path / "a.tsv") == [[("#Hungry", "NOUN"), ("is\x85", "VERB")], [("Nem", "ADV")]]


@each_row(
    ("name", "line", "said"),
    [
        ("a.tsv", "az\tDETT\tO", r"a\.tsv:1: 'DETT' is no universal part-of-speech tag, in 'az\\tDETT\\tO'"),
        ("a.tsv", "az", r"a\.tsv:1: '' is no universal"),
        ("a.conllu", "az\tDET\tO", r"a\.conllu:1: 'of 3 columns, not 10' is no universal"),
    ],
)
def test_a_line_that_is_neither_is_named(tmp_path: Path, name: str, line: str, said: str) -> None:
    (tmp_path / name).write_text(line)
    with pytest.raises(SystemExit, match=said):
        read_tagged(tmp_path / name)


def test_sentences_are_taken_evenly() -> None:
    every: list[Tagged] = [[(f"{number}", "NUM")] for number in range(10)]
    assert [sentence[0][0] for sentence in spread(every, 4)] == ["0", "2", "5", "7"]
    assert spread(every, 99) == every and spread([], 4) == []


def test_the_fit_is_where_the_gradient_is_zero() -> None:
    """By numpy, of the loss as it is written down; it is convex, so there is no other such place."""
    drawn = np.random.default_rng(1)
    states_NH, labels_N = drawn.normal(size=(60, 5)), drawn.integers(3, size=60)
    weights = fitted(torch.tensor(states_NH), torch.tensor(labels_N), 3).numpy()
    inputs = np.concatenate([states_NH, np.ones((60, 1))], 1)
    logits = inputs @ weights
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    decay = 2 * DECAY * weights
    decay[-1] = 0
    gradient = inputs.T @ (shares - np.eye(3)[labels_N]) / 60 + decay
    assert np.abs(gradient).max() < 1e-5


def test_a_state_that_never_varies_and_one_of_another_scale_do_no_harm() -> None:
    own = torch.tensor([[1e6, 7.0], [2e6, 7.0], [9e6, 7.0], [8e6, 7.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert guesses(own, labels, torch.tensor([[0.0, 7.0], [7e6, 7.0]]), 2).tolist() == [0, 1]


def test_a_words_state_is_that_of_its_first_piece_without_dropout(tokenizer: Tokenizer) -> None:
    model, sentences = (
        network(),
        [[("the", "DET"), ("rivers", "NOUN")], [("lamp", "NOUN"), ("\x01", "X"), (".", "PUNCT")]],
    )
    assert [ENTRIES[i] for i in pieces(sentences[0], tokenizer)[0]] == ["[CLS]", "the", "river", "##s", "[SEP]"]
    assert pieces(sentences[1], tokenizer)[1] == [1, 2, 3], "a word without a piece is unknown"
    found = states(model, tokenizer, sentences)
    assert model.training and found.shape == (5, 16)
    alone = torch.cat([states(model, tokenizer, [sentence]) for sentence in sentences])
    torch.testing.assert_close(found, alone)
    # Every state by itself, of the whole sentence.
    ids, places = pieces(sentences[0], tokenizer)
    from bertwright.model.batch import packed_sequences

    with torch.no_grad():
        whole = model.eval().encoder(packed_sequences([(ids, ())], tokenizer.ids("[MASK]")))
    torch.testing.assert_close(found[:2], whole[places])


def test_what_the_network_cannot_read_is_left_out(tokenizer: Tokenizer) -> None:
    sentence = [("the", "DET"), ("rivers", "NOUN"), ("a", "DET")]
    for positions, words in ((6, 3), (5, 2), (4, 1), (3, 1)):
        kept = readable([sentence], tokenizer, positions)
        assert kept == [sentence[:words]] and len(pieces(kept[0], tokenizer)[0]) <= positions
    assert readable([sentence], tokenizer, 2) == []


def test_the_tag_of_a_word_is_its_commonest_or_that_of_all() -> None:
    training = [[("a", "DET"), ("b", "NOUN"), ("a", "X")], [("a", "X"), ("c", "NOUN"), ("d", "NOUN")]]
    assert by_word(training, [[("a", "DET"), ("e", "VERB")]]) == ["X", "NOUN"]


def test_tags_that_follow_from_the_states_are_found_and_unseen_words_told(tokenizer: Tokenizer) -> None:
    """Words of the held-out part that training lacks: the tag of a word says nothing of them."""
    training = [[("the", "DET"), ("river", "NOUN"), ("holds", "VERB"), (".", "PUNCT")]] * 3
    heldout = [[("the", "DET"), ("river", "NOUN"), ("sees", "VERB"), (".", "PUNCT")]]
    found = probe(network(), tokenizer, training, heldout)
    assert (found.words, found.unseen) == (4, 1)
    assert found.majority == Accuracy(0.75, 0.0)
    assert found.trained.overall >= 0.75 and found.random.overall >= 0.75
    assert found == probe(network(), tokenizer, training, heldout), "nothing is drawn"


def test_without_a_word_there_is_nothing_to_find(tokenizer: Tokenizer) -> None:
    with pytest.raises(SystemExit, match="there is no tagged word to learn from, or none to ask"):
        probe(network(), tokenizer, [[("the", "DET")]], [])


def test_the_table() -> None:
    rows = lines(Probe(2000, 0, Accuracy(0.9, None), Accuracy(0.5, None), Accuracy(0.8, None)))
    assert rows[0] == "| part of speech by | all 2,000 words | 0 unseen ones |"
    assert rows[2] == "| this network | 90.0% | - |"


def test_a_run_folder_is_probed(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tags = dict.fromkeys(NOUNS, "NOUN") | dict.fromkeys(VERBS, "VERB") | {"The": "DET", "the": "DET", "near": "ADP"}
    for name, documents in (("a.tsv", 20), ("b.tsv", 4)):
        sentences = [line.removesuffix(".").split() for line in small_text(documents).splitlines() if line]
        rows = ["".join(f"{word}\t{tags[word]}\n" for word in sentence) for sentence in sentences]
        (tmp_path / name).write_text("\n".join(rows))
    out = tmp_path / "found.json"
    program.main(str(trained), str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv"), "--json", str(out))
    found = program.probe_run(trained, tmp_path / "a.tsv", tmp_path / "b.tsv", 5000)
    assert out.read_text().strip() == program.json.dumps(asdict(found), indent=1)
    assert found.majority.overall == 1 and found.trained.overall > 0.5
    assert "| its weights as drawn |" in capsys.readouterr().out


NERKOR = SHARED / "data" / "eval" / "hu_nerkor"


@pytest.mark.skipif(not NERKOR.is_dir(), reason=f"no tagged sentences at {NERKOR}; set BERTWRIGHT_SHARED")
def test_real_tagged_sentences_are_read_whole() -> None:
    assert sum(map(len, read_tagged(NERKOR / "devel.tsv"))) == 103_657
    szeged = read_tagged(NERKOR.parent / "ud_hungarian_szeged" / "hu_szeged-ud-dev.conllu")
    assert (len(szeged), sum(map(len, szeged))) == (441, 11_418)
