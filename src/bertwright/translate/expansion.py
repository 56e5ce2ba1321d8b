"""Replace variables in the words of a command, as a shell does: unquoted ones are split into words."""

from __future__ import annotations

import re
from collections.abc import Mapping

_UNQUOTED, _LITERAL, _SPLIT = "\ue000", "\ue001", "\ue002"
"""What stands for the $ of an unquoted variable, for a $ that is no variable, and for the end of a word. Unicode gives
these characters no meaning."""
_PIECES = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^'"\\]+""", re.DOTALL)
_VARIABLE = re.compile(rf"[${_UNQUOTED}](?:(\w+)|\{{(\w+)(?::?-([^}}]*))?\}})")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def marked(line: str) -> str:
    """Mark each $ of a line for `expanded`, which gets words without quotes."""

    def piece(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == "'":
            return text.replace("$", _LITERAL)
        if text[0] == '"':
            return re.sub(r"\\(.)", lambda escape: _LITERAL if escape[1] == "$" else escape[0], text, flags=re.DOTALL)
        return _LITERAL if text == r"\$" else text.replace("$", _UNQUOTED)

    return _PIECES.sub(piece, line)


def expanded(words: list[str], variables: Mapping[str, str]) -> list[str]:
    """Return the words of a marked line with their variables replaced, if they are known, and otherwise kept."""
    made: list[str] = []
    assigns = True
    for word in words:
        # Values of assignments are not split.
        assigns = assigns and (word == "export" or _ASSIGNMENT.fullmatch(word) is not None)
        text = _replaced(word, variables, split=not assigns)
        parts = [part for part in text.split(_SPLIT) if part] if _SPLIT in text else [text]
        made += [part.replace(_LITERAL, "$") for part in parts]
    return made


def _replaced(word: str, variables: Mapping[str, str], split: bool) -> str:
    def value(found: re.Match[str]) -> str:
        text, default = variables.get(found[1] or found[2]), found[3]
        splits = split and found[0].startswith(_UNQUOTED)
        if not text and default is not None:
            text = _replaced(default, variables, split)
        # An unquoted variable that is empty is no word; elsewhere, an empty one is left to the user to set.
        elif text == "" and splits and found[0] == word:
            text = " "
        elif not text:
            return f"${found[0][1:]}"
        return re.sub(r"\s+", _SPLIT, text) if splits else text

    return _VARIABLE.sub(value, word)
