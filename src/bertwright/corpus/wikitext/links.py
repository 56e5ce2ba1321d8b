"""What a reader sees of a link."""

import re

from bertwright.corpus.wikitext.site import CATEGORY, FILE, Site

_LANGUAGE_CODE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z]+)*")
# Two or three small letters that lead to a project, not to a language.
_PROJECTS = {"mw", "rfc", "doi", "voy"}
_MEDIA_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|og[gva]|webm|mp[34]|wav|flac|midi?|pdf|djvu?|stl)$",
    re.I,
)


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
