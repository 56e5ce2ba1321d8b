"""The prose of a page of a dictionary: definitions, examples, quotations, etymologies, notes; without lists of words.

Most lines of a Wiktionary are lists: translations, synonyms, derived words, pronunciations. Their words are links
or templates, so the rest of such a line is a label ("Czech:", "(informal)", "[1, 2]") or nothing; every Wiktionary has
its own headings and templates, but this form is common to all. A line is prose if it has a word of its own, or one of
its templates prints several words, as that of an example does.
"""

import re

from bertwright.corpus.wikitext.templates import Templates, template_key

_ITEM = re.compile(r"([*:#;]++)[ \t]*+(.*+)")
# The number of a meaning, which other lines of the page refer to: "[1, 3–5]" (de, cs, hu, ...), "(1.2)" (pl).
_MEANING = re.compile(r"\[[\d\s,;*?–-]++[a-z]?\][ \t]*+|\(\d+(?:\.\d+)+(?:[-–,]\s*\d+(?:\.\d+)*)*\)[ \t]*+")
# A definition of the Spanish Wiktionary: "; 1 {{zoología}}: a mammal".
_NUMBERED = re.compile(r"\d+[a-z]?\b[^:]*+:[ \t]*+")
_CALL = re.compile(r"\{\{([^{}]*+)\}\}")
_LINK = re.compile(r"\[\[[^\[\]]*+\]\]\w*+|\[(?:https?:)?//[^\[\]]*+\]")
_HIDDEN = re.compile(r"</?[A-Za-z][^<>]*+>|&#?\w{1,31}+;")
_ASIDE = re.compile(r"\([^()]*+\)|（[^（）]*+）")
# "Czech:", and "Traditional:" before a comma; the words that followed were links or calls.
_LABEL = re.compile(r"^[^:：]{1,40}+[:：]|(?:^|[,;/])[^,;/:：]{1,40}+[:：](?=[\s']*+(?:[,;/]|$))")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
# A word of four letters or two shorter ones; "and" alone stands between two links.
_WORDS = re.compile(rf"[^\W\d_{_UNSPACED}]{{4,}}|[{_UNSPACED}]{{2}}|[^\W\d_]{{2,}}\W+[^\W\d_]{{2,}}")
_UNSPACED_SENTENCE = re.compile(rf"[{_UNSPACED}，。、]{{12}}")
# "Boo·te" shows where a word may be divided; "l·l" is a letter of Catalan.
_DIVIDED = re.compile(r"[^\W\dlL]·\w|\w·[^\W\dlL]")
# Links with only a space between them are words of a phrase, such as "[[gebacken]]e [[Süßigkeit]]"; a list has commas.
_PHRASE = re.compile(r"\]\]\w*+ +\[\[")
_DEEPEST = 8


def without_word_lists(wikitext: str, templates: Templates) -> str:
    """The page without the lines that are lists of words or the title alone, and without the numbers of meanings.

    Lines of a template that spans several are unchanged. Takes linear time.
    """
    lines: list[str] = []
    depth = 0
    for line in wikitext.split("\n"):
        within = depth > 0
        depth = max(0, depth + line.count("{{") - line.count("}}"))
        kept = line if within or depth else _prose(line, templates)
        if kept is not None:
            lines.append(kept)
    return "\n".join(lines)


def _prose(line: str, templates: Templates) -> str | None:
    """The line, possibly without its number; None if it is not prose."""
    if line.startswith("'''"):  # the title again, before its pronunciation and inflection
        return line if _has_words(line.partition("'''")[2].partition("'''")[2], templates) else None
    item = _ITEM.match(line)
    if item is None:
        return line
    marker, text = item.groups()
    text = _MEANING.sub("", text, count=1) if _MEANING.match(text) else text
    if marker[0] == ";" and (number := _NUMBERED.match(text)):
        marker, text = "#", text[number.end() :]
    # A definition may be a single link, but the lines below it are lists and examples.
    return f"{marker} {text}" if not marker.strip("#") or _has_words(text, templates) else None


def _has_words(text: str, templates: Templates) -> bool:
    """Whether a text has words besides links, labels and remarks, or prints a sentence from a template."""
    text = _HIDDEN.sub("", text)
    is_sentence = False

    def shown(call: re.Match[str]) -> str:
        nonlocal is_sentence
        key = template_key(call[1].partition("|")[0])
        words = "" if key in templates.mentions else templates.text(call[1]) or ""
        is_sentence = is_sentence or _is_sentence(words)
        return words

    for _ in range(_DEEPEST):
        if "{{" not in text or is_sentence:
            break
        text = _CALL.sub(shown, text)
    if is_sentence or _PHRASE.search(text):
        return True
    own = _ASIDE.sub("", _LINK.sub("", _CALL.sub("", text)))
    own = _LABEL.sub("", own.replace("''", ""))
    if _DIVIDED.search(own) and len(own.split()) < 8:
        return False
    return _WORDS.search(own) is not None


def _is_sentence(words: str) -> bool:
    """Whether what a template prints is a sentence, or part of one: four words."""
    return len(words.split(maxsplit=3)) == 4 or _UNSPACED_SENTENCE.search(words) is not None
