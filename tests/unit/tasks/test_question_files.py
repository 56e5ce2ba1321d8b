"""Files of questions: SQuAD's JSON, rows, and what is wrong in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.tasks.span.config import SpanFiles
from bertwright.tasks.span.files import Answer, Question, read_questions

DATA = Path(__file__).parents[4] / "shared" / "data" / "eval"
TEXT = "Ada met Babbage in London. London is old."


def squad(*questions: Any) -> str:
    return json.dumps({"version": "v2.0", "data": [{"paragraphs": [{"context": TEXT, "qas": list(questions)}]}]})


def asked(*answers: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    found = [{"text": text, "answer_start": begin} for text, begin in answers]
    return {"id": "q", "question": "Where?", "answers": found, **more}


def read(path: Path, content: str | bytes) -> tuple[list[Question], list[str]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    problems = Problems()
    return list(read_questions(path, problems)), list(problems.sentences())


def test_questions_of_both_versions(tmp_path: Path) -> None:
    impossible = asked(is_impossible=True, plausible_answers=[{"text": "London", "answer_start": 19}])
    found, problems = read(tmp_path / "a.json", "\ufeff" + squad(asked(("London", 19), ("in London", 16)), impossible))
    assert [each.answers for each in found] == [(Answer("London", 19), Answer("in London", 16)), ()]
    assert found[0] == Question("q", "Where?", TEXT, found[0].answers, True) and found[0].answers[1].end == 25
    assert not problems


def test_rows_have_lists_of_texts_and_places(tmp_path: Path) -> None:
    row = {"id": "7", "context": TEXT, "question": "Where?", "answers": {"text": ["London"], "answer_start": [19]}}
    lines = "\n".join(
        map(json.dumps, (row, {**row, "answers": {"text": [], "answer_start": []}}, {**row, "context": 1}))
    )
    found, problems = read(tmp_path / "a.jsonl", lines)
    assert [each.answers for each in found] == [(Answer("London", 19),), ()]
    assert problems == ["1 questions without a text or a question, the first in line 3"]


@each_row(
    "question, begins, problem",
    [
        (asked(("London", 20)), [19], "1 answers that are elsewhere in their text than the file says"),
        (asked(("London", 25)), [27], "1 answers that are elsewhere in their text than the file says"),
        (asked(("London", "19")), [19], "1 answers that are elsewhere in their text than the file says"),
        (asked(("london", 19)), None, "1 questions with an answer that is not in their text; none of their answers is"),
        (
            asked(("london", 19), ("London", 19)),
            [19],
            "1 questions with an answer that is not in their text; other answers are read",
        ),
        (asked((None, 19)), None, "1 questions with an answer that is not in their text; none of their answers is"),
        (asked(("London", 19), question=" "), None, "1 questions without a text or a question"),
        ("no object", None, "1 questions without a text or a question"),
    ],
)
def test_faults_are_counted_and_named(question: Any, begins: list[int] | None, problem: str, tmp_path: Path) -> None:
    found, problems = read(tmp_path / "a.json", squad(question))
    assert [answer.begin for each in found for answer in each.answers] == (begins or [])
    name = question["id"] if isinstance(question, dict) else "?"
    assert problems == [f"{problem}, the first in article 1, paragraph 1, question {name}"]


def test_articles_without_paragraphs_are_counted(tmp_path: Path) -> None:
    found, problems = read(tmp_path / "a.json", json.dumps({"data": [{}, {"paragraphs": [{"context": TEXT}]}]}))
    assert not found
    assert problems == [
        "1 parts without a list paragraphs, the first in article 1",
        "1 parts without a list qas, the first in article 2, paragraph 1",
    ]


def test_questions_of_test_sets_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(squad({"id": "q", "question": "Where?"}))
    problems = Problems()
    assert not list(SpanFiles(128, 64).read(tmp_path / "a.json", problems))
    assert list(problems.counts) == ["questions without a list of answers, as in a test set, are skipped"]


@each_row(
    "name, content, fault",
    [
        ("a.json", squad().encode("utf-16"), "is not UTF-8"),
        ("a.json", b'{"data": [', "is not valid JSON"),
        ("a.json", b'{"paragraphs": []}', "is not in SQuAD's format"),
        ("a.json", b"[]", "is not in SQuAD's format"),
        ("a.jsonl", b'{"text": "a", "question": "b"}', "has the keys text, question, but no context"),
    ],
)
def test_files_of_another_kind_are_refused(name: str, content: bytes, fault: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"{name}.*{fault}"):
        read(tmp_path / name, content)


@each_row(
    "file, questions, unanswerable, answers",
    [("squad_v2_dev_half/dev-v2.0.json", 6078, 3168, None), ("xquad_en/xquad.en.json", 1190, 0, 1190)],
)
def test_published_files_are_read_whole(file: str, questions: int, unanswerable: int, answers: int | None) -> None:
    if not (DATA / file).exists():
        pytest.skip(f"{file} is not here")
    problems = Problems()
    found = list(SpanFiles(128, 64).read(DATA / file, problems))
    assert len(found) == questions and sum(not each.answers for each in found) == unanswerable
    assert all(each.context[a.begin : a.end] == a.text for each in found for a in each.answers)
    assert answers is None or sum(len(each.answers) for each in found) == answers
    assert not problems.counts
