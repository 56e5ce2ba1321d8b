"""Cut from a page what is never prose: comments, references, maths, galleries, code.

Everything between such a pair of tags is opaque to the rest of the cleaner, as it is to MediaWiki
itself, so these regions go first; on a typical article that is half of the page.
"""

import re

_DROPPED = (
    "ref|references|math|chem|ce|gallery|score|timeline|syntaxhighlight|source|pre|style|script"
    "|graph|mapframe|maplink|imagemap|hiero|inputbox|templatedata|includeonly|categorytree"
    "|indicator|rt|rp"
)

_OPENING = re.compile(rf"<(?:!--|({_DROPPED}|nowiki)\b([^<>]*+)>)", re.IGNORECASE)


def _either_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


_CLOSING = {name: re.compile(rf"</{_either_case(name)}\s*>") for name in [*_DROPPED.split("|"), "nowiki"]}
_CLOSING["!--"] = re.compile("-->")

_MARKUP = re.compile(r"[^\w\s]")


def cut_regions(wikitext: str) -> str:
    """The page without its opaque regions; `<nowiki>` text stays, spelt in character references.

    An opening tag whose closing tag never comes goes alone and its content stays, except a comment,
    which MediaWiki too lets run to the end of the page. Linear: each closing tag is searched for
    at most once beyond the regions it closes.
    """
    pieces = []
    position = 0
    never_closed = set()
    while opening := _OPENING.search(wikitext, position):
        pieces.append(wikitext[position : opening.start()])
        position = opening.end()
        name = opening[1].lower() if opening[1] else "!--"
        if name in never_closed or (opening[2] or "").endswith("/"):
            continue
        closing = _CLOSING[name].search(wikitext, position)
        if closing is None:
            never_closed.add(name)
            if name == "!--":
                return "".join(pieces)
            continue
        if name == "nowiki":
            pieces.append(_literal(wikitext[position : closing.start()]))
        position = closing.end()
    pieces.append(wikitext[position:])
    return "".join(pieces)


def _literal(text: str) -> str:
    """The text with every punctuation mark as a character reference: no later step sees markup."""
    return _MARKUP.sub(lambda mark: f"&#{ord(mark[0])};", text.replace("\n", " "))
