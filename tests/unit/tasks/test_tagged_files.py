"""Files of tagged words: every layout that people publish, and what is wrong in them."""

import json
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.tasks.tagging.files import Layout, Sentence, read_sentences

CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP I-PER\n"
UNER = "# sent_id = 1\n# text = in Tampa\n1\tin\tO\t-\t-\n2\tTampa\tB-LOC\t-\tstephen\n\n1\tok\tO\t-\t-\n"
CONLLU = (
    "# text = vámonos al mar\n1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_\n2.1\tx\tx\tX\t_\t_\t_\t_\t_\t_\n3\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_\n\n"
)
PLUS = "# global.columns = ID FORM UPOS NER:ENTITY\n1\tÉva\tPROPN\tB-PER\n2\túr\tNOUN\tO\n"


def read(path: Path, text: str, word: str = "", tag: str = "") -> tuple[Layout, list[Sentence], Problems]:
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    layout, sentences = read_sentences(path, Layout(word, tag), problems)
    return layout, list(sentences), problems


@each_row(
    "name, text, layout, words, tags",
    [
        ("a.conll", CONLL, Layout("1", "4"), [["EU", "rejects"], ["Peter"]], [["I-ORG", "O"], ["I-PER"]]),
        ("a.iob2", UNER, Layout("2", "3"), [["in", "Tampa"], ["ok"]], [["O", "B-LOC"], ["O"]]),
        ("a.conllu", CONLLU, Layout("form", "upos"), [["vamos", "nos", "mar"]], [["VERB", "PRON", "NOUN"]]),
        ("a.conllup", PLUS, Layout("form", "entity"), [["Éva", "úr"]], [["B-PER", "O"]]),
        ("a.tsv", "# doc = a b\nA\tDET\tO\n#tag\tX\tO\n", Layout("1", "3"), [["A", "#tag"]], [["O", "O"]]),
        ("a.txt", "Ada NOUN\nmet VERB\n", Layout("1", "2"), [["Ada", "met"]], [["NOUN", "VERB"]]),
        (
            "a.bio",
            "\ufeffNew York\tB-LOC\r\nis\tO\r\n\r\n",
            Layout("1", "2"),
            [["New York", "is"]],
            [["B-LOC", "O"]],
        ),
    ],
)
def test_layouts_are_found(
    name: str, text: str, layout: Layout, words: list[list[str]], tags: list[list[str]], tmp_path: Path
) -> None:
    found, sentences, problems = read(tmp_path / name, text)
    assert found == layout
    assert [each.words for each in sentences] == words
    assert [each.tags for each in sentences] == tags
    assert not problems.counts


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    assert read(tmp_path / "a.conllu", CONLLU, tag="xpos")[1][0].tags == ["", "", ""]
    assert read(tmp_path / "a.conll", CONLL, tag="2")[1][0].tags == ["NNP", "VBZ"]
    with pytest.raises(DataError, match=r"a\.conll has the columns 1, 2, 3, 4, not '7' \(train\.objective\.tag\)"):
        read(tmp_path / "a.conll", CONLL, tag="7")


def test_records_of_words_and_tags(tmp_path: Path) -> None:
    records = [
        {"id": 0, "tokens": ["Ada", "met"], "ner_tags": ["B-PER", "O"]},
        {"id": 1, "tokens": ["x"], "ner_tags": []},
        {"id": 2, "tokens": "x", "ner_tags": ["O"]},
        {"id": 3, "tokens": ["y", "z"], "ner_tags": [0, None]},
    ]
    text = "\n".join(map(json.dumps, records))
    layout, sentences, problems = read(tmp_path / "a.jsonl", text)
    assert layout == Layout("tokens", "ner_tags")
    assert [(each.words, each.tags, each.place) for each in sentences] == [
        (["Ada", "met"], ["B-PER", "O"], "line 1"),
        (["y", "z"], ["0", ""], "line 4"),
    ]
    assert list(problems.sentences()) == [
        "1 records whose ner_tags are not as many as their tokens, the first in line 2",
        "1 records whose tokens is not a list of words, the first in line 3",
    ]
    with pytest.raises(DataError, match="needed are one of words and one of tags"):
        read(tmp_path / "a.jsonl", json.dumps({"text": "no lists"}))


def test_short_lines_are_counted_and_named(tmp_path: Path) -> None:
    _, sentences, problems = read(tmp_path / "a.conll", "a X O\nb X\nc X B-P\n" * 3)
    assert sentences[0].words == ["a", "c"] * 3
    assert list(problems.sentences()) == ["3 lines with fewer than 3 columns, the first in line 2"]


def test_files_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no words"):
        read(tmp_path / "a.conll", "\n# nothing\n")
    with pytest.raises(DataError, match="has one column"):
        read(tmp_path / "a.conll", "a\nb\n")
    (tmp_path / "b.conll").write_bytes("Éva O\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"b\.conll is not UTF-8"):
        read_sentences(tmp_path / "b.conll", Layout("", ""), Problems())


DATA = Path(__file__).parents[4] / "shared" / "data" / "eval"


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the published tagged data, which is not here")
@each_row(
    "name, sentences, words",
    [
        ("wnut17/wnut17train.conll", 3_394, 62_730),
        ("uner_english_ewt/en_ewt-ud-dev.iob2", 2_001, 25_149),
        ("hu_nerkor/devel.tsv", 6_996, 103_657),
        ("ud_hungarian_szeged/hu_szeged-ud-dev.conllu", 441, 11_418),
        ("ud_english_ewt/en_ewt-ud-test.conllu", 2_077, 25_094),
    ],
)
def test_published_files_are_read_whole(name: str, sentences: int, words: int) -> None:
    problems = Problems()
    found = list(read_sentences(DATA / name, Layout("", ""), problems)[1])
    assert (len(found), sum(len(each.words) for each in found)) == (sentences, words)
    assert not problems.counts
