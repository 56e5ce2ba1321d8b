"""Marks inside a line of wikitext: the quote marks of bold and italic text, the apostrophes among them, and tags.

MediaWiki shows text in angle brackets that is none of its tags as it is: "List<String>", "0<x and y>1".
"""

import re

_MARK = re.compile("(''++)")
_ITALIC, _BOLD, _BOTH = 2, 3, 5


def without_quotes(line: str) -> str:
    """The line without its marks of bold and italic text; a quote mark that MediaWiki reads as an apostrophe is kept.

    The first of four quotes is an apostrophe, and so is one of six or more (MediaWiki: all but the last five). A line
    with an odd number of both kinds of marks has an apostrophe before an italic mark, which looks like a bold one:
    "l'''amour''", "''Faust'''s". MediaWiki would show one wherever the marks are a slip; here a letter must stand on
    both sides, or an s before it.
    """
    # Nearly all lines: no quote is an apostrophe.
    if "''''" not in line and line.count("'''") % 2 == 0:
        return line.replace("'''", "").replace("''", "")
    pieces = _MARK.split(line)
    texts, lengths = pieces[::2], [len(mark) for mark in pieces[1::2]]
    for place, length in enumerate(lengths):
        kept = _BOLD if length == 4 else min(length, _BOTH)
        texts[place] += "'" * (length > kept)
        lengths[place] = kept
    both = lengths.count(_BOTH)
    if (lengths.count(_BOLD) + both) % 2 and (lengths.count(_ITALIC) + both) % 2:
        bold = [place for place, length in enumerate(lengths) if length == _BOLD]
        place = min(bold, key=lambda place: _rank(texts[place]), default=-1)
        if place >= 0 and _may_have_apostrophe(texts[place], texts[place + 1]):
            texts[place] += "'"
    return "".join(texts)


def _may_have_apostrophe(before: str, after: str) -> bool:
    return bool(before[-1:].strip(" '")) and (after[:1].isalnum() or before[-1].lower() in "sxz")


def _rank(before: str) -> int:
    """MediaWiki's order of choice: a bold mark after a word of one letter, after a longer word, after a space."""
    if before.endswith(" "):
        return 2
    return 0 if before[-2:-1] == " " else 1


_BREAKING = "br p div li ul ol dl dd dt blockquote center hr poem table tr h1 h2 h3 h4 h5 h6"
_INLINE = """
abbr b bdi bdo big caption cite code data del dfn em font i img ins kbd link mark meta q rb rbc rp rt rtc ruby s samp
small span strike strong sub sup td th time tt u var wbr
"""
# Parts of tables that MediaWiki shows as text, though no author means them as such.
_PARTS_OF_TABLES = "col colgroup tbody tfoot thead"
_EXTENSIONS = """
categorytree ce charinsert chem dynamicpagelist gallery graph hiero imagemap includeonly indicator inputbox langconvert
languages mapframe maplink math noinclude nowiki onlyinclude pages phonos pre ref references score section source style
syntaxhighlight script templatedata templatestyles timeline translate tvar
"""
_TEXTS = dict.fromkeys(f"{_INLINE} {_PARTS_OF_TABLES} {_EXTENSIONS}".split(), "") | dict.fromkeys(
    _BREAKING.split(), "\n\n"
)
# In the spellings of nearly all tags, so that the name need not be lowered.
_TEXTS |= {name.upper(): text for name, text in _TEXTS.items()}


def text_of_tag(name: str, tag: str) -> str:
    """What a tag stands for, given its name and the entire tag: nothing, the end of a paragraph, or itself as text."""
    text = _TEXTS.get(name)
    return _TEXTS.get(name.lower(), tag) if text is None else text
