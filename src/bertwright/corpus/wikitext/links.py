"""What a reader sees of a link and of a text in language variants, and where a redirect leads."""

import re

from bertwright.corpus.wikitext.site import CATEGORY, FILE, Site

_LANGUAGE_CODE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z]+)*")
# Two or three small letters that lead to a project, not to a language.
_PROJECTS = {"mw", "rfc", "doi", "voy"}
# The file namespace has old names and misspelt ones; the ending of the name is the same everywhere.
_MEDIA_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|og[gva]|webm|mp[34]|wav|flac|midi?|pdf|djvu?|stl)$",
    re.I,
)
# Any word after the number sign: each wiki has keywords of its own, and dumps do not list them.
_REDIRECT = re.compile(r"\s*#[^\s#\[\]:]+\s*:?\s*\[\[([^\[\]|#\n]+)")
_FLAGS = re.compile(r"\s*([A-Z-](?:\s*;\s*[A-Z-])*|[a-z-]+(?:\s*;\s*[a-z-]+)*)?\s*\|")
_RULE = re.compile(r"(?:^|;)(?:[^;:=]*=>)?\s*+([a-z]{2,3}(?:-[a-z]+)*+)\s*+:")
# H adds a rule for the page, T names the page, "-" removes a rule: none of them prints.
_SILENT = {"H", "T", "-"}


def link_text(content: str, site: Site) -> str:
    """What a reader sees of the link whose brackets hold `content`; "" where it shows nothing."""
    target, bar, label = content.partition("|")
    if ":" in target and is_hidden(target, site):
        return ""
    if "\n" in target:  # brackets that were never closed
        return content
    if "|" in label and _MEDIA_FILE.search(target.rstrip()):  # the options of a file whose namespace is misspelt
        return ""
    if bar:
        return "" if target.lstrip().startswith(":") and is_hidden(label, site) else label
    shown = target.strip().lstrip(":#")
    # A [[:Category:...]] without words of its own points a reader at the wiki's shelves; it is not prose.
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


def redirect_target(wikitext: str, site: Site) -> str | None:
    """The title a redirect page leads to, without its section; None for any other page.

    Every wiki has keywords of its own (#REDIRECT, #ÁTIRÁNYÍTÁS, ...); a page that begins with any
    "#word [[title" is one. The wiki's own language prefix is not part of a title.
    """
    match = _REDIRECT.match(wikitext)
    if match is None:
        return None
    # [[:hu:Híd]] and [[Híd]] lead to one page.
    return match[1].strip().removeprefix(":").removeprefix(f"{site.language}:")


def variant_text(content: str, language: str) -> str:
    """What a reader sees of `-{content}-`: the text of the wiki's own variant, else of the first one.

    `-{zh-hans:a; zh-hant:b}-` says one thing in each script or country of a language.

    Flags before a bar: R prints the rest as it is, H, T and - print nothing, others change only what the page does
    elsewhere (mediawiki.org, "Writing systems/Syntax").
    """
    head = _FLAGS.match(content)
    flags = {flag.strip() for flag in (head[1] or "").split(";")} if head else set()
    text = content[head.end() :] if head else content
    if flags & _SILENT:
        return ""
    rules = list(_RULE.finditer(text))
    if "R" in flags or not rules or text[: rules[0].start()].strip():
        return text
    ends = [rule.start() for rule in rules[1:]] + [len(text)]
    texts = {rule[1]: text[rule.end() : end].strip(" ;") for rule, end in zip(rules, ends, strict=True)}
    return texts.get(language, texts[rules[0][1]])
