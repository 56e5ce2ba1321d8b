"""Resolve what nests in wikitext: templates, links and tables, in one pass with one stack.

The pieces of the result lie in one flat list and the stack holds only where each open construct
began in it, so closing one is a cut at the end of that list. Constructs that nest nothing, which
are nearly all, are matched whole by the tokenizer and never touch the stack.
"""

import re

from bertwright.corpus.wikitext.site import CATEGORY, FILE, Site
from bertwright.corpus.wikitext.templates import Templates

# Possessive classes: no alternative ever gives back what it took, so a page is read at most twice.
_TOKEN = re.compile(
    r"""\[\[[^\[\]{}\n]*+\]\]          # a link that nests nothing
      | \{\{[^{}]*+\}\}                # a template that nests no template
      | \{\{\{[^{}]*+\}\}\}            # a template's parameter: nothing on an article
      | \[\[ | \]\] | \{\{ | \}\}
      | \n[ \t:*\#;]*+\{\|             # a table opens or ends only at the start of a line
      | \n[ \t:]*+\|\}(?!\})
      | <(?i:table)\b[^<>]*+> | </(?i:table)\s*+>""",
    re.VERBOSE,
)
_TARGET = re.compile(r"\A[^|\n]*+\|")
_LANGUAGE_CODE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z]+)*")
# Two or three small letters that lead to a project, not to a language.
_PROJECTS = {"mw", "rfc", "doi", "voy"}
_MEDIA_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|og[gva]|webm|mp[34]|wav|flac|midi?|pdf|djvu?|stl)$",
    re.I,
)
# MediaWiki gives up on deeper nesting as well; the limit bounds how often a character is copied.
_DEEPEST = 100


def resolve(wikitext: str, site: Site, templates: Templates) -> str:
    """The page with links as their labels, known templates as text; files, tables, the rest gone.

    A construct without its end keeps its text, except that an open template or file goes to the
    end of its line; an end without its beginning is dropped.
    """
    return _Scan(site, templates).run("\n" + wikitext).strip("\n")


class _Scan:
    def __init__(self, site: Site, templates: Templates) -> None:
        self.site = site
        self.templates = templates
        self.pieces: list[str] = []
        self.open: list[tuple[str, int]] = []
        self.count = {"{{": 0, "[[": 0, "{|": 0}

    def run(self, text: str) -> str:
        append = self.pieces.append
        position = 0
        for match in _TOKEN.finditer(text):
            append(text[position : match.start()])
            position = match.end()
            token = match.group()
            first = token[0]
            if len(token) == 2:
                if first == "{" or first == "[":
                    self.begin(token)
                else:
                    self.end("{{" if first == "}" else "[[")
            elif first == "[":
                append(link_text(token[2:-2], self.site))
            elif first == "{":
                append(self.template_text(token[2:-2]))
            else:
                append("\n\n")
                if token[-1] == "|" or token[:2].lower() == "<t":
                    self.begin("{|")
                else:
                    self.end("{|")
        append(text[position:])
        return self.without_open_constructs()

    def begin(self, kind: str) -> None:
        self.open.append((kind, len(self.pieces)))
        self.count[kind] += 1

    def end(self, kind: str) -> None:
        # A link never ends across the border of a template or table; these end across anything.
        if not self.count[kind] or (kind == "[[" and self.open[-1][0] != "[["):
            return
        while True:
            opened, start = self.open.pop()
            self.count[opened] -= 1
            if opened == kind:
                break
        text = self.closed_text(kind, start)
        del self.pieces[start:]
        self.pieces.append(text)

    def closed_text(self, kind: str, start: int) -> str:
        if kind == "{|" or len(self.open) >= _DEEPEST:
            return ""
        if kind == "[[":
            return link_text("".join(self.pieces[start:]), self.site)
        if not self.templates.know(self.pieces[start].partition("|")[0]):
            return ""
        return self.templates.text("".join(self.pieces[start:]))

    def template_text(self, call: str) -> str:
        if not self.templates.know(call.partition("|")[0]):
            return ""
        if "[[" in call:  # no braces in there, so one scan more and no deeper
            call = _Scan(self.site, self.templates).run(call)
        return self.templates.text(call)

    def without_open_constructs(self) -> str:
        dropped = set()
        for kind, start in self.open:
            if kind == "{{" or (kind == "[[" and is_hidden(self.pieces[start], self.site)):
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


def link_text(content: str, site: Site) -> str:
    """What a reader sees of the link whose brackets hold `content`; "" where it shows nothing."""
    target, bar, label = content.partition("|")
    if ":" in target and is_hidden(target, site):
        return ""
    if bar:
        return label
    shown = target.strip().lstrip(":#")
    # An unlabelled [[:Category:...]] points a reader at the wiki's shelves; it is not prose.
    return "" if is_hidden(shown, site) else shown


def is_hidden(target: str, site: Site) -> bool:
    """Whether a link to `target` shows no text: a file, a category, another language's article."""
    prefix, colon, rest = target.partition("|")[0].strip().partition(":")
    if not colon or not prefix:
        return False
    if site.namespace(prefix) in (FILE, CATEGORY):
        return True
    if _LANGUAGE_CODE.fullmatch(prefix) and prefix not in _PROJECTS:
        return not rest.startswith(" ")
    # Old names of the file namespace are not in <siteinfo>; the ending of the name tells.
    return _MEDIA_FILE.search(rest.rstrip()) is not None
