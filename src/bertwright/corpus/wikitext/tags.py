"""The tags that MediaWiki knows. It shows any other text in angle brackets as it is: "List<String>", "0<x and y>1"."""

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
