"""The table of a certificate, for terminals, model cards and reports."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.export.certify.shapes import Certificate, Row
from bertwright.page.markup import Content, element, p, plain_table

HEAD = ("runtime", "ids", "differ", "cosine", "best %", "ms", "MB", "")
_WORDS = {
    "reference": "reference",
    "agrees": "agrees",
    "known": "known",
    "differs": "DIFFERS",
    "refused": "cannot",
    "missing": "not tried",
    "failed": "FAILED",
    "loads": "by rules",
}


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a runtime's row, as text; empty where nothing was measured."""
    ids = ""
    if "lines" in row:
        ids = f"{row['other_ids']:,} other" if row["other_ids"] else "equal"
    outputs = row.get("outputs", {}).values()
    first = row.get("same_first")
    return (
        f"{row['title']} {row['version'].partition(' (')[0]}".strip(),
        ids,
        f"{max(each['largest'] for each in outputs):.0e}" if outputs else "",
        f"{min(each['cosine'] for each in outputs):.5f}" if outputs else "",
        "" if first is None else f"{100 * first:.1f}",
        f"{row['milliseconds']:.2f}" if "milliseconds" in row else "",
        f"{row['memory_bytes'] / 1e6:,.0f}" if "memory_bytes" in row else "",
        _WORDS[row["status"]],
    )


def explanations(certificate: Certificate) -> Iterator[str]:
    """How many masked words each runtime guesses; why runtimes differ, refused or failed, with small examples."""
    if right := [row for row in certificate["rows"] if "right" in row]:
        shares = "; ".join(f"{row['title']} {100 * row['right']:.1f} %" for row in right)
        yield f"Words behind [MASK] that are the best guess, of {right[0]['guessed']:,}: {shares}."
    seen = set[str]()
    for row in certificate["rows"]:
        # Some say the same: one program in three precisions lacks the same, and has the same tokenizer.
        titles = [each["title"] for each in certificate["rows"] if each["why"] == row["why"]]
        if row["why"] and row["title"] == titles[0]:
            yield f"{'; '.join(titles)}: {row['why']}"
        for example in row.get("examples", []):
            tokens = f"{' '.join(example['given'])} instead of {' '.join(example['expected'])}"
            reason = f". {example['reason']}" if example["reason"] else ""
            note = f"{example['text']!r}: {tokens}{reason}"
            if note not in seen:
                seen.add(note)
                yield note


def certificate_section(certificate: Certificate) -> list[Content]:
    """The section of a model card or a report."""
    # What a machine lacks is nothing to those who read of the model.
    certificate = {**certificate, "rows": [row for row in certificate["rows"] if row["status"] != "missing"]}
    notes = [element("li", note) for note in explanations(certificate)]
    return [
        p(
            f"The same lines in every runtime ({certificate['lines']}), one after another, on "
            f"{certificate['machine']}, compared with transformers in float32: whether the token ids are equal; the "
            "largest difference of an output, as a share of its largest number where that is above 1; the mean cosine "
            "of the outputs of a line; how often the best word, class or nearest line is the same; the median time of "
            "a line; and the memory that it takes."
        ),
        plain_table([cells(row) for row in certificate["rows"]], HEAD),
        *([element("ul", notes)] if notes else []),
    ]
