"""Files of questions with choices: every layout that people publish, and what is wrong in them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.examples.problems import Problems
from bertwright.tasks.choice.files import Question, find_labelling, read_choices, read_labelled, read_layout
from bertwright.tasks.choice.layout import CAUSES, Layout

SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
HU_COPA = SHARED / "data" / "eval" / "hu_copa"
SWAG = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    "0,a_1,1,A man runs. He,A man runs.,He,gold,stops.,sings.,sleeps.,flies.,0\n"
    "1,a_2,2,A dog runs. It,A dog runs.,It,gold,sings.,reads.,barks.,flies.,2\n"
)
FULL = (
    "video-id,fold-ind,startphrase,gold-ending,distractor-0,distractor-1,distractor-2,distractor-3,gold-source,"
    "gold-type,distractor-0-type,distractor-1-type,distractor-2-type,distractor-3-type,sent1,sent2\n"
    "a_1,1,A man runs. He,stops.,sings.,sleeps.,flies.,,gold,pos,unl,unl,unl,,A man runs.,He\n"
)
COPA = {"premise": "A man ran.", "choice1": "He fell.", "choice2": "He sat.", "question": "effect", "idx": 7}
RACE = {"article": "A dog.", "question": "Who?", "options": ["A man", "A dog", "No"], "answer": "B", "example_id": "x"}
ARC = {"id": "q", "question": "Why?", "choices": {"text": ["Yes", "No"], "label": ["1", "2"]}, "answerKey": "2"}
ARC_FILE = {
    "id": "q",
    "question": {"stem": "Why?", "choices": [{"text": "Yes", "label": "A"}, {"text": "No", "label": "B"}]},
    "answerKey": "B",
}
HELLA = {"ctx_a": "A", "ctx_b": "b", "ctx": "A b", "endings": ["c", "d", "e"], "label": "1", "ind": 3}
SOCIAL = {"context": "A fell.", "question": "Why?", "answerA": "x", "answerB": "y", "answerC": "z", "label": "3"}
PIQA = {"goal": "Cut.", "sol1": "Saw.", "sol2": "Eat.", "label": 1}
SCIQ = {"question": "Why?", "distractor3": "c", "distractor1": "a", "distractor2": "b", "correct_answer": "d"}


def read(path: Path, rows: Any, wanted: Layout | None = None) -> tuple[list[Question], Problems]:
    lines = rows if isinstance(rows, str) else "\n".join(map(json.dumps, rows))
    path.write_text(lines, encoding="utf-8")
    problems = Problems()
    return list(read_choices(path, wanted or Layout(), problems)), problems


@each_row(
    "name, rows, context, endings, label",
    [
        ("a.csv", SWAG, "A man runs.", ["He stops.", "He sings.", "He sleeps.", "He flies."], 0),
        (
            "a.jsonl",
            [{**COPA, "label": n} for n in (1, 0)],
            f"A man ran. {CAUSES['effect']}",
            ["He fell.", "He sat."],
            1,
        ),
        (
            "a.jsonl",
            [{**COPA, "label": n} for n in (1, 2)],
            f"A man ran. {CAUSES['effect']}",
            ["He fell.", "He sat."],
            0,
        ),
        ("a.jsonl", [RACE], "A dog.", ["Who? A man", "Who? A dog", "Who? No"], 1),
        ("a.jsonl", [ARC], "Why?", ["Yes", "No"], 1),
        ("a.jsonl", [ARC_FILE], "Why?", ["Yes", "No"], 1),
        ("a.jsonl", [HELLA, {**HELLA, "label": "0"}], "A b", ["c", "d", "e"], 1),
        ("a.jsonl", [SOCIAL], "A fell.", ["Why? x", "Why? y", "Why? z"], 2),
        ("a.jsonl", [PIQA, {**PIQA, "label": 0}], "Cut.", ["Saw.", "Eat."], 1),
        ("a.csv", "question,A,B,C,answer\nWhy?,x,y,z,C\n", "Why?", ["x", "y", "z"], 2),
        ("a.csv", "Question,Option A,Option B,Correct Option\nWhy?,x,y,B\n", "Why?", ["x", "y"], 1),
        (
            "a.jsonl",
            [{"prompt": "Why?", "options": [{"key": "A", "text": "x"}, {"key": "B", "text": "y"}], "answerKey": "B"}],
            *("Why?", ["x", "y"], 1),
        ),
        ("a.csv", 'text,options,answer\nWhy?,"[""x"", ""y""]",y\n', "Why?", ["x", "y"], 1),
        ("a.tsv", "premise\toption_a\toption_b\tlabel\nWhy?\t3\t4\t4\n", "Why?", ["3", "4"], 1),
        ("a.jsonl", [{"question": "Why?", "choices": ["x", "y"], "label": None}], "Why?", ["x", "y"], None),
    ],
)
def test_layouts_are_found(
    name: str, rows: Any, context: str, endings: list[str], label: int | None, tmp_path: Path
) -> None:
    questions, problems = read(tmp_path / name, rows)
    assert (questions[0].context, questions[0].endings, questions[0].label) == (context, endings, label)
    assert not problems.counts


@each_row("rows", [FULL, [SCIQ]])
def test_a_right_choice_of_its_own_column_is_put_among_the_others(rows: Any, tmp_path: Path) -> None:
    """At a place that depends on its texts, not always the first."""
    (question,), problems = read(tmp_path / ("a.csv" if rows == FULL else "a.jsonl"), rows)
    right = "stops." if rows == FULL else "d"
    assert len(question.choices) == 4 and question.label == question.choices.index(right) and not problems.counts
    many = [{**SCIQ, "question": f"Why {number}?"} for number in range(64)]
    labels = [each.label for each in read(tmp_path / "b.jsonl", many)[0]]
    assert set(labels) == {0, 1, 2, 3}


def test_the_numbers_of_labels_are_found_from_all_of_them(tmp_path: Path) -> None:
    """A wrong one does not change the numbers of the others."""
    for number, labels in ((0, [0, 1, 0, 2]), (1, [2, 1, 0, 2, 2])):
        questions, problems = read(tmp_path / "a.jsonl", [{**PIQA, "label": label} for label in labels])
        assert [each.label for each in questions] == [label - number for label in labels if 0 <= label - number < 2]
        assert problems.counts == {"questions whose label is not one of their choices": 1}
    with pytest.raises(DataError, match=r"may count from 0 or from 1.*train\.objective\.first=0 or 1"):
        read(tmp_path / "a.jsonl", [PIQA, PIQA])
    (question, _), _ = read(tmp_path / "a.jsonl", [PIQA, PIQA], Layout(first=1))
    assert question.label == 0


def test_several_letters_are_no_choice(tmp_path: Path) -> None:
    rows = [{"context": "A b.", "choices": ["x", "y"], "label": label} for label in ("B", "a", "AB")]
    questions, problems = read(tmp_path / "a.jsonl", rows)
    assert [each.label for each in questions] == [1, 0]
    assert dict(problems.first) == {"questions whose label is not one of their choices": "line 3: 'AB'"}


def test_bad_questions_are_counted_and_named(tmp_path: Path) -> None:
    good = {"context": "A b.", "choices": ["x", "y"], "label": "x"}
    bad = [
        {**good, "label": "z"},
        {**good, "choices": ["x"]},
        {**good, "choices": ["x", "x "]},
        {**good, "context": None},
        {**good, "choices": "x"},
        {**good, "label": -1},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [good, good, *bad])))
    problems = Problems()
    assert len(list(read_labelled(tmp_path / "a.jsonl", Layout(), problems))) == 2
    assert sorted(problems.sentences()) == [
        "1 questions with fewer than two choices, the first in line 4",
        "1 questions with two equal choices, the first in line 5",
        "1 questions without a label, as in a test set, are skipped, the first in line 8",
        "1 questions without a text in context, the first in line 6",
        "2 questions whose label is not one of their choices, the first in line 3: 'z'",
    ]


def test_choices_may_be_missing_and_differ_in_number(tmp_path: Path) -> None:
    lines = "context,choice0,choice1,choice2,label\nA,x,y,z,2\nB,x,,z,2\nC,x,y,,0\nD,x,y,,2\n"
    questions, problems = read(tmp_path / "a.csv", lines)
    assert [(each.choices, each.label) for each in questions] == [
        (("x", "y", "z"), 2),
        (("x", "z"), 1),
        (("x", "y"), 0),
    ]
    assert dict(problems.first) == {"questions whose label is not one of their choices": "line 5: '2'"}


@each_row(
    "wanted, message",
    [
        (Layout(choices=("a", "b")), r"not 'a'\. Name it: train\.objective\.choices"),
        (Layout(context=("text",)), r"not 'text'\. Name it: train\.objective\.context=\[\"NAME\"\]"),
        (Layout(label="right"), r"not 'right'\. Name it: train\.objective\.label=NAME"),
    ],
)
def test_wrong_columns_are_named(wanted: Layout, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(SWAG)
    with pytest.raises(DataError, match=message):
        list(read_labelled(tmp_path / "a.csv", wanted, Problems()))
    (tmp_path / "b.csv").write_text("text,label\na b,1\n")
    with pytest.raises(DataError, match=r"b\.csv has the columns 'text', 'label', none of which .* of the choices"):
        read_layout(tmp_path / "b.csv", Layout())


def test_columns_that_the_user_names_are_used(tmp_path: Path) -> None:
    wanted = Layout(("premise",), ("question",), ("choice2", "choice1"), words={"effect": "so"}, first=0)
    (question,), _ = read(tmp_path / "a.jsonl", [{**COPA, "label": 1}], wanted)
    assert (question.id, question.context, question.endings) == ("7", "A man ran.", ["so He sat.", "so He fell."])
    assert question.choices[question.label or 0] == "He fell."


@pytest.mark.skipif(not HU_COPA.is_dir(), reason="no real data; set BERTWRIGHT_SHARED")
def test_hucopa_counts_from_one(tmp_path: Path) -> None:
    problems, layout = Problems(), read_layout(HU_COPA / "train.json", Layout())
    assert find_labelling([HU_COPA / "train.json"], layout) == ("number", 1)
    counts = [len(list(read_labelled(HU_COPA / f"{name}.json", Layout(), problems))) for name in ("train", "val")]
    assert counts == [400, 100] and not problems.counts
    test = list(read_choices(HU_COPA / "test.json", Layout(), problems))
    assert len(test) == 500 and {each.label for each in test} == {None}
