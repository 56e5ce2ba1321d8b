"""Plain paragraphs from HTML: rendered pages of MediaWiki (Parsoid, Kiwix, saved from a browser) and any other page.

What wikitext would lose is left out of a wiki's page too: tables, references, captions, boxes, navigation and code.
Other pages have no such conventions. Their text is looked for where HTML puts it (`<main>`, `<article>`), and blocks
are left out that are called navigation or the like, or that are little more than links.

The parser is selectolax (Lexbor), which builds the same tree as a browser. The tree is walked without recursion, so
that no nesting is too deep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from bertwright.core.errors import MissingExtraError
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.wikitext.polish import keep_powers, polish

Maths = Literal["drop", "tex"]


@dataclass(frozen=True)
class HtmlPage:
    """The text of a page and what it says of itself; a field is empty where it says nothing."""

    paragraphs: list[Paragraph]
    title: str = ""
    url: str = ""
    revision: int = 0
    kind: Literal["article", "redirects", "disambiguations"] = "article"


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_BREAKING = _tags(
    "address article aside blockquote body br center dd details dialog dir div dl dt fieldset figure footer form h1 h2 "
    "h3 h4 h5 h6 header hgroup hr legend li main menu nav ol optgroup option p pre section summary table tbody td "
    "tfoot th thead tr ul"
)
_HEADINGS = _tags("h1 h2 h3 h4 h5 h6")
_NEVER_TEXT = _tags(
    "applet area audio button canvas dialog embed figcaption figure frame frameset head iframe img input link map meta "
    "noscript object picture pre progress rp rt script select style svg template textarea title track video -comment"
)
_ROLES = _tags("navigation note search banner contentinfo complementary menu menubar toolbar dialog alert")
# Names of classes of MediaWiki and of the templates that most wikis share.
_WIKI_CLASSES = _tags(
    "ambox asbox catlinks cmbox dablink error fmbox gallery geo-nondefault geo-multi-punct hatnote imbox infobox "
    "magnify metadata mw-cite-backlink mw-editsection mw-empty-elt mw-gallery-traditional mw-graph mw-highlight "
    "mw-indicators mw-jump-link mw-kartographer-container mw-ref mw-references mw-references-wrap navbar navbox "
    "navbox-styles NavFrame noexcerpt noprint nomobile ombox portal portalbox printfooter rellink reference references "
    "reflist searchaux shortdescription sidebar siteSub sistersitebox stub succession-box thumb thumbcaption tmbox "
    "toc toccolours toclimit-2 toclimit-3 vertical-navbox"
)
_WIKI_IDS = _tags("catlinks coordinates contentSub jump-to-nav mw-navigation siteSub toc")
# Boxes that templates draw; columns only arrange a list that the article itself has.
_COLUMNS = _tags("columns columns-list div-col multicol poem refbegin")
_WEB_NAMES = re.compile(
    r"(?:^|[\s_-])(?:ad|ads|advert\w*|banner|breadcrumbs?|byline|captions?|comments?|cookies?|footer|hidden|login|masthead"
    r"|menu|modal|nav|navbar|navigation|newsletter|pager|pagination|popup|promo|recommended|related|share|sharing"
    r"|sidebar|signup|skip|social|sponsor\w*|subscribe|subscription|tags|toolbar|widget)(?:$|[\s_-])",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\r\f\v]+")
_DISPLAY = re.compile(r"\{\\(?:display|text)style\s*(.*)\}", re.DOTALL)
_WIKI = "#mw-content-text, .mw-parser-output, section[data-mw-section-id], body.mw-body-content, body.parsoid-body"
_CONTENT = "main, [role=main], article, #content, #main, #main-content, .post-content, .entry-content, .article-body"
_REVISION = re.compile(r"/revision/(\d{1,18})$")
_ANY_TAG = re.compile(r"<[^<>]*>|\n")
_TAG_NAME = re.compile(r"<(/?[A-Za-z][A-Za-z0-9]*)")
_UNCLOSED = _tags("area br col dd dt embed hr img input li link meta option p param source td th tr track wbr")
_DEEP = 10_000
"""Elements within each other that are parsed in a fraction of a second."""
_LISTED = 0.5
"""Share of the characters of a block in links from which it is navigation."""
_SENTENCE = 80
"""Characters from which a block of prose may be recognised by its length."""


def selectolax() -> Any:
    """The parser of the package selectolax. Raises `MissingExtraError`, which says how to install it."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise MissingExtraError(
            "HTML cannot be read without selectolax, which is not installed: pip install 'bertwright[html]'."
        ) from error
    return LexborHTMLParser


def read_html(html: str, maths: Maths = "drop", *, wiki: bool = False) -> HtmlPage:
    """The text of a page. `wiki`: it is one of MediaWiki even if nothing in it says so.

    Headings are attached to the paragraphs that follow them, as in wikitext. Malformed HTML is read as a browser reads
    it; no input raises an exception, and a page of thousands of elements within each other is read without them.
    """
    if _is_too_deep(html):
        return HtmlPage(_paragraphs([_Block(line, False, 0) for line in _ANY_TAG.split(html) if line.strip()], ""))
    tree = selectolax()(keep_powers(html))
    if tree.body is None:  # a page of frames
        return HtmlPage([], _title(tree))
    found = tree.css_first(_WIKI)
    wiki = wiki or found is not None
    title, url, revision = _title(tree), _address(tree), _revision(tree)
    if tree.css_first("meta[http-equiv=refresh i][content*='url=' i], link[rel='mw:PageProp/redirect']") is not None:
        return HtmlPage([], title, url, revision, "redirects")
    if tree.css_first("meta[property='mw:PageProp/disambiguation']") is not None:
        return HtmlPage([], title, url, revision, "disambiguations")
    blocks = _Walk(_is_dropped_of_wiki, maths).blocks(_wiki_root(tree)) if wiki else _web_blocks(tree, maths)
    return HtmlPage(_paragraphs(blocks, title), title, url, revision)


def _is_too_deep(html: str) -> bool:
    """Whether elements may be nested so deeply that the parser, whose time is quadratic in the depth, would not end
    soon; browsers flatten such pages."""
    if html.count("<") < _DEEP:
        return False
    names = Counter(map(str.lower, _TAG_NAME.findall(html)))
    opened = (count - names[f"/{name}"] for name, count in names.items() if name[0] != "/" and name not in _UNCLOSED)
    return sum(count for count in opened if count > 0) > _DEEP


def _wiki_root(tree: Any) -> Any:
    """The element with the article; an extract of Kiwix or Parsoid has nothing else."""
    whole = tree.css_first("#mw-content-text")
    return whole if whole is not None else tree.css_first(".mw-parser-output") or tree.body


def _web_blocks(tree: Any, maths: Maths) -> list[_Block]:
    """The blocks of a page that is not of a wiki, without navigation."""
    root = _web_root(tree)
    known, all_of_it = (
        [block for block in _Walk(rule, maths).blocks(root) if block.is_heading or not block.is_navigation]
        for rule in (_is_dropped_of_web, _is_dropped_by_tag)
    )
    # A page whose own text has a name that usually means something else.
    return known if 4 * _size(known) >= _size(all_of_it) else all_of_it


def _size(blocks: list[_Block]) -> int:
    """Characters in blocks of sentences."""
    return sum(len(block.text) for block in blocks if len(block.text) >= _SENTENCE)


def _web_root(tree: Any) -> Any:
    """The element that HTML says is the content, if most of the page's prose is in it, otherwise the body."""
    total = _prose(tree.body)
    for element in tree.css(_CONTENT):
        if 2 * _prose(element) > total:
            return element
    return tree.body


def _prose(element: Any) -> int:
    """Characters in paragraphs of an element."""
    return sum(len(paragraph.text()) for paragraph in element.css("p"))


def page_address(head: str) -> str:
    """The address that the beginning of a page names; "" if it names none."""
    return _address(selectolax()(head))


def _revision(tree: Any) -> int:
    """The number of the revision that Parsoid writes on the first element."""
    found = _REVISION.search(tree.root.attributes.get("about") or "") if tree.root is not None else None
    return int(found[1]) if found else 0


def _title(tree: Any) -> str:
    heading = tree.css_first("h1#firstHeading, h1.firstHeading")
    element = heading if heading is not None else tree.css_first("head > title") or tree.css_first("h1")
    title = _SPACE.sub(" ", element.text()).strip() if element is not None else ""
    # " - Wikipedia", " — Википедия", …: the name of the site.
    site = tree.css_first("meta[property='og:site_name']")
    name = (site.attributes.get("content") or "") if site is not None else ""
    site_name = rf"\s+[-–—|·]\s+(?:{re.escape(name)}|Wiki\w*|Вики\w*)$"
    return title if element is heading else re.sub(site_name, "", title)


def _address(tree: Any) -> str:
    for selector, name in (
        ("link[rel='dc:isVersionOf']", "href"),
        ("link[rel='canonical']", "href"),
        ("meta[property='og:url']", "content"),
    ):
        element = tree.css_first(selector)
        if element is not None and (value := element.attributes.get(name) or ""):
            return f"https:{value}" if value.startswith("//") else str(value)
    return ""


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or _HIDDEN.search(attributes.get("style") or "") is not None


def _is_dropped_of_wiki(tag: str, attributes: dict[str, str | None], _: Any) -> bool:
    """Whether an element is nothing that the wikitext of its page would have as text."""
    if tag == "table" or _is_hidden(attributes) or attributes.get("id") in _WIKI_IDS:
        return True
    classes = set((attributes.get("class") or "").split())
    if classes & _WIKI_CLASSES or attributes.get("role") in _ROLES:
        return True
    kind = attributes.get("typeof") or ""
    if kind.startswith("mw:Extension/re"):  # ref, references
        return True
    drawn = tag == "div" and (attributes.get("about") or "").startswith("#mwt")
    return drawn and not classes & _COLUMNS and "mw:Extension" not in kind


def _is_dropped_of_web(tag: str, attributes: dict[str, str | None], element: Any) -> bool:
    """Whether an element is not part of the text of a page, by what its author calls it."""
    if tag in ("aside", "footer", "nav") or (tag == "table" and not _is_layout(element, attributes)):
        return True
    if _is_hidden(attributes) or attributes.get("role") in _ROLES or attributes.get("aria-hidden") == "true":
        return True
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    # What is called so may also be the frame of the whole page.
    is_named = _WEB_NAMES.search(names) is not None and tag not in ("body", "html", "main", "article")
    return is_named and not _frames(element)


def _is_dropped_by_tag(tag: str, attributes: dict[str, str | None], _: Any) -> bool:
    return tag in ("aside", "footer", "nav") or _is_hidden(attributes)


def _frames(element: Any) -> bool:
    """Whether an element holds the content of the page."""
    return element.css_first("main, article, h1") is not None


def _is_layout(table: Any, attributes: dict[str, str | None]) -> bool:
    """Whether a table only arranges a page, as was usual before 2005: a cell of it holds paragraphs."""
    if attributes.get("role") == "presentation" or len(table.css("table")) > 1:  # itself
        return True
    if table.css_first("th, caption") is not None:
        return False
    return any(len(cell.text()) > 4 * _SENTENCE for cell in table.css("td"))


@dataclass
class _Block:
    """A paragraph, list item or heading."""

    text: str
    is_heading: bool
    linked: int
    """Characters of it in links."""

    @property
    def is_navigation(self) -> bool:
        """Whether it is little more than links."""
        return self.linked > _LISTED * len(self.text) and len(self.text) - self.linked < _SENTENCE


@dataclass
class _Walk:
    """A walk through a tree that collects its blocks."""

    is_dropped: Callable[[str, dict[str, str | None], Any], bool]
    maths: Maths
    _found: list[_Block] = field(default_factory=list)
    _pieces: list[str] = field(default_factory=list)
    _linked: int = 0
    _links: int = 0

    def blocks(self, root: Any) -> list[_Block]:
        """The blocks below an element, in order."""
        for tag, node, enters in _events(root, self._enters):
            if tag == "-text":
                self._pieces.append(node.text_content or "")
                self._linked += len(self._pieces[-1]) if self._links else 0
            elif tag == "a":
                self._links += 1 if enters else -1
            elif tag in _BREAKING:
                self._flush(not enters and tag in _HEADINGS)
        self._flush(False)
        return self._found

    def _enters(self, tag: str, node: Any) -> bool:
        if tag in _NEVER_TEXT:
            return False
        if tag == "math":
            self._pieces.append(_formula(node) if self.maths == "tex" else "")
            return False
        return not self.is_dropped(tag, node.attributes, node)

    def _flush(self, is_heading: bool) -> None:
        text = _SPACE.sub(" ", "".join(self._pieces)).strip() if self._pieces else ""
        if text:
            self._found.append(_Block(text, is_heading, self._linked))
        self._pieces.clear()
        self._linked = 0


def _events(root: Any, enters: Callable[[str, Any], bool]) -> Iterator[tuple[str, Any, bool]]:
    """Yield (tag, node, True) at the beginning of every node below `root`, and (tag, node, False) at the end of those
    that have children; nodes that `enters` refuses are left out with all below them."""
    above: list[tuple[str, Any]] = []
    node = root.child
    while True:
        while node is None:
            if not above:
                return
            tag, parent = above.pop()
            yield tag, parent, False
            node = parent.next
        tag = node.tag
        if tag == "-text":
            yield tag, node, True
        elif enters(tag, node):
            yield tag, node, True
            above.append((tag, node))
            node = node.child
            continue
        node = node.next


def _formula(element: Any) -> str:
    """The TeX of a `<math>` element, "" if it has none."""
    source = element.css_first("annotation[encoding='application/x-tex']")
    tex = source.text() if source is not None else element.attributes.get("alttext") or ""
    bare = _DISPLAY.fullmatch(tex.strip())
    return (bare[1] if bare else tex).strip()


def _paragraphs(blocks: list[_Block], title: str) -> list[Paragraph]:
    lines = polish("\n".join(block.text for block in blocks)).split("\n") if blocks else []
    result, heading = list[Paragraph](), None
    for line, block in zip(lines, blocks, strict=True):
        line = line.strip()
        if block.is_heading:
            # The heading of the page itself opens no section.
            heading = line if line != title or heading else None
        elif any(map(str.isalnum, line)):
            result.append(Paragraph(line, heading))
            heading = None
    return result
