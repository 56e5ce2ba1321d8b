"""Write `corpus/wikitext/locales.tsv`: how each wiki's language writes dates and numbers, from Unicode's CLDR; and
`languages.tsv`: the names of languages in those of wikis whose templates print them.

`npm pack cldr-dates-full cldr-numbers-full cldr-localenames-full`, unpack each archive into a folder of its name in
FOLDER, then `python -m tools.locales FOLDER`. What MediaWiki prints otherwise is in `_MEDIAWIKI`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bertwright.core.files import write_atomic
from bertwright.corpus.wikis import wikis

TARGET = Path(__file__).parents[1] / "src/bertwright/corpus/wikitext/locales.tsv"
_NAMES = TARGET.with_name("languages.tsv")
_NAMES_HEAD = """\
# Names of languages in the language of a wiki whose {{lang-xx}} prints them; written by tools/locales.py. The code of
# the wiki, then each code and name.
# Source: CLDR {version}, (c) 1991-2026 Unicode, Inc., Unicode License V3 (Unicode-3.0).
"""
# The wikis whose tables have the form {0:language} for {{lang-xx}}; English has its own names.
_NAMED_IN = ("ar", "bn", "el", "es", "fa", "hi", "id", "ja", "ko", "pt", "sv", "tr", "vi", "zh")
# Languages without a wiki whose words articles quote.
_OLD = ("akk", "cop", "egy", "enm", "fro", "goh", "grc", "non", "ota", "peo", "phn", "pro", "sux", "syc", "syr", "uga")
HEAD = """\
# How languages write dates and numbers, by the code of the wiki; written by tools/locales.py. Columns: months in a
# date, months alone (empty: the same), a date, month and year, month and day (d, m, y: the parts; l: the month alone;
# n: its number), decimal mark, mark between groups of digits, fewest digits before a group, size of the second group
# and later ones, digits.
# Source: CLDR {version}, (c) 1991-2026 Unicode, Inc., Unicode License V3 (Unicode-3.0).
"""

# Codes of wikis that differ from those of CLDR, and languages that CLDR lacks but whose dates are those of another.
_CODES = {"simple": "en", "als": "gsw", "zh-yue": "yue", "tl": "fil", "sh": "sr-Latn", "arz": "ar", "fiu-vro": "et"}
# languages/messages/Messages*.php of MediaWiki: Spanish and Portuguese group digits by spaces, and the Arabic and Hindi
# wikis write European digits. Russian, Ukrainian and Vietnamese dates have no "г." or "р." and a "năm" on their wikis;
# Esperanto's are "5-a de majo 1990".
_MEDIAWIKI = {
    "es": {"group": "\xa0"},
    "pt": {"group": "\xa0"},
    "ar": {"digits": "", "decimal": ".", "group": ","},
    "arz": {"digits": "", "decimal": ".", "group": ","},
    "ru": {"date": "{d} {m} {y}", "month_year": "{l} {y}"},
    "uk": {"date": "{d} {m} {y}", "month_year": "{l} {y}"},
    "vi": {"date": "{d} {m} năm {y}"},
    "eo": {"date": "{d}-a de {m} {y}", "month_day": "{d}-a de {m}"},
}
# Zero of the numbering systems that CLDR uses by default in a language with a wiki.
_ZEROS = {"arab": 0x660, "arabext": 0x6F0, "beng": 0x9E6, "deva": 0x966, "mymr": 0x1040, "olck": 0x1C50, "nkoo": 0x7C0}
_DIGITS = {system: "".join(map(chr, range(zero, zero + 10))) for system, zero in _ZEROS.items()}
_PARTS = {"MMMM": "m", "LLLL": "l", "M": "n", "MM": "n", "L": "n"}
_LETTERS = re.compile(r"'([^']*)'|(y+|M+|L+|d+)")


def main() -> None:
    """Write the file from the packages in the folder that is the argument."""
    folder = Path(sys.argv[1])
    version = _read(folder / "cldr-dates-full/package.json")["version"]
    found = ((code, _row(folder, code)) for code in sorted(wikis()))
    lines = [f"{code}\t{row}\n" for code, row in found if row]
    write_atomic(TARGET, (HEAD.replace("{version}", version) + "".join(lines)).encode())
    names = [f"{code}\t{_names(folder, code)}\n" for code in _NAMED_IN]
    write_atomic(_NAMES, (_NAMES_HEAD.replace("{version}", version) + "".join(names)).encode())
    sys.stdout.write(f"{len(lines)} languages\n")


def _names(folder: Path, code: str) -> str:
    """The codes of languages, each followed by its name in the language of the wiki."""
    file = folder / "cldr-localenames-full/main" / code / "languages.json"
    found = _read(file)["main"][code]["localeDisplayNames"]["languages"]
    own = {known: _CODES.get(known, known) for known in (*sorted(wikis()), *_OLD)}
    # In Greek and in Vietnamese, where they begin with "Tiếng", they have a capital only in a list.
    lower = code in ("el", "vi")
    return "\t".join(
        f"{known} {found[name][0].lower() + found[name][1:] if lower else found[name]}"
        for known, name in own.items()
        if name in found
    )


def _row(folder: Path, code: str) -> str:
    """The columns of one wiki; "" if CLDR has no names of months in its language."""
    name = _CODES.get(code, code)
    dates, numbers = (
        folder / package / "main" / name / file
        for package, file in (("cldr-dates-full", "ca-gregorian.json"), ("cldr-numbers-full", "numbers.json"))
    )
    if not dates.exists():
        return ""
    calendar = _read(dates)["main"][name]["dates"]["calendars"]["gregorian"]
    within, alone = (list(calendar["months"][place]["wide"].values()) for place in ("format", "stand-alone"))
    if within[0] in ("M01", "1"):
        return ""
    if code == "eo":
        within, alone = (list(map(str.lower, names)) for names in (within, alone))
    formats = calendar["dateTimeFormats"]["availableFormats"]
    written = _read(numbers)["main"][name]["numbers"]
    system = written["defaultNumberingSystem"]
    symbols = written[f"symbols-numberSystem-{system}"]
    pattern = written[f"decimalFormats-numberSystem-{system}"]["standard"].partition(";")[0].partition(".")[0]
    given = {
        "months": "|".join(within),
        "alone": "|".join(alone) if alone != within else "",
        "date": _pattern(calendar["dateFormats"]["long"]),
        "month_year": _pattern(formats["yMMMM"]),
        "month_day": _pattern(formats["MMMMd"]),
        "decimal": symbols["decimal"],
        "group": symbols["group"],
        "fewest": written["minimumGroupingDigits"],
        "later": "2" if pattern.count(",") > 1 else "3",  # "#,##,##0.###"
        "digits": _DIGITS.get(system, ""),
    } | _MEDIAWIKI.get(code, {})
    return "\t".join(given.values())


def _pattern(source: str | dict[str, str]) -> str:
    text = source if isinstance(source, str) else source["_value"]
    return _LETTERS.sub(lambda part: part[1] if part[2] is None else f"{{{_PARTS.get(part[2], part[2][0])}}}", text)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
