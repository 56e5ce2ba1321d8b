"""What became of all documents and bytes: the lines at the end of a run."""

from typing import Any

from tests.rows import each_row

from bertwright import Recipe
from bertwright.corpus.balance import LEFT_OUT, balance
from bertwright.corpus.filter import REASONS
from bertwright.report.corpus import _LEFT_OUT


def counts(**dropped: int) -> dict[str, Any]:
    """Counts of a corpus of a thousand documents of ten bytes, of which so many were dropped for each reason."""
    kept = 1000 - sum(dropped.values())
    return {
        "documents": 1000,
        "kept": kept,
        "dropped": dropped,
        "namespaces": {},
        **dict.fromkeys(LEFT_OUT, 0),
        "removed_paragraphs": {},
        "bytes": {
            "documents": 10_000,
            "kept": 10 * kept,
            "dropped": {name: 10 * count for name, count in dropped.items()},
            **dict.fromkeys(LEFT_OUT, 0),
            "duplicate_paragraphs": 0,
            "removed_paragraphs": 0,
        },
    }


def lines(**dropped: int) -> list[str]:
    return list(balance(counts(**dropped)))


def test_table_columns_align_in_80_columns() -> None:
    shown = lines(min_words=99, language=1)
    assert all(len(line) <= 80 for line in shown)
    assert {line.rindex(" 9") for line in shown if line.startswith(("too few words", "kept"))} != {-1}
    assert [line.split()[-4:] for line in shown[1:4]] == [
        ["900", "90.0%", "9,000", "90.0%"],
        ["99", "9.9%", "990", "9.9%"],
        ["1", "0.1%", "10", "0.1%"],
    ]
    assert shown[-1].split() == ["all", "1,000", "10,000"]


def test_namespaces_passed_over_are_in_the_table() -> None:
    namespaces = {f"Namespace {'of a long name ' * 3}{i}": {"pages": 9 - i, "bytes": 1000 * i} for i in range(9)}
    shown = list(balance({**counts(), "namespaces": namespaces}))
    assert shown[-8].split() == ["corpus:", "namespaces", "passed", "over", "pages", "wikitext"]
    assert shown[-7].split()[-2:] == ["1", "8,000"]
    assert shown[-1].split() == ["3", "others", "24", "3,000"]
    assert all(len(line) <= 80 for line in shown)


def test_large_loss_warns_with_worst_reason_and_remedy() -> None:
    assert not any("WARNING" in line for line in lines(min_words=60, language=40))
    (warning,) = [line for line in lines(min_words=60, language=41) if "WARNING" in line]
    assert "dropped 10.1% of the text" in warning and "'min_words'" in warning
    assert REASONS["min_words"].remedy in warning and "--dropped" in warning


@each_row(
    ("name", "says"),
    [
        ("duplicates", "dropped as documents with the same text as an earlier one. Most likely cause: a source is "
                       "named twice. Set corpus.deduplicate.documents=false to keep them."),
        ("near_duplicates", "dropped as documents with nearly the same text as an earlier one. Most likely cause: "
                            "many pages follow the same template. Set corpus.deduplicate.near_documents=false to "
                            "keep them."),
        ("emptied", "dropped as documents too short without repeated paragraphs. Most likely cause: pages are made "
                    "of the same parts. Set corpus.deduplicate.paragraphs=false to keep them."),
        ("duplicate_paragraphs", "dropped as repeated paragraphs. Most likely cause: pages are made of the same "
                                 "parts. Set corpus.deduplicate.paragraphs=false to keep them."),
    ],
)  # fmt: skip
def test_more_than_a_tenth_of_repetitions_is_a_warning(name: str, says: str) -> None:
    some = counts()
    some["bytes"][name] = 1000
    assert not any("WARNING" in line for line in balance(some))
    some["bytes"][name] = 1234
    (warning,) = [line for line in balance(some) if "WARNING" in line]
    assert warning == f"corpus: WARNING: 12.3% of the text was {says}"
    key = warning.split("corpus.")[1].split(" ")[0]
    assert Recipe.load("demo", [f"corpus.{key}"])


@each_row(
    ("reason", "key"),
    [
        ("reference", "references=keep"),
        ("email", "emails=keep"),
        ("boilerplate", "boilerplate=false (and no patterns)"),
    ],
)
def test_more_than_a_tenth_of_removed_paragraphs_is_a_warning(reason: str, key: str) -> None:
    some = counts()
    some["bytes"]["removed_paragraphs"], some["removed_paragraphs"] = 1100, {"phone": 2, reason: 3}
    assert not any("WARNING" in line for line in balance(some))
    some["bytes"]["removed_paragraphs"] = 2500
    (warning,) = [line for line in balance(some) if "WARNING" in line]
    assert warning == (
        f"corpus: WARNING: 20.0% of the text was removed as single paragraphs, most of them as {reason!r}. Set "
        f"corpus.filter.{key} to keep them."
    )
    assert Recipe.load("demo", [f"corpus.filter.{key.partition(' ')[0]}"])


def test_small_losses_that_are_large_together_are_a_warning() -> None:
    some = counts(min_words=30, language=20)
    some["bytes"] |= {"duplicates": 300, "duplicate_paragraphs": 200, "not_drawn": 5000}
    assert not any("WARNING" in line for line in balance(some))
    some["bytes"] |= {"removed_paragraphs": 900, "emptied": 950}
    (warning,) = [line for line in balance(some) if "WARNING" in line]
    assert warning.startswith(
        "corpus: WARNING: 26.1% of the text was lost, for several reasons: 8.7% dropped as documents too short without "
        "repeated paragraphs, 8.3% removed as single paragraphs, 2.8% "
    )
    some["bytes"]["emptied"] = 2000
    (warning,) = [line for line in balance(some) if "WARNING" in line]
    assert "for several reasons" not in warning, "a large loss has a warning of its own"


def test_what_was_not_drawn_was_meant() -> None:
    some = counts()
    some["bytes"]["not_drawn"] = 5000
    assert not any("WARNING" in line for line in balance(some))


def test_what_did_not_happen_has_no_line() -> None:
    text = "\n".join(lines())
    assert not any(words in text for words in (*LEFT_OUT.values(), "paragraphs"))
    some = counts()
    some["near_duplicates"], some["bytes"]["near_duplicates"] = 3, 30
    some["bytes"]["duplicate_paragraphs"], some["removed_paragraphs"] = 77, {"email": 2, "reference": 3}
    text = "\n".join(balance(some))
    assert "nearly the same text as an earlier one" in text and "\nsame text" not in text
    assert "repeated paragraphs of kept documents" in text and "5 paragraphs removed before" in text


def test_empty_corpus_has_no_shares() -> None:
    empty = counts()
    empty["documents"] = empty["kept"] = empty["bytes"]["documents"] = empty["bytes"]["kept"] = 0
    assert [line.split() for line in balance(empty)][1:] == [["kept", "0", "0"], ["all", "0", "0"]]


def test_report_and_terminal_agree_on_losses() -> None:
    """The report imports no stage, so it has the words once more: the same ones, in the same order."""
    assert list(_LEFT_OUT.items()) == list(LEFT_OUT.items())
