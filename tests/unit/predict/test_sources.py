"""Files that are answered keep what they have: records get columns, column files their tags, and a line that cannot be
read stays as it is and is named."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
import pytest
from pyarrow import parquet
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.finetune.guess import find_texts
from bertwright.predict.records import RECORDS, clean
from bertwright.predict.run import answer_source
from bertwright.predict.source import Answer, Answerer, Lines
from bertwright.predict.words import WordColumns, has_tags


class Lengths(Answerer):
    """Answers how many characters a text has."""

    lacking: ClassVar[str] = "records without a text"
    added: ClassVar[Mapping[str, Any]] = {"prediction": str, "probability": float}

    def of_line(self, line: str) -> Any:
        return line

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        self.column, _ = find_texts(file, some, "", "")

    def of_record(self, record: Mapping[str, Any]) -> Any:
        return clean(record.get(self.column))

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        cells = [{"prediction": f"{len(text)} long", "probability": 0.5} for text in some]
        return [Answer(each, [[each["prediction"], text]], each) for each, text in zip(cells, some, strict=True)]


class Cases(Answerer):
    """Tags words by whether they begin with a capital."""

    lacking: ClassVar[str] = "records without words"
    added: ClassVar[Mapping[str, Any]] = {"prediction": list[str], "probability": list[float]}

    def of_line(self, line: str) -> Any:
        return line.split()

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        pass

    def of_record(self, record: Mapping[str, Any]) -> Any:
        return record.get("tokens")

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        tags = [["B-PER" if word[0].isupper() else "O" for word in words] for words in some]
        return [Answer({"prediction": each, "probability": [0.5] * len(each)}, [], {}) for each in tags]


def written(file: Path, answerer: Answerer) -> tuple[bytes, list[str]]:
    """The file with the answers, and what was wrong in it."""
    problems, out = Problems(), io.BytesIO()
    source = RECORDS[file.suffix](file, answerer, problems)
    source.write(answer_source(source, answerer), out)
    return out.getvalue(), list(problems.sentences())


@each_row(
    ("name", "content", "wanted", "wrong"),
    [
        (
            "a.tsv",
            b'id\tsentence\r\n1\ta "b\r\n2\r\n3\tcde\tf\r\n4\t\xff\r\n\r\n5\tg h',
            b'id\tsentence\tprediction\tprobability\r\n1\ta "b\t4 long\t0.5000\r\n2\r\n3\tcde\tf\r\n4\t\xff\r\n\r\n'
            b"5\tg h\t3 long\t0.5000",
            ["2 lines without 2 cells, the first in line 3", "1 records without a text, the first in line 5"],
        ),
        (
            "a.csv",
            b'\xef\xbb\xbfid;text\n1;"a, ""b""\nc"\n2;"d"e\n3;f g\n4\n',
            b'\xef\xbb\xbfid;text;prediction;probability\n1;"a, ""b""\nc";8 long;0.5000\n2;"d"e\n'
            b"3;f g;3 long;0.5000\n4\n",
            [
                "1 records that are no comma-separated values (';' expected after '\"'), the first in line 4",
                "1 records without 2 cells, the first in line 6",
            ],
        ),
        (
            "a.jsonl",
            b'{"id": 1.50, "text": "a b"}\n{"text": \n[1]\n\n{"text": 7}\n{ "text":"\\u00e1 \\ud800" }',
            b'{"id": 1.50, "text": "a b", "prediction": "3 long", "probability": 0.5}\n{"text": \n[1]\n\n{"text": 7}\n'
            b'{ "text":"\\u00e1 \\ud800", "prediction": "3 long", "probability": 0.5}',
            [
                "2 lines that are no objects of JSON, the first in line 2",
                "1 records without a text, the first in line 5",
            ],
        ),
        (
            "a.json",
            b'\xef\xbb\xbf[{"text": "a b"}, {"text": null}]',
            b'[\n  {"text": "a b", "prediction": "3 long", "probability": 0.5},\n  {"text": null}\n]\n',
            ["1 records without a text, the first in object 2"],
        ),
    ],
)
def test_records_keep_their_bytes(name: str, content: bytes, wanted: bytes, wrong: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert written(tmp_path / name, Lengths()) == (wanted, wrong)


class Second(Lengths):
    """The same of the second column of tables without a header."""

    def by_number(self, header: Sequence[str]) -> bool:
        return True

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        self.column = "2"


def test_tables_without_a_header_have_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\ta b\n2\tc\n", encoding="utf-8")
    (tmp_path / "a.csv").write_text('1,"a, b"\n2,c\n', encoding="utf-8")
    assert written(tmp_path / "a.tsv", Second()) == (b"1\ta b\t3 long\t0.5000\n2\tc\t1 long\t0.5000\n", [])
    assert written(tmp_path / "a.csv", Second()) == (b'1,"a, b",4 long,0.5000\n2,c,1 long,0.5000\n', [])


def test_tables_get_columns(tmp_path: Path) -> None:
    table = pyarrow.table({"text": ["a b", None], "number": pyarrow.array([1, 2], pyarrow.int8())})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pyarrow.ipc.new_stream(tmp_path / "a.arrow", table.schema) as stream:
        stream.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        content, wrong = written(tmp_path / name, Lengths())
        read = (
            parquet.read_table(io.BytesIO(content))
            if name == "a.parquet"
            else pyarrow.ipc.open_stream(content).read_all()
        )
        assert read.schema.field("number").type == pyarrow.int8()
        assert read.to_pylist() == [
            {"text": "a b", "number": 1, "prediction": "3 long", "probability": 0.5},
            {"text": None, "number": 2, "prediction": None, "probability": None},
        ]
        assert wrong == ["1 records without a text, the first in row 2"]


def test_lists_of_words_get_lists_of_tags(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["Ada", "ran"]}\n', encoding="utf-8")
    content, _ = written(tmp_path / "a.jsonl", Cases())
    assert json.loads(content) == {"tokens": ["Ada", "ran"], "prediction": ["B-PER", "O"], "probability": [0.5, 0.5]}


@each_row(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", "has no records that can be read"),
        ("a.tsv", "text\n", "has no records that can be read"),
        ("a.csv", "text,prediction\na b,c\n", "has a column 'prediction', where the answers would stand"),
        ("a.tsv", "x\ty\na\tb\n", "Name it: train.objective.text=NAME (of predict: --text NAME)"),
        ("a.jsonl", '{"text": 7}\n', "there is nothing to answer: all that was read are records without a text"),
        ("a.json", "{}", "is not a list of objects"),
        ("a.json", "[", "is not valid JSON"),
        ("a.parquet", "no", "is damaged or is not a Parquet file"),
        ("a.arrow", "no", "is damaged or is not an Arrow stream"),
    ],
)
def test_a_file_without_questions_is_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        written(tmp_path / name, Lengths())
    assert message in str(caught.value)


def test_lines_that_are_empty_or_not_utf_8_have_empty_rows() -> None:
    problems, out, answerer = Problems(), io.BytesIO(), Lengths()
    source = Lines(["a\n", "\udcff\n", "b\n", "\n", " \r\n", "c"], answerer, problems)
    source.write(answer_source(source, answerer), out)
    assert out.getvalue() == b"1 long\ta\n\n1 long\tb\n\n\n1 long\tc\n"
    assert list(problems.sentences()) == ["1 lines that are not UTF-8, the first in line 2"]
    assert list(answer_source(Lines([], answerer, problems), answerer)) == [], "no lines have no answers"


UD = (
    "# text = Ada ran\r\n1-2\tAdaran\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\r\n1\tAda\tAda\t_\t_\t_\t2\tnsubj\t_\tX=Y\r\n"
    "2\tran\trun\tX\t_\t_\t0\troot\t_\t_\r\n2.1\tso\t_\t_\t_\t_\t_\t_\t_\t_\r\n\r\n1\tBob\tBob\t_\t_\t_\t0\troot\t_\t_"
)
ENTITIES = ("O", "B-PER")


@each_row(
    ("text", "found"),
    [
        ("EU NNP B-PER\nran VBD O\n\nBob NNP O\n", True),
        ("Ada ran\nBob sat\n", False),
        ("Ada\nran\n", False),
        ("Ada O\nran home O\n", False),
        ("", False),
    ],
)
def test_a_text_file_with_tags_is_a_column_file(text: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert has_tags(tmp_path / "a.txt", ENTITIES) == found


def filled(file: Path, labels: Sequence[str], names: tuple[str, str] = ("", "")) -> tuple[str, list[str]]:
    """A column file with the tags, and what was wrong in it."""
    problems, out, answerer = Problems(), io.BytesIO(), Cases()
    source = WordColumns(file, labels, names, problems)
    source.write(answer_source(source, answerer), out)
    return out.getvalue().decode(), list(problems.sentences())


def test_conllu_gets_parts_of_speech_or_entities(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_bytes(UD.encode())
    upos = UD.replace("Ada\t_\t", "Ada\tB-PER\t").replace("run\tX", "run\tO").replace("Bob\t_\t", "Bob\tB-PER\t")
    assert filled(file, ("O", "PROPN")) == (upos, [])
    misc = UD.replace("X=Y", "X=Y|NER=B-PER").removesuffix("_") + "NER=B-PER"
    assert filled(file, ENTITIES) == (misc, [])
    lemma = UD.replace("\tAda\tAda\t", "\tAda\tB-PER\t").replace("run", "O").replace("\tBob\tBob\t", "\tBob\tB-PER\t")
    assert filled(file, ENTITIES, ("", "lemma")) == (lemma, [])
    with pytest.raises(DataError, match=r"not 'pos' \(--tag\)"):
        filled(file, ENTITIES, ("", "pos"))


@each_row(
    ("content", "wanted"),
    [
        ("-DOCSTART- O\n\nAda   NNP O\nran VBD  O\n", "-DOCSTART- O\n\nAda   NNP B-PER\nran VBD  O\n"),
        ("Ada NNP\nran VBD\n", "Ada NNP B-PER\nran VBD O\n"),
        ("Ada\nran\n\n\nBob", "Ada\tB-PER\nran\tO\n\n\nBob\tB-PER"),
        ("Ada\t-\tx\nran\t-\ty\n", "Ada\tB-PER\tx\nran\tO\ty\n"),
    ],
)
def test_a_column_of_tags_is_filled_or_added(content: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(content, encoding="utf-8")
    assert filled(tmp_path / "a.conll", ENTITIES) == (wanted, [])


def test_a_line_that_lacks_a_column_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("a b\tAda\tx\na b\tran\n", encoding="utf-8")
    content, wrong = filled(tmp_path / "a.conll", ENTITIES, ("2", "1"))
    assert content == "B-PER\tAda\tx\na b\tran\n"
    assert wrong == ["1 lines with fewer than 3 columns, the first in line 2"]
