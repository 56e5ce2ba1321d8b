"""The rule of the quality benchmark by which a template call in a sentence is a hole."""

from benchmarks.cleaners.holes import Call, Piece, calls, output, squeeze
from benchmarks.cleaners.silent import is_silent
from tests.rows import each_row

AREA: list[Piece] = ["The island covers ", ["convert"], " in the middle of the lake."]


def judged(line: list[Piece]) -> list[tuple[str, ...]]:
    return [call.names for call in calls(line)]


def test_a_call_between_words_of_a_sentence_is_judged_by_its_neighbours() -> None:
    assert list(calls(AREA)) == [Call(("convert",), "Theislandcovers"[-20:], "inthemiddleofthelake"[:20])]


@each_row(
    "line",
    [
        ["* The island covers ", ["convert"], " in the middle of the lake."],
        ["Area: ", ["convert"], " in total"],
        ["The island covers in the middle of the lake ", ["convert"]],
        [["convert"], " in the middle of the great lake."],
        ["The island covers a lot ", ["Cite_web"], " in the middle of the lake."],
        ["The island covers ", None, ["convert"], " in the middle of the lake."],
        ["In the great island it is ", ["a"], " in ", ["b"], " then it goes on"],
    ],
)
def test_what_is_not_judged(line: list[Piece]) -> None:
    assert ("convert",) not in judged(line)
    assert ("b",) not in judged(line)


def test_leading_calls_are_no_part_of_the_line() -> None:
    assert judged([["Infobox"], *AREA]) == [("convert",)]


def test_neighbouring_calls_are_one() -> None:
    line: list[Piece] = ["The old city of Pest (", ["lang-de"], "; ", ["sfn"], ["IPA"], ") lies on the river."]
    assert judged(line) == [("lang-de", "IPA")]


@each_row(
    ("text", "shown"),
    [
        ("The island covers 93 km² in the middle of the lake.", "93km²"),
        ("The island covers in the middle of the lake.", ""),
        ("The island covers  ( ), in the middle of the lake.", ""),
        ("The island is gone.", None),
        ("The island covers much. Then The island covers 5 in the middle of the lake.", "5"),
    ],
)
def test_output_is_what_stands_between_the_neighbours(text: str, shown: str | None) -> None:
    (call,) = calls(AREA)
    assert output(call, squeeze(text)) == shown


def test_neighbours_too_far_apart_are_not_found() -> None:
    (call,) = calls(AREA)
    assert output(call, squeeze("The island covers" + "x" * 301 + "in the middle of the lake.")) is None
    assert output(call, squeeze("The island covers" + "x" * 300 + "in the middle of the lake.")) == "x" * 300


def test_silent_templates_are_footnotes_and_maintenance_in_any_spelling() -> None:
    assert all(map(is_silent, ["Cite_web", "sfn", "Citation  needed", "ওয়েব উদ্ধৃতি", "джерело", "ref-en", "nbsp"]))
    assert all(map(is_silent, ["Lisa viide", "Erref behar", "Lippukuva", "Hvem?", "sv ikon", "Якір", "de"]))
    assert not any(map(is_silent, ["convert", "lang", "lang-de", "IPA", "as of", "circa", "formatnum:5", ""]))


@each_row(
    ("name", "argument", "call", "language", "silent"),
    [
        ("x", "", "{{x|date=May 2010}}", "sco", True),
        ("x", "", "{{x|fecha=mayo de 2010}}", "ast", True),
        ("x", "", "{{x|date=5 May 2010}}", "sco", False),
        ("x", "May 2010", "{{x|May 2010}}", "sco", False),
        ("lv", "", "{{lv}}", "et", True),
        ("kb", "", "{{kb}}", "sv", True),
        ("kb", "", "{{kb}}", "nl", False),
        ("refnec", "text that lacks a source", "{{refnec|text that lacks a source}}", "fr", False),
        ("lähde", "Mika", "{{lähde|Mika}}", "fi", True),
        ("de", "Wort", "{{de|Wort}}", "eo", False),
        ("zh", "", "{{zh|c=民航}}", "en", False),
        ("rus", "", "{{rus}}", "uk", True),
        ("RUS", "", "{{RUS}}", "uk", False),
        ('"', "said", '{{"|said}}', "de", False),
    ],
)
def test_form_arguments_and_wiki_decide(name: str, argument: str, call: str, language: str, silent: bool) -> None:
    assert is_silent(name, argument, call, language) is silent
