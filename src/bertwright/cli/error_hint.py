"""The hint of an error for programs: the part of its message that says what to do."""

from __future__ import annotations

import re

_DESCRIPTION = re.compile(r" It is described as: \".*\"$")
_FOUND = re.compile(r"(?:; (?:got|given:|found:) | \(got ).*")
"""The value that was given, at the end of a sentence."""
_NEXT_SENTENCE = re.compile(r"(?<=[.?!])(?<!\.\.\.) (?![a-z(])")
"""The space between two sentences; one after an abbreviation or a dotted key is none."""
_REMEDY = re.compile(r"(?:give|it is a|leave|lower|pip install|remove|run|set|use|write)\b")
"""How the words after a colon begin if they are a remedy; else they say what is wrong with the key before it."""


def hint(message: str) -> str:
    """The hint of a message: a line for each of its lines, by convention the last sentence or, of a single one, the
    last clause, and empty if that is no remedy; "" if no line has one.
    """
    hints = [_of_line(line) for line in message.splitlines()]
    return "\n".join(hints) if any(hints) else ""


def _of_line(line: str) -> str:
    *before, last = _NEXT_SENTENCE.split(_DESCRIPTION.sub("", line))
    if before:
        return last
    _, semicolon, clause = _FOUND.sub("", last).rpartition("; ")
    after_colon = clause.rpartition(": ")[2]
    return clause if semicolon else after_colon if _REMEDY.match(after_colon) else ""
