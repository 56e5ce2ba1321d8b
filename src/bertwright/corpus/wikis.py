"""The codes of Wikipedias, and what users write instead: names of languages, ISO 639 codes, countries.

`wikis.tsv` has a line for each: the code, the English name of the language, and its other codes (ISO 639-2 and 639-3).
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("wikis.tsv")
_FORM = re.compile(r"[a-z]{2,}[a-z-]*")
_OTHER_NAMES = {
    "bokmal": "no", "bangla": "bn", "cantonese": "zh-yue", "castilian": "es", "farsi": "fa", "flemish": "nl",
    "gaelic": "gd", "mandarin": "zh", "myanmar": "my", "nynorsk": "nn", "oriya": "or", "simple english": "simple",
}  # fmt: skip
_COUNTRIES = {"cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "ua": "uk", "vn": "vi", "us": "en"}


@cache
def wikis() -> dict[str, str]:
    """The English name of the language of each wiki code."""
    return {row[0]: row[1] for row in _rows()}


def wiki_code(text: str) -> str:
    """Return `text` if it can be a wiki code; raises `ValueError`, naming the right code if there is one, otherwise.

    An unknown but well-formed code is accepted: new wikis are opened, and texts need not come from a wiki.
    """
    if text in wikis():
        return text
    if code := _meant(text):
        raise ValueError(f"this is not the code of a Wikipedia; did you mean {code!r} ({wikis()[code]})?")
    if not _FORM.fullmatch(text):
        raise ValueError("a wiki code has only lower-case letters and hyphens, such as 'hu' or 'zh-yue'")
    return text


@cache
def _rows() -> list[list[str]]:
    return [line.split("\t") for line in _FILE.read_text(encoding="utf-8").splitlines()]


def _meant(text: str) -> str:
    """The wiki code meant by a name, a code of another standard or a code with a region; "" where none is known."""
    word = text.strip().lower().replace("_", "-")
    others = {other: row[0] for row in _rows() if len(row) > 2 for other in row[2].split()}
    names = {name.lower(): code for code, name in wikis().items()} | _OTHER_NAMES
    for tried in (word, word.partition("-")[0], word.removesuffix("wiki")):
        for known in (wikis(), others, names, _COUNTRIES):
            if tried in known:
                return tried if known is wikis() else str(known[tried])
    # Names of up to four letters are close to many others.
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.8) if len(word) > 4 else []
    return names[near[0]] if near else ""
