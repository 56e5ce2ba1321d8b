"""Rules for single paragraphs of web text: remove boilerplate, and mask or remove personal data.

Boilerplate is what the C4 dataset drops (Raffel et al. 2020 §2.2: lines with "javascript" or a phrase of cookie and
privacy notices, pages with "lorem ipsum" or a curly bracket); unlike C4, only the paragraph is removed in every case.
E-mail addresses and telephone numbers are recognised by their form; for telephone numbers it is an international
prefix, an area code in brackets or with a leading zero, North American groups of 3-3-4 digits, or a word such as "Tel."
before the number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from bertwright.core.errors import RecipeError
from bertwright.corpus.characters import compose
from bertwright.corpus.config import FilterConfig

# Time limit for one pattern in one paragraph, in seconds; a millisecond is usual.
_LONGEST_SEARCH = 20
_BOILERPLATE = (
    r"javascript|lorem ipsum|[{}]|terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
)
_LOCAL = r"[\w.%+-]"
# The look-behind and the bounds keep the time linear: otherwise a search would start at each letter of a long run.
_EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}{{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}[^\W\d_]{{2,24}}(?![\w-])")
_BETWEEN = r"(?:[ \u00a0]?[()./–-]{1,2}[ \u00a0]?|[ \u00a0])?"
# Seven to fifteen digits in groups: a candidate for a telephone number.
_DIGITS = re.compile(rf"(?<![\w.,+(–-])(?:\+|\(\+?)?\d(?:{_BETWEEN}\d){{6,14}}(?![\w–-])")
_CALLED = re.compile(r"(?:\b(?:tel|phone|telefon\w*|fax|mobil\w*|call|handy)|\b(?:тел|моб|факс)|τηλ)\W{0,3}\Z", re.I)
# Dates, amounts and book numbers are groups of digits too; a leading zero or brackets indicate an area code.
_AREA = re.compile(
    r"\((?:0[\d -]{1,5}|\d{2,3})\)\s?\d{2,4}[ -]?\d{3,4}\Z|0\d{1,4}[ /-]\d{2,4}[ -]?\d{2,4}(?:[ -]?\d{2,4})?\Z"
)
_AMERICAN = re.compile(r"(?:1[ -])?(?:\d{3}-\d{3}-|\(\d{3}\) ?\d{3}-|\d{3}\.\d{3}\.)\d{4}\Z")


class ParagraphRules:
    """The paragraph rules of one corpus."""

    def __init__(self, config: FilterConfig) -> None:
        self._boilerplate = re.compile(_BOILERPLATE, re.IGNORECASE) if config.boilerplate else None
        self._patterns = [_searcher(pattern) for pattern in config.patterns]
        self._personal: list[tuple[str, str, Callable[[str], tuple[str, int]]]] = [
            (name, rule, mask)
            for name, rule, mask in (("email", config.emails, _mask_emails), ("phone", config.phones, _mask_phones))
            if rule != "keep"
        ]

    @property
    def active(self) -> bool:
        """Whether there is any rule to apply."""
        return bool(self._boilerplate or self._patterns or self._personal)

    def apply(self, paragraph: str, counts: Counter[str]) -> str:
        """Apply the rules; returns the paragraph, masked if necessary, or "" if it is removed.

        Adds to `counts`: `removed.boilerplate`, `removed.email` and `removed.phone` count paragraphs, `masked.email`
        and `masked.phone` count addresses and numbers.
        """
        boilerplate = self._boilerplate is not None and self._boilerplate.search(paragraph) is not None
        if boilerplate or any(count(paragraph) for count in self._patterns):
            counts["removed.boilerplate"] += 1
            return ""
        for name, rule, mask in self._personal:
            paragraph, count = mask(paragraph)
            if count and rule == "drop":
                counts[f"removed.{name}"] += 1
                return ""
            if count:
                counts[f"masked.{name}"] += count
        return paragraph


def _searcher(pattern: str) -> Callable[[str], bool]:
    """Return the function that searches a paragraph for the user's pattern; it raises `RecipeError` on a timeout."""
    import regex  # imported only where there are patterns

    # Python's own `re` has no timeout, and a pattern such as `(a+)+b` may take exponential time.
    compiled = regex.compile(compose(pattern), regex.IGNORECASE)

    def matches(paragraph: str) -> bool:
        try:
            return compiled.search(paragraph, timeout=_LONGEST_SEARCH) is not None
        except TimeoutError:
            raise RecipeError(
                f"corpus.filter.patterns: {pattern!r} was searched for {_LONGEST_SEARCH} seconds in one paragraph "
                f"of {len(paragraph):,} characters: nested repeats, such as (a+)+, take exponential time. Write the "
                "pattern without them."
            ) from None

    return matches


def _mask_emails(text: str) -> tuple[str, int]:
    return _EMAIL.subn("name@example.com", text) if "@" in text else (text, 0)


def _mask_phones(text: str) -> tuple[str, int]:
    """The text with telephone numbers masked, and their number."""
    pieces, end = list[str](), 0
    for candidate in _DIGITS.finditer(text):
        if _is_phone(candidate.group(), text[max(0, candidate.start() - 16) : candidate.start()]):
            pieces += text[end : candidate.start()], "000 000 000"
            end = candidate.end()
    return "".join([*pieces, text[end:]]), len(pieces) // 2


def _is_phone(number: str, before: str) -> bool:
    digits = sum(map(str.isdigit, number))
    if _CALLED.search(before):
        return True
    if number.startswith(("+", "(+")) or (number.startswith("00") and not number.isdigit()):  # or it may be an ISBN
        return digits >= 9
    return bool(_AMERICAN.match(number) or (digits >= 9 and _AREA.match(number)))
