"""How a language writes dates and numbers, and the names of languages in it: `locales.tsv` and `languages.tsv`, which
`tools/locales.py` makes from Unicode's CLDR."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".tsv")
_LANGUAGES = _FILE.with_name("languages.tsv")
_NUMBER = re.compile(r"([-+−–]?)(\d+)(?:\.(\d+))?")
_THOUSANDS = re.compile(r"[-+−–]?\d{1,3}(?:\.\d{3})+")
_GROUPED = re.compile(r"[-+−–]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True)
class Locale:
    """How one language writes dates and numbers."""

    months: tuple[str, ...] = ()
    """The names of the months as a date has them, twelve or none."""
    alone: tuple[str, ...] = ()
    """Their names without a day."""
    date: str = "{y}-{n}-{d}"
    """A date: "d", "m", "y" are day, month and year, "l" the month's name without a day, "n" its number."""
    month_year: str = "{y}-{n}"
    month_day: str = "{n}-{d}"
    decimal: str = "."
    group: str = ""
    fewest: int = 1
    """Fewest digits before the first mark between groups: with 2, 1234 has none."""
    later: int = 3
    """Digits in a group, but for the group of thousands, which has three."""
    digits: str = ""
    """The ten digits of the language; "": the European ones."""
    languages: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The names of languages by code, as etymologies and foreign words have them before them."""

    def number(self, text: str) -> str:
        """A number as the language writes it ("1234567.8" is "1 234 567,8"); other text as it is.

        So is what is already written so: in German "1.234" is a whole number, in French "1,234" a fraction.
        """
        if len(text) < 4 and text.isdecimal() and not self.digits:  # most numbers
            return text
        if self.decimal == "." and _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        written = self.group == "." and _THOUSANDS.fullmatch(text)
        return text if written or "," in text else self.formatnum(text)

    def formatnum(self, text: str) -> str:
        """The same for text in which a point can only be that of a fraction, and commas can only part groups."""
        found = _NUMBER.fullmatch(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
        if not found:
            return text
        sign, whole, fraction = found.groups()
        if self.group and len(whole) >= 3 + self.fewest:
            first, thousands = whole[:-3], whole[-3:]
            cut = len(first) % self.later
            groups = [first[:cut], *(first[at : at + self.later] for at in range(cut, len(first), self.later))]
            whole = self.group.join([*filter(None, groups), thousands])
        written = whole + (self.decimal + fraction if fraction else "")
        return sign + self._with_digits(written)

    def written_date(self, year: str, month: str, day: str) -> str | None:
        """A date of which parts may be missing (""), the month a number or a name; None for a day without a month."""
        # The wikis' templates accept English names everywhere.
        number = int(month) if month.isdecimal() and len(month) < 3 else _english_months().get(month.lower(), 0)
        number = number if number <= 12 else 0
        name, alone = month, month
        if self.months and number:
            name, alone = self.months[number - 1], self.alone[number - 1]
        if not month:
            return None if day else self._with_digits(year) or None
        pattern = self.date if year and day else self.month_year if year else self.month_day if day else "{l}"
        # A month given by its name stands where the language writes a number.
        where_number = str(number) if number else month
        day = day.lstrip("0") if day.isdecimal() else day
        day, year = self._with_digits(day), self._with_digits(year)
        return pattern.format(d=day, m=name, l=alone, y=year, n=self._with_digits(where_number))

    def _with_digits(self, text: str) -> str:
        return text.translate(str.maketrans("0123456789", self.digits)) if self.digits else text


@cache
def locale_of(language: str) -> Locale:
    """The locale of the wiki `language`; one with months as numbers and without groups if CLDR lacks the language."""
    row = _row(_FILE, language)
    if not row:
        return Locale()
    months = tuple(row[1].split("|"))
    alone = tuple(row[2].split("|")) if row[2] else months
    date, month_year, month_day, decimal, group = row[3:8]
    languages = dict(name.split(" ", 1) for name in _row(_LANGUAGES, language)[1:])
    return Locale(
        months, alone, date, month_year, month_day, decimal, group, int(row[8]), int(row[9]), row[10], languages
    )


def _row(file: Path, language: str) -> list[str]:
    """The columns of a language; none if the file lacks it."""
    with file.open(encoding="utf-8") as lines:
        row = next((line for line in lines if line.startswith(f"{language}\t")), "")
    return row.rstrip("\n").split("\t") if row else []


@cache
def _english_months() -> dict[str, int]:
    """The numbers of the months by their English names and by the first three letters of these, in small letters."""
    names = [name.lower() for name in locale_of("en").months]
    return {form: number for number, name in enumerate(names, 1) for form in (name, name[:3])}
