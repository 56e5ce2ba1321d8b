"""Converts one article's wikitext to plain paragraphs, in time linear in its length.

The steps: cut opaque regions (`regions`); resolve links, templates, tables and variants (`scan`, `links`); remove
inline markup and split the text into lines (this module); clean up characters and punctuation (`polish`). The text of a
template is looked up in a table (`templates`) and in the dump itself (`definitions`), or inferred from the form of its
call (`unknown_calls`).
"""

import re

from bertwright.corpus.config import WikitextConfig
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.wikitext.definitions import Definitions, Expander
from bertwright.corpus.wikitext.marked_words import LOST
from bertwright.corpus.wikitext.polish import keep_powers, polish
from bertwright.corpus.wikitext.regions import cut_regions, without_tabs
from bertwright.corpus.wikitext.scan import Page, resolve
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.wikitext.templates import Table, template_key, templates_of

_DEFAULT = WikitextConfig()

_CALL = re.compile(r"\{\{([^{}|]{1,100})[|}]")

# Possessive repeats here and below: markup that is never closed must take only linear time.
# In a value in quotation marks ">" is a letter like any other.
_TAG = re.compile(r"""</?([A-Za-z][A-Za-z0-9]*+)(?=[\s/>])(?:[^<>="']++|=\s*+(?:"[^"<\n]*+"|'[^'<\n]*+')|[="'])*+>""")
# MediaWiki's protocols; at least one character of an address must follow.
_ADDRESS = (
    r"(?:(?:(?:https?|s?ftps?|ircs?|mms|git|gopher|nntp|redis|ssh|svn|telnet|worldwind|wikipedia):)?//"
    r"|(?:bitcoin|geo|magnet|mailto|matrix|news|sips?|sms|tel|urn|xmpp):)(?![\s\]])"
)
# An address ends at a mark of bold or italic text, too. The label may have a bracket of its own, but not another link.
_EXTERNAL_LINK = re.compile(
    rf"\[{_ADDRESS}(?:\[[0-9a-f:.]++\])?(?:[^\s\[\]<>\"']|'(?!'))*+((?:[^\[\]\n]|\[(?!{_ADDRESS}))*+)\]", re.I
)
_BRACKETS = re.compile(r"\[|\]\]?")
_BEHAVIOUR = re.compile(r"__[^\s_<>|]++(?:_[^\s_<>|]++)*+__")
# A pattern that begins with fixed characters is several times as fast as one that begins with "^".
_HEADING_WITH_TAGS = re.compile(r"\n=[^\n<]*+<[^\n]*=[ \t]*(?=\n|$)")
# MediaWiki needs no equal numbers of marks. Text after a heading is a slip of its author.
_HEADING = re.compile(r"=++([^=](?:.*[^=])?)=++|(={2,6})([^=].*?)\2=*+(.*)")


def paragraphs(
    wikitext: str,
    site: Site,
    config: WikitextConfig = _DEFAULT,
    title: str = "",
    definitions: Definitions | None = None,
    table: Table | None = None,
) -> list[Paragraph]:
    """The prose and list items of the article `title`, in order, as readers see them.

    A heading is attached to the paragraph that opens its section and is never a paragraph itself. Tables, references,
    galleries, files with their captions, categories and templates are dropped, except templates that stand for words
    in a sentence: those in the tables (see `templates`; `table` is the user's own), those in `definitions`, before the
    table for all wikis, and calls of one of five forms (`unknown_calls`). Malformed markup degrades to text; no input
    raises an exception.
    """
    expander = Expander(definitions) if definitions else None
    templates = templates_of(site.language, table, site.project)
    page = Page(site, templates, title, expander)
    text = cut_regions(wikitext.replace("\r\n", "\n"), config.maths, site.project)
    if "<tabber" in text:
        text = without_tabs(text)
    if site.project == "wiktionary":
        # Not loaded for other projects: compiling its patterns takes milliseconds.
        from bertwright.corpus.wikitext.dictionary import without_word_lists

        text = without_word_lists(text, templates)
    text = _without_inline_marks(resolve(text, page))
    blocks, is_heading = _blocks(text)
    lines = polish("\n".join(blocks)).split("\n") if blocks else []
    result = []
    heading = None
    for line, opens in zip(lines, is_heading, strict=True):
        line = (_without_lost(line, site.language, opens) if LOST in line else line).strip()
        if opens:  # one of templates may be left with their commas
            heading = line if any(map(str.isalnum, line)) else heading
        # Dropped markup often leaves only the punctuation of a line.
        elif any(map(str.isalnum, line)):
            result.append(Paragraph(line, heading))
            heading = None
    return result


def _without_lost(line: str, language: str, opens: bool) -> str:
    """The line without the brackets or the sentences in which a number is missing that only a template knows."""
    line = line.replace(LOST, "") if opens else _LOST_IN_BRACKETS.sub("", line)
    if LOST not in line:
        return line
    # Not loaded by a check of a recipe, which reads the first pages of its source.
    from bertwright.corpus.split import splitter

    # For the splitter there is a number.
    sentences = splitter(language)(line.replace(LOST, f"{LOST}0{LOST}"))
    return " ".join(sentence for sentence in sentences if LOST not in sentence)


def is_disambiguation(wikitext: str, site: Site, table: Table | None = None) -> bool:
    """Whether the page calls a template that marks a disambiguation page on this wiki.

    The template names are those in the folder `templates`, where those of `any.toml` apply to all wikis, and in the
    user's `table`.
    """
    names = templates_of(site.language, table, site.project).disambiguation
    calls = set(_CALL.findall(wikitext))
    return "__DISAMBIG__" in wikitext or any(template_key(call) in names for call in calls)


def _without_inline_marks(text: str) -> str:
    text = _EXTERNAL_LINK.sub(lambda link: link[1].lstrip(), text)
    # A line break in a heading does not end it.
    text = _HEADING_WITH_TAGS.sub(lambda line: _TAG.sub(_in_heading, line[0]), f"\n{text}")
    text = _TAG.sub(lambda tag: text_of_tag(tag[1], tag[0]), keep_powers(text))
    if "]]" in text:
        text = "\n".join(map(_without_stray_ends, text.split("\n")))
    if "''" in text:
        text = "\n".join(without_quotes(line) if "''" in line else line for line in text.split("\n"))
    if "__" in text:
        # Magic words such as `__NOTOC__` are upper case; `__init__` is a word in an article about programming.
        text = _BEHAVIOUR.sub(lambda word: "" if word[0] == word[0].upper() else word[0], text)
    return text


def _in_heading(tag: re.Match[str]) -> str:
    text = text_of_tag(tag[1], tag[0])
    return text if text.strip() else " " * bool(text)


def _without_stray_ends(line: str) -> str:
    """The line without each "]]" that closes no bracket: the end of a link whose beginning is missing."""
    depth = 0

    def kept(bracket: re.Match[str]) -> str:
        nonlocal depth
        mark = bracket[0]
        if mark == "[":
            depth += 1
            return mark
        closed = min(depth, len(mark))
        depth -= closed
        return mark[:closed] if len(mark) == 2 else mark

    return _BRACKETS.sub(kept, line)


def _blocks(text: str) -> tuple[list[str], list[bool]]:
    """The paragraphs, list items and headings of the text, one line each, and for each whether it is a heading."""
    blocks: list[str] = []
    is_heading: list[bool] = []
    paragraph: list[str] = []

    def add(block: str, heading: bool) -> None:
        blocks.append(block)
        is_heading.append(heading)

    for line in [*text.split("\n"), ""]:
        line = line.strip()
        first = line[0] if line else "\n"
        if first not in "=*#:;|!-\n":
            paragraph.append(line)
            continue
        heading = _HEADING.fullmatch(line) if first == "=" else None
        if first in "-!=" and not heading and not _is_debris(line):
            paragraph.append(line)
            continue
        if paragraph:
            add(" ".join(paragraph), False)
            paragraph = []
        if heading:
            add(heading[1] or heading[3], True)
            if heading[4]:
                paragraph.append(heading[4])
        elif first in "*#:;":
            add(line.lstrip("*#:; \t"), False)
        elif first == "-" and (rest := line.lstrip("- \t")):  # text after a horizontal rule
            paragraph.append(rest)
    return blocks, is_heading


def _is_debris(line: str) -> bool:
    """Whether a line is a horizontal rule, or the header row of a table whose beginning or end is missing."""
    # A line that begins with three exclamation marks is text; a table's header row begins with one.
    heading = line[0] == "!" and not line.startswith("!!!") and ("!!" in line or "|" in line)
    return heading or line.startswith("----")


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


_LOST_IN_BRACKETS = re.compile(rf" ?(?:\([^()]*?{LOST}[^()]*+\)|（[^（）]*?{LOST}[^（）]*+）)")

_BREAKING = "br p div li ul ol dl dd dt blockquote center hr poem table tr h1 h2 h3 h4 h5 h6"
_INLINE = """
abbr b bdi bdo big caption cite code data del dfn em font i img ins kbd link mark meta q rb rbc rp rt rtc ruby s samp
small span strike strong sub sup td th time tt u var wbr
"""
# Parts of tables that MediaWiki shows as text, though no author means them as such.
_PARTS_OF_TABLES = "col colgroup tbody tfoot thead"
_EXTENSIONS = """
categorytree ce charinsert chem dynamicpagelist gallery graph hiero imagemap includeonly indicator inputbox langconvert
languages mapframe maplink math noinclude nomobile nowiki onlyinclude onlymobile pages phonos pre ref references score
section source spoiler style syntaxhighlight script tabber templatedata templatestyles timeline translate tvar
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
