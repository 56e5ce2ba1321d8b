"""Characters of any script: the letters of a language, their scripts and case, and the normal form (NFC) of a text.

The tables below hold the Latin and Cyrillic alphabets. Any other language gets every letter (and combining mark) of the
script it is written in, so Bengali or Armenian text is judged by the same rules as Hungarian; a wiki that is not listed
is written in Latin letters, and so, it is assumed, is a language without a wiki.

Does not import numpy: checking a recipe reads the first records of its sources.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from bertwright.corpus.wikis import wikis

LAST_LETTER = 0x323AF
"""The last code point of any script that a wiki is written in: the end of the Chinese ideographs, Extension H."""
_BASIC = "abcdefghijklmnopqrstuvwxyz"
_LATIN = {
    "af": "áäéèêëíîïóôöúûüý", "ca": "àçèéíïòóúü", "cs": "áčďéěíňóřšťúůýž", "cy": "âêîôûŵŷ", "da": "æøåé", "de": "äöüß",
    "en": "", "eo": "ĉĝĥĵŝŭ", "es": "áéíñóúü", "et": "äöõüšž", "eu": "ñç", "fi": "åäöšž", "fr": "àâæçéèêëîïôœùûüÿ",
    "ga": "áéíóú", "gd": "àèìòù", "gl": "áéíñóúü", "hr": "čćđšž", "hu": "áéíóöőúüű", "id": "", "is": "áðéíóúýþæö",
    "it": "àèéìíîòóùú", "la": "", "lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "ms": "", "mt": "ċġħż", "nl": "áéëïóöüè",
    "nn": "æøåéòô", "no": "æøåéòô", "pl": "ąćęłńóśźż", "pt": "áàâãçéêíóôõú", "ro": "ăâîșțşţ", "sk": "áäčďéíĺľňóôŕšťúýž",
    "sl": "čšž", "sq": "çë", "sv": "åäöé", "tr": "âçğıîöşüû",
    "vi": "àáạảãâầấậẩẫăằắặẳẵèéẹẻẽêềếệểễìíịỉĩòóọỏõôồốộổỗơờớợởỡùúụủũưừứựửữỳýỵỷỹđ",
}  # fmt: skip
_CYRILLIC = {
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя", "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш", "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш", "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
}  # fmt: skip
_SAME = {"simple": "en", "sco": "en", "tl": "en", "nb": "no", "bs": "hr", "be-tarask": "be", "be-x-old": "be"}
# Script (first word of its letters' Unicode names) of languages not written in Latin letters.
_SCRIPTS = {
    "ARABIC": "ar arz ary fa ps ur ckb sd ug azb pnb glk mzn ks lrc skr bgn bqi",
    "ARMENIAN": "hy hyw",
    "BENGALI": "as bn bpy",
    "CANADIAN": "cr iu",
    "CHEROKEE": "chr",
    "CYRILLIC": "ab ady alt av ba bxr ce crh cu cv inh kbd kk koi krc kv ky lbe lez mdf mhr mn mo "
    "mrj myv os rsk rue sah tg tt tyv udm xal",
    "DEVANAGARI": "anp awa bh dty gom hi mag mai mr ne new pi sa",
    "ETHIOPIC": "am ti tig",
    "GEORGIAN": "ka xmf",
    "GOTHIC": "got",
    "GREEK": "el pnt",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HEBREW": "he yi",
    "KANNADA": "kn tcy",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MEETEI": "mni",
    "MYANMAR": "my mnw rki shn blk",
    "NKO": "nqo",
    "OL": "sat",
    "ORIYA": "or",
    "SINHALA": "si",
    "SYLOTI": "syl",
    "SYRIAC": "arc",
    "TAI": "tdd",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAANA": "dv",
    "THAI": "th",
    "TIBETAN": "bo dz",
    "TIFINAGH": "zgh",
    "CJK BOPOMOFO": "zh zh-yue zh-classical gan wuu lzh yue",
    "CJK HIRAGANA KATAKANA LATIN": "ja",
    "CJK HANGUL": "ko",
}
_SCRIPT_OF = {code: script for script, codes in _SCRIPTS.items() for code in codes.split()}
# Scripts in which part of a wiki is written, besides its main one, or in which CLDR 48 (languageData) says that its
# language is written.
_SECOND = {
    "az": "CYRILLIC ARABIC", "bm": "NKO", "bs": "CYRILLIC", "cdo": "CJK", "cr": "LATIN", "crh": "LATIN", "dv": "ARABIC",
    "gag": "CYRILLIC", "gom": "LATIN KANNADA", "ha": "ARABIC", "hak": "CJK", "hif": "DEVANAGARI", "inh": "LATIN ARABIC",
    "iu": "LATIN", "kaa": "CYRILLIC", "kk": "LATIN ARABIC", "ks": "DEVANAGARI", "ku": "ARABIC CYRILLIC",
    "ky": "ARABIC LATIN", "lad": "HEBREW", "mn": "MONGOLIAN", "mni": "BENGALI", "ms": "ARABIC", "nan": "CJK",
    "om": "ETHIOPIC", "pa": "ARABIC", "pi": "LATIN MYANMAR SINHALA THAI", "pnt": "CYRILLIC LATIN", "ro": "CYRILLIC",
    "sa": "TELUGU KANNADA SINHALA", "sat": "BENGALI DEVANAGARI LATIN ORIYA", "sd": "DEVANAGARI", "se": "CYRILLIC",
    "sh": "CYRILLIC", "shi": "TIFINAGH ARABIC", "so": "ARABIC", "sr": "LATIN", "syl": "BENGALI", "tg": "ARABIC LATIN",
    "tk": "CYRILLIC ARABIC", "tly": "CYRILLIC ARABIC", "tr": "ARABIC", "tt": "LATIN ARABIC", "udm": "LATIN",
    "ug": "LATIN CYRILLIC", "uz": "CYRILLIC ARABIC", "vi": "CJK", "wal": "ETHIOPIC", "wo": "ARABIC", "za": "CJK",
    "zh-min-nan": "CJK",
}  # fmt: skip
_KNOWN = frozenset({"LATIN", "CYRILLIC", *" ".join(_SCRIPTS).split()})
_LETTERS_AND_MARKS = ("Ll", "Lo", "Lm", "Lu", "Mn", "Mc")
_ONE_LETTER_WORDS = ("CJK", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


@cache
def letters(language: str) -> str:
    """The lower-case (or caseless) letters of the language with this wiki code, in sorted order."""
    language = _SAME.get(language, language)
    if language in _LATIN:
        return "".join(sorted(_BASIC + _LATIN[language]))
    if language in _CYRILLIC:
        return "".join(sorted(_CYRILLIC[language]))
    return _letters_of(_SCRIPT_OF.get(language, "LATIN"))


def shortest_word(language: str) -> int:
    """Letters in the shortest word: 1 where words have no spaces between them or letters are syllables, else 2."""
    return 1 if _SCRIPT_OF.get(language, "").startswith(_ONE_LETTER_WORDS) else 2


def spaced(language: str) -> bool:
    """Whether the language puts spaces between words."""
    return shortest_word(language) > 1 or language == "ko"


def scripts(language: str) -> frozenset[str]:
    """The scripts the language is written in, by the first words of their letters' Unicode names ("CYRILLIC"); all of
    them for a language without a wiki in the table, of which nothing is known.
    """
    same = _SAME.get(language, language)
    own = "CYRILLIC" if same in _CYRILLIC else _SCRIPT_OF.get(same, "LATIN" if same in wikis() else "")
    if not own:
        return _KNOWN
    return frozenset(f"{own} {_SECOND.get(language, '')}".split())


@cache
def script(letter: str) -> str:
    """The script of a letter, by the first word of its Unicode name; "" for no script, or one that no wiki uses."""
    # ＡＢＣ and ｶﾅ are forms of letters, not scripts of their own.
    name = unicodedata.name(letter, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    name = name.replace("-", " ").partition(" ")[0]
    return name if name in _KNOWN else ""


def is_capital(letter: str) -> bool:
    """Whether a letter is a capital of a script that is not written in capitals alone, as Cherokee is."""
    return letter.isupper() and not "\u13a0" <= letter <= "\u13f5"


@cache
def _letters_of(scripts: str) -> str:
    """Every letter and mark of the scripts that is not a capital."""
    names = set(scripts.split())
    letters = []
    for character in map(chr, range(LAST_LETTER + 1)):
        script = unicodedata.name(character, "").replace("-", " ").partition(" ")[0]
        category = unicodedata.category(character)
        if script in names and category in _LETTERS_AND_MARKS and not is_capital(character):
            letters.append(character)
    return "".join(letters)


def ranges(characters: Iterable[str]) -> str:
    """The characters as ranges for a `[class]` of a regular expression."""
    runs: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in runs)


JOINERS = "\u180e\u200c\u200d"
"""Of no width, and spelling: the Mongolian vowel separator; the non-joiner and joiner of Persian and the scripts of
India."""


def in_word(character: str) -> bool:
    """Whether a character ("": none) is part of a word or number: a letter, a mark, a joiner or a digit.

    Neither `\\w` nor `isalpha` knows combining marks, so "कि" is no word to these.
    """
    return character.isalnum() or (not character.isascii() and _is_mark(character))


def bare(word: str) -> str:
    """The word without combining marks and joiners: `isalpha` holds for what is left of a word of any script, and its
    length is that of the word in letters.
    """
    return word if word.isascii() else "".join(c for c in word if not _is_mark(c))


def is_syllable(word: str) -> bool:
    """Whether the word is one letter with its marks, or letters that a virama joins to one syllable: "कि", "श्री"."""
    # Most words have two letters side by side.
    if not word[:1].isalpha() or (len(word) > 1 and word[1].isalnum()):
        return False
    before = ""
    for character in word[1:]:
        if not _is_mark(character) and not (character.isalpha() and _joins(before)):
            return False
        before = character
    return True


def _is_mark(character: str) -> bool:
    """Whether a character is a combining mark of any script, or one of `JOINERS`."""
    # A regular expression takes milliseconds to compile a class of all marks.
    return unicodedata.category(character)[0] == "M" or character in JOINERS


def _joins(mark: str) -> bool:
    """Whether a mark ("": none) joins its letter to the next one: a virama, or the joiner."""
    return mark == "\u200d" or (mark != "" and unicodedata.combining(mark) == 9)


UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u0f40-\u0fbc\u1000-\u103f\u1050-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1950-\u19cf\u1a20-\u1a7c\u1b00-\u1b4c\ua980-\ua9c0\ua9e0-\ua9ef\uaa60-\uaadf\U00011700-\U0001172b"
)
"""Letters and marks of the scripts with an alphabet or syllables and no spaces between words, in a `[class]`: Thai,
Lao, Tibetan, Burmese, Khmer, and those of the Tai languages, of Java and of Bali."""
# Literal characters, because the patterns of tokenizers, JavaScript and Python have different escapes.
_BESIDE = "0-9A-Za-z\u0e50-\u0e59\u0ed0-\u0ed9\u0f20-\u0f29\u1040-\u1049\u17e0-\u17e9"
WORD_BREAK = f"\u200b(?:(?<=[{UNSPACED}]\u200b)(?=[{UNSPACED}{_BESIDE}])|(?<=[{_BESIDE}]\u200b)(?=[{UNSPACED}]))"
"""The pattern of a zero-width space that separates words, as in Khmer: between letters of `UNSPACED`, or one and a
digit or Latin letter. Anywhere else it is only a place to break a line."""


# Normalisation sorts a run of combining marks in quadratic time. Unicode's Stream-Safe Text Format
# (UAX #15) limits a run to 30; no language comes near. Marks beyond the BMP are left unchanged.
_BLOCKS = ((0x300, 0x3100), (0xA000, 0xAC00), (0xFB00, 0xFE30))  # that hold combining marks
_MARKS = ranges(mark for block in _BLOCKS for mark in map(chr, range(*block)) if unicodedata.combining(mark))
_STEP = 16
# A run of 32 marks leaves two adjacent marks in every sixteenth character of a text, which is quick to search.
_SAMPLED = re.compile(f"[{_MARKS}]{{2}}")


def compose(text: str) -> str:
    """The text in NFC; of more than 31 combining marks in a row the first 30 are kept."""
    if text.isascii():
        return text
    if _SAMPLED.search(text[::_STEP]):
        # Compiled only here: it takes milliseconds.
        text = re.sub(f"[{_MARKS}][{_MARKS}]{{30,}}", lambda marks: marks[0][:30], text)
    # Line by line, because one combining mark makes the normalisation of the entire string slow: 0.1 s more on
    # the Ukrainian sample.
    return "\n".join(unicodedata.normalize("NFC", line) for line in text.split("\n"))


def composed(value: Any) -> Any:
    """The value, as TOML or JSON has it, with each text in it and the names of its tables in NFC."""
    if isinstance(value, str):
        return compose(value)
    if isinstance(value, Mapping):
        return {composed(key): composed(each) for key, each in value.items()}
    return type(value)(map(composed, value)) if isinstance(value, list | tuple) else value


def is_small(letter: str) -> bool:
    """Whether a letter is small and has a capital for the beginning of a sentence, or is an ordinal sign ("Sra.ª").

    Georgian letters are small in Unicode, but their capitals are only for words entirely in capitals.
    """
    return letter.islower() and (letter.title() != letter or letter in "ªº")
