"""Which entries of a vocabulary can never occur in text: the same as if each were normalised by itself."""

import random

from tests.rows import each_row

from bertwright.vocab.entries import CONTINUATION
from bertwright.vocab.load import unreachable
from bertwright.vocab.split import normalizer

ODD = [
    *["a", "A", "##b", "##B", "0", "-", "##", "é", "É", "e\u0301", "İ", "ß", "Σ", "\u0301", "##\u0301", "ﬁ"],
    *["Å", "\u212b", "中", "##中", "中国", "a中", "가", "\u1100\u1161", "\ud55c글", "क़", "𠀀", "ｱ", "ﾞ"],
    *["[unused1]", "[x", "中 ", " ", "a b", " a", "\t", "\x00", "\x1c", "\x85", "\u2028", "\u3000"],
    *["\u200b", "a\u200b", "\ufeff", "\ue000"],
]


@each_row("lower_case", [False, True])
@each_row("strip_accents", [False, True])
def test_entries_are_judged_together_as_by_themselves(lower_case: bool, strip_accents: bool) -> None:
    normal, chosen = normalizer(lower_case, strip_accents), random.Random(3)
    few = [[*chosen.sample(ODD, 3), *chosen.choices("abcdefgő", k=5)] for _ in range(200)]
    for entries in (ODD, [f"{word}{i}" for i in range(300) for word in ("x", "ő")], *few):
        pieces = [entry.removeprefix(CONTINUATION) for entry in entries if entry != "[unused1]"]
        expected = [piece for piece in pieces if normal.normalize_str(piece).strip() != piece]
        assert unreachable(entries, lower_case, strip_accents) == expected
