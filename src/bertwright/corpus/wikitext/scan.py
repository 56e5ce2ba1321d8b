"""Resolve the nested constructs of wikitext (templates, links, tables and variants) in one pass with one stack.

The pieces of the result are in one flat list, and the stack has only the index at which each open construct
began, so closing a construct cuts off the end of that list. Constructs without nested ones, which are nearly
all, are matched completely by the tokenizer and never touch the stack.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from bertwright.corpus.wikitext.definitions import Expander, NotPlainError
from bertwright.corpus.wikitext.links import is_hidden, link_text, variant_text
from bertwright.corpus.wikitext.marked_words import keep_words
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.wikitext.templates import Templates
from bertwright.corpus.wikitext.unknown_calls import mark_call, may_print
from bertwright.corpus.wikitext.wrapped_prose import LONGEST, PARAGRAPH

# Most links show their target or their label, whatever they link to.
_PLAIN_LINK = re.compile(r"\[\[(?![\s#/])([^\[\]{}|:%\n]++)(?<!\s)\]\]")
_LABELLED_LINK = re.compile(r"\[\[[^\[\]{}|:\n]*+\|([^\[\]{}|\n]*+)\]\]")
# Possessive repeats: no alternative backtracks, so a page is read at most twice.
_MARKS = r"""\[\[[^\[\]{}\n]*+\]\]          # a link that nests nothing
      | \{\{[^{}]*+\}\}                # a template that nests no template
      | \{\{\{[^{}]*+\}\}\}            # a template's parameter: nothing on an article
      | \[\[ | \]\] | \{\{ | \}\}
      | \n[ \t:*\#;]*+\{\|             # a table opens or ends only at the start of a line
      | \n[ \t:]*+\|\}(?!\})
      | <(?i:table)\b[^<>]*+> | </(?i:table)\s*+>"""
_TOKEN = re.compile(_MARKS, re.VERBOSE)
# A text in the variants of a language. On a wiki without variants it is text, such as the name of a chemical.
_TOKEN_OR_VARIANT = re.compile(rf"{_MARKS} | -\{{(?!\{{) | \}}-", re.VERBOSE)
_BEGINNING = {"}}": "{{", "]]": "[[", "}-": "-{"}
_TARGET = re.compile(r"\A[^|\n]*+\|")
# MediaWiki limits the nesting depth as well; the limit bounds how often a character is copied.
_DEEPEST = 100


@dataclass(frozen=True)
class Page:
    """The context for resolving the markup of one page."""

    site: Site
    templates: Templates
    title: str
    expander: Expander | None
    """Expands templates that the dump defines; None: no template is expanded from the dump."""

    @cached_property
    def wraps(self) -> bool:
        """Whether unknown templates print the text that they are given (`wrapped`)."""
        return self.site.project == "wikisource"

    @cached_property
    def describes(self) -> bool:
        """Whether unknown templates have prose in arguments with names (`listing_text`, `box_text`)."""
        return self.site.project in ("wikivoyage", "fandom")


def resolve(wikitext: str, page: Page) -> str:
    """The page with links replaced by their labels, and templates by the text that a table, the dump or the form of the
    call yields; files, tables and other templates are removed.

    An unclosed construct keeps its text, except that an open template, table or file is removed up to the end of its
    line. Of closing marks without an opening one, those of a link or a variant remain.
    """
    text = f"\n{wikitext}\n"
    # With a Python call for each link, wikitext took 0.56 s on the Ukrainian sample instead of 0.43 s.
    for shown in (_PLAIN_LINK, _LABELLED_LINK):  # `split` keeps the matched groups without a Python call for each
        text = "".join(shown.split(text))
    return keep_words(_Scan(page).run(text)).strip("\n")


def _separates(call: str, before: str, after: str) -> bool:
    """Whether a call of a book or dictionary that prints nothing stands between two words: a gap, a dash, the end of a
    line of verse."""
    return "|" not in call and before.isalpha() and after.isalpha() and after < "\u0e00"


class _Scan:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.pieces: list[str] = []
        self.open: list[tuple[str, int]] = []
        self.tokens = _TOKEN_OR_VARIANT if page.site.has_variants else _TOKEN
        self.blank = 0
        """How many of the first pieces are known to be blank."""
        self.count = {"{{": 0, "[[": 0, "{|": 0, "-{": 0}

    def run(self, text: str) -> str:
        append = self.pieces.append
        other_project = self.page.site.project not in ("", "wikipedia")
        position = 0
        for match in self.tokens.finditer(text):
            start = match.start()
            append(text[position:start])
            position = match.end()
            token = match.group()
            first = token[0]
            if len(token) == 2:
                if token in self.count:
                    self.begin(token)
                else:
                    if token == "]]" and text.startswith("]", position) and self.brackets_open():
                        append("]")  # "[[File:a.jpg|b [c]]]": the first of three brackets closes one of the label
                        position += 1
                    self.end(_BEGINNING[token], text.startswith("\n", position))
            elif first == "[":
                append(link_text(token[2:-2], self.page.site))
            elif first == "{":
                alone = text[start - 1] == "\n" == text[position : position + 1]
                shown = self.call_text(token[2:-2], alone, len(self.pieces))
                # Two numbers must not become one: 2009{{endash}}2014.
                apart = not shown and text[start - 1].isdigit() and text[position : position + 1].isdigit()
                if other_project and not shown:
                    apart = apart or _separates(token, text[start - 1], text[position : position + 1])
                append(" " if apart else shown)
            else:
                append("\n\n")
                if token[-1] == "|" or token[:2].lower() == "<t":
                    self.begin("{|")
                else:
                    self.end("{|", False)
        append(text[position:])
        return self.without_open_constructs()

    def begin(self, kind: str) -> None:
        self.open.append((kind, len(self.pieces)))
        self.count[kind] += 1
        if kind == "-{":  # remains text unless it is closed
            self.pieces.append(kind)

    def end(self, kind: str, at_line_end: bool) -> None:
        # An unclosed variant is text, and must not keep a link or a table open.
        while kind != "-{" and self.count[kind] and self.open[-1][0] == "-{":
            self.pop()
        # A link cannot end across the boundary of a template or table; those can end across anything.
        within_line = kind in ("[[", "-{")
        if not self.count[kind] or (within_line and self.open[-1][0] != kind):
            if within_line:  # two brackets of the text, or what remains of a link
                self.pieces.append("}-" if kind == "-{" else "]]")
            return
        while (opened := self.pop())[0] != kind:
            pass
        start = opened[1]
        text = self.closed_text(kind, start, at_line_end)
        del self.pieces[start:]
        self.pieces.append(text)

    def brackets_open(self) -> bool:
        """Whether the innermost construct is a link whose label has an open bracket."""
        if not self.open or self.open[-1][0] != "[[":
            return False
        label = "".join(self.pieces[self.open[-1][1] :])
        return label.count("[") > label.count("]")

    def pop(self) -> tuple[str, int]:
        opened = self.open.pop()
        self.count[opened[0]] -= 1
        self.blank = min(self.blank, opened[1])
        return opened

    def opens_page(self, start: int) -> bool:
        """Whether there is no text before the piece `start`."""
        while self.blank < start and not self.pieces[self.blank].strip():
            self.blank += 1
        return self.blank >= start

    def closed_text(self, kind: str, start: int, at_line_end: bool) -> str:
        if kind == "{|" or len(self.open) >= _DEEPEST:
            return ""
        if kind == "[[":
            # The template {{!}} acts as a bar in a link, although not in a call.
            return link_text("".join(self.pieces[start:]).replace("&#124;", "|"), self.page.site)
        if kind == "-{":
            return variant_text("".join(self.pieces[start + 1 :]), self.page.site.language)
        explained = (
            self.page.wraps
            or self.page.expander
            or self.page.templates.know(self.pieces[start].partition("|")[0])
            or self.page.describes
        )
        if not explained and sum(map(len, self.pieces[start:])) > LONGEST:
            return ""  # too long for `may_print`, so the pieces need not be joined
        alone = at_line_end and not self.open and (not start or self.pieces[start - 1].endswith("\n"))
        return self.call_text("".join(self.pieces[start:]), alone, start)

    def call_text(self, call: str, alone: bool, start: int) -> str:
        """The text of a call, given the text between its braces; `alone`: nothing else is on its line; `start`: how
        many pieces are before it.
        """
        name, bar, values = call.partition("|")
        expander = self.page.expander
        known = self.page.templates.know(name)
        if expander and not known:
            name = expander.target(name)
            known = self.page.templates.know(name)
        within = expander is not None and expander.depth > 0  # inside the body of another template
        defined = expander is not None and (within or expander.defines(name))
        alone = alone and not within
        if not known and not defined and not self.page.wraps and not may_print(call):
            return self.description(values, alone, start) if self.page.describes else ""
        # A call alone on its line is a box or a banner, never words of a sentence, but it may hold paragraphs. One at
        # the top of the page tells readers of the page, or of others.
        is_box = alone and (defined or "|" not in call or len(call) < PARAGRAPH or self.opens_page(start))
        if is_box and not known and not self.page.wraps:
            return self.description(values, alone, start) if self.page.describes else ""
        if "[[" in values:  # there are no braces inside, so one more scan is enough
            values = self.scan(values)
        if known:
            # What the wiki itself says is truer than a line for all wikis, unless it is a box without words.
            if expander and expander.defines(name) and self.page.templates.is_general(name):
                try:
                    text = expander.text(name + bar + values, self.scan)
                except NotPlainError:
                    text = None
                if text:
                    return text
            text = self.page.templates.text(name + bar + values, self.page.title)
            if text is not None:
                return text
        if defined and expander and (text := expander.text(name + bar + values, self.scan)) is not None:
            return text
        if self.page.wraps and not known:
            # Not loaded for other projects, here and below: compiling its patterns takes time.
            from bertwright.corpus.wikitext.project_calls import wrapped_text

            return wrapped_text(name, values.split("|") if bar else [], alone=alone)
        if self.page.describes and not known and (description := self.description(values, alone, start)):
            return description
        return mark_call(name, values.split("|") if bar else (), alone=alone) if may_print(call) else ""

    def description(self, values: str, alone: bool, start: int) -> str:
        """What an unknown call prints on a Wikivoyage or on Fandom."""
        travels = self.page.site.project == "wikivoyage"
        # A box at the top of a guide has the form of a listing.
        if "=" not in values or (self.opens_page(start) if travels else not alone):
            return ""
        from bertwright.corpus.wikitext.project_calls import box_text, listing_text

        given = (self.scan(values) if "[[" in values else values).split("|")
        return listing_text(given) if travels else box_text(given)

    def scan(self, text: str) -> str:
        return _Scan(self.page).run(text)

    def without_open_constructs(self) -> str:
        dropped = set()
        for kind, start in self.open:
            if kind in ("{{", "{|") or (kind == "[[" and is_hidden(self.pieces[start], self.page.site)):
                dropped.add(start)
            elif kind == "[[":
                self.pieces[start] = _TARGET.sub("", self.pieces[start], count=1)
        if not dropped:
            return "".join(self.pieces)
        kept = []
        skipping = False
        for index, piece in enumerate(self.pieces):
            skipping = skipping or index in dropped
            if skipping:
                line_end = piece.find("\n")
                skipping = line_end < 0
                piece = "" if skipping else piece[line_end:]
            kept.append(piece)
        return "".join(kept)
