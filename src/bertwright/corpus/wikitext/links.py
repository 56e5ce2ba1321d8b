"""The visible text of links and of language variants, the targets of links and redirects, and categories."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.site import CATEGORY, FILE, Site, without_marks

# Prefixes besides the codes in `wikis` that Wikimedia accepts, or accepted, for a language.
_OTHER_CODES = {"cmn", "cz", "dk", "epo", "jp", "minnan", "ru-sib", "tlh", "zh-cfr", "zh-cn", "zh-tw"}
# The file namespace has old and misspelt names, but the suffix of the file name is the same everywhere.
_MEDIA_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|og[gva]|webm|mp[34]|wav|flac|midi?|pdf|djvu?|stl)$",
    re.I,
)
# Any word after the number sign: each wiki has its own keywords, and dumps do not list them.
_REDIRECT = re.compile(r"\s*#[^\s#\[\]:]+\s*:?\s*\[\[([^\[\]|#\n]+)")
_ADDRESS = re.compile(r"\s*(?:(?:https?|ftps?):)?//\S*", re.I)
_FLAGS = re.compile(r"\s*([A-Z-](?:\s*;\s*[A-Z-])*|[a-z][A-Za-z-]*(?:\s*;\s*[a-z][A-Za-z-]*)*)?\s*;?\s*\|")
_RULE = re.compile(r"(?:^|;)(?:[^;:=]*=>)?\s*+([a-z]{2,3}(?:-[A-Za-z]+)*+)\s*+:")
# H adds a rule for the page, T sets the page title, "-" removes a rule: none of them prints anything.
_SILENT = {"H", "T", "-"}


def link_text(content: str, site: Site) -> str:
    """The visible text of a link, given the `content` of its brackets; "" if it shows nothing."""
    target, bar, label = content.partition("|")
    if "//" in target and (address := _ADDRESS.match(target)):  # an external link with too many brackets
        return label if bar else target[address.end() :].strip()
    if ":" in target and is_hidden(target, site):
        return ""
    if "\n" in target:  # brackets that were never closed
        return content
    if "|" in label and _MEDIA_FILE.search(target.rstrip()):  # the options of a file whose namespace is misspelt
        return ""
    if bar:
        return "" if ":" in label and target.lstrip().startswith(":") and is_hidden(label, site) else label
    shown = _decoded(target.strip().lstrip(":#"))
    # A [[:Category:...]] without a label is a pointer to a category page, not prose.
    return "" if ":" in shown and is_hidden(shown, site) else shown


def _decoded(title: str) -> str:
    """The title without percent-encoding, which a title copied from an address has: "Caf%C3%A9"."""
    if "%" not in title:
        return title
    try:
        decoded = unquote(title, errors="strict")
    except UnicodeDecodeError:
        return title
    return decoded if decoded.isprintable() else title


def is_hidden(target: str, site: Site) -> bool:
    """Whether a link to `target` shows no text: a file, a category or an article in another language."""
    prefix, colon, rest = without_marks(target.partition("|")[0]).strip().partition(":")
    if not colon or not prefix:
        return False
    if site.namespace(prefix) in (FILE, CATEGORY):
        return True
    # The form of a prefix does not decide: "re:publica" is a title. The wiki's own prefix is part of an ordinary link.
    code = prefix.lower()
    if (code in wikis() or code in _OTHER_CODES) and code != site.language:
        return not rest.startswith(" ")
    # Old names of the file namespace are not in <siteinfo>, so check the suffix of the file name.
    return _MEDIA_FILE.search(rest.rstrip()) is not None


def redirect_target(wikitext: str, site: Site) -> str | None:
    """The title that a redirect page points to, without its section; None for any other page.

    Every wiki has its own keywords (#REDIRECT, #ÁTIRÁNYÍTÁS, ...), so any page that begins with
    "#word [[title" is a redirect. The wiki's own language prefix is not part of the title.
    """
    match = _REDIRECT.match(wikitext)
    if match is None:
        return None
    # [[:hu:Híd]] and [[Híd]] refer to the same page.
    return match[1].strip().removeprefix(":").removeprefix(f"{site.language}:")


def variant_text(content: str, language: str) -> str:
    """The visible text of `-{content}-`: the text of the wiki's own variant, else that of the first one.

    `-{zh-hans:a; zh-hant:b}-` has one text for each script or country of a language.

    Flags before a bar: R and the codes of variants print the rest unchanged; H, T and - print nothing; others only
    affect other parts of the page (mediawiki.org, "Writing systems/Syntax").
    """
    head = _FLAGS.match(content)
    flags = {flag.strip() for flag in (head[1] or "").split(";")} if head else set()
    text = content[head.end() :] if head else content
    if flags & _SILENT:
        return ""
    rules = list(_RULE.finditer(text))
    unchanged = "R" in flags or any(len(flag) > 1 for flag in flags)
    if unchanged or not rules or text[: rules[0].start()].strip():
        return text
    ends = [rule.start() for rule in rules[1:]] + [len(text)]
    texts = {rule[1].lower(): text[rule.end() : end].strip(" ;") for rule, end in zip(rules, ends, strict=True)}
    return texts.get(language, texts[rules[0][1].lower()])


_ARTICLE_LINK = re.compile(r"\[\[([^\[\]{}|\n]++)(?:\|([^\[\]{}|\n]*+))?\]\]")
_NAMED_PAGE = re.compile(r"\[\[([^\[\]{}|:\n]++):([^\[\]{}|\n]++)")
_END_OF_PAGE = 8_192
"""Characters at the end of a page where authors put its categories."""


def article_links(wikitext: str, site: Site) -> Iterator[tuple[str, str]]:
    """Yield the text and the title of the target of each link to an article, in order."""
    for match in _ARTICLE_LINK.finditer(wikitext):
        target = match[1]
        named = ":" in target and site.namespace(target.partition(":")[0]) is not None
        if not named and (text := link_text(match[0][2:-2], site)) and (title := page_title(target)):
            yield text.replace("'''", "").replace("''", "").strip(), title


def categories(wikitext: str, site: Site) -> list[str]:
    """The names of the categories that a page puts itself into, in order, without those of templates."""
    found = (match.groups() for match in _NAMED_PAGE.finditer(wikitext[-_END_OF_PAGE:]))
    return [page_title(name) for prefix, name in found if site.namespace(prefix) == CATEGORY]


def page_title(target: str) -> str:
    """The title of the page that a link's target names: no section, no underscores, the first letter in upper case."""
    title = " ".join(_decoded(target).partition("#")[0].replace("_", " ").split()).removeprefix(":")
    return title[:1].upper() + title[1:]
