"""Tables of exams: models beside each other, their differences, words, and checkpoints in the width of a terminal."""

from pathlib import Path

from bertwright.cli.exam_tables import curve_tables, score_tables
from bertwright.exams.exam import Score, share_of
from bertwright.exams.shapes import Curve, Scored, ScoreJson


def test_models_are_compared_on_the_same_items() -> None:
    worse, better = [1, 0] * 50, [1, 1, 1, 0] * 25
    scores = {
        "runs/first": [share_of(worse, "wiki", "order", 0.5)],
        "runs/second": [share_of(better, "wiki", "order", 0.5)],
        "third": [Score("wiki", "belonging", 0.25, chance=0.2)],
    }
    lines = list(score_tables(scores))
    assert lines[0].split() == ["exam", "score", "chance", "first", "second", "third"]
    assert lines[1].split()[:4] == ["wiki", "order", "50.0", "50.0"]
    assert lines[1].endswith("–") and lines[-1].startswith("Shares are in percent.")
    (difference,) = (line for line in lines if "+25.0" in line)
    assert difference.split()[-2:] == ["*", "–"]
    # Nothing to compare: other items, or one model.
    assert not any("difference" in line for line in score_tables({"a": scores["runs/first"]}))
    assert not any("difference" in line for line in score_tables({"a": scores["runs/first"], "b": scores["third"]}))


def test_words_are_lines_and_no_numbers() -> None:
    words = [Score("neighbours", f"word{i}", 0.5, text="a, b", share=False, healthy="alike") for i in range(12)]
    lines = list(score_tables({"model": words}))
    assert "neighbours (10 of 12; all: --json)" in lines
    assert "  word9: a, b" in lines
    assert not any("word10" in line or "0.5" in line for line in lines)
    assert "neighbours: alike" in lines


def test_checkpoints_fit_a_terminal() -> None:
    names = [f"a score of kind {i}" for i in range(7)]

    def score(name: str, value: float) -> ScoreJson:
        return ScoreJson(exam="blimp", name=name, value=value, interval=None, chance=0.5, healthy="", share=True)

    points = [
        Scored(checkpoint=f"step-{n}", step=n, tokens=n * 4096, hours=n / 100, tflops=n / 10, weights=str(n),
               scores=[score(name, n / 1000) for name in names if n or name != names[3]])
        for n in (0, 100, 1_000)
    ]  # fmt: skip
    lines = list(curve_tables(Curve(suite="own", content="", points=points), Path("runs/mine")))
    assert max(map(len, lines)) <= 80
    assert lines[0] == "blimp"
    heads = [line for line in lines if line.lstrip().startswith("step")]
    assert len(heads) == 4
    assert [name for name in names if any(name in head for head in heads)] == names
    (row,) = {line.split()[0]: line for line in lines if line.split()[:1] == ["1,000"] and "4.1 M" in line}.values()
    assert "100 TFLOP" in row
    assert sum("–" in line for line in lines) == 1
