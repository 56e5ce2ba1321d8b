"""The prose of a page of a dictionary: definitions, examples, quotations, etymologies, notes; without lists of words.

Most lines of a Wiktionary are lists: translations, synonyms, derived words, pronunciations. Their words are links
or templates, so the rest of such a line is a label ("Czech:", "(informal)", "[1, 2]") or nothing; every Wiktionary has
its own headings and templates, but this form is common to all. A line is prose if it has a word of its own, or one of
its templates prints several words, as that of an example does. Every Wiktionary has its own names for the templates of
examples ({{Příklad|cs|…}}, {{예문|ko|…}}), but one form and place: below a definition ("#:", "#*") stands a call with a
sentence, after the code of its language and before its translation. On some it is not in the list, but after it.
"""

import re

from bertwright.corpus.wikitext.templates import Templates, arguments, template_key
from bertwright.corpus.wikitext.unknown_calls import is_language

_ITEM = re.compile(r"([*:#;]++)[ \t]*+(.*+)")
# The number of a meaning, which other lines of the page refer to: "[1, 3–5]" (de, cs, hu, ...), "(1.2)" (pl).
_MEANING = re.compile(r"\[[\d\s,;*?–-]++[a-z]?\][ \t]*+|\(\d+(?:\.\d+)+(?:[-–,]\s*\d+(?:\.\d+)*)*\)[ \t]*+")
# A definition of the Spanish Wiktionary: "; 1 {{zoología}}: a mammal".
_NUMBERED = re.compile(r"\d+[a-z]?\b[^:]*+:[ \t]*+")
_CALL = re.compile(r"\{\{([^{}]*+)\}\}")
_LINK = re.compile(r"\[\[[^\[\]]*+\]\]\w*+|\[(?:https?:)?//[^\[\]]*+\]")
_SHOWN_LINK = re.compile(r"\[\[(?:[^\[\]|]*+\|)?([^\[\]]*+)\]\]")
_HIDDEN = re.compile(r"</?[A-Za-z][^<>]*+>|&#?\w{1,31}+;")
_ASIDE = re.compile(r"\([^()]*+\)|（[^（）]*+）")
# "Czech:", and "Traditional:" before a comma; the words that followed were links or calls.
_LABEL = re.compile(r"^[^:：]{1,40}+[:：]|(?:^|[,;/])[^,;/:：]{1,40}+[:：](?=[\s']*+(?:[,;/]|$))")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
# A word of four letters or two shorter ones; "and" alone stands between two links.
_WORDS = re.compile(rf"[^\W\d_{_UNSPACED}]{{4,}}|[{_UNSPACED}]{{2}}|[^\W\d_]{{2,}}\W+[^\W\d_]{{2,}}")
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_UNSPACED_SENTENCE = re.compile(rf"[{_UNSPACED}，。、]{{12}}")
# "Boo·te" shows where a word may be divided; "l·l" is a letter of Catalan.
_DIVIDED = re.compile(r"[^\W\dlL]·\w|\w·[^\W\dlL]")
# Links with only a space between them are words of a phrase, such as "[[gebacken]]e [[Süßigkeit]]"; a list has commas.
_PHRASE = re.compile(r"\]\]\w*+ +\[\[")
_DEEPEST = 8
# The call that an item begins with, after labels of it in brackets or other calls, and what no argument is divided at.
_WHOLE_CALL = re.compile(r"\{\{((?:[^{}]|\{\{[^{}]*+\}\})*+)\}\}")
_WITHIN_ARGUMENT = re.compile(r"\[\[[^\[\]]*+\]\]|\{\{[^{}]*+\}\}")
_BAR = "\U0010ffff"
# The names of arguments for a sentence, and for its translation.
_TEXTS = (
    *("text", "texte", "texto", "testo", "tekst", "текст", "metin", "例文"),
    *("passage", "pasaje", "passaggio", "pasaj"),
)
_MEANINGS = ("t", "tr", "trans", "translation", "traduction", "перевод", "překlad", "çeviri", "terjemahan")
_ENDED = re.compile(r"[.!?…。！？।]['\"”»’)\]」』]*+$")


def without_word_lists(wikitext: str, templates: Templates) -> str:
    """The page without the lines that are lists of words or the title alone, and without the numbers of meanings.

    Other lines of a template that spans several than those of an example are unchanged. Takes linear time.
    """
    lines: list[str] = []
    block: list[str] = []
    depth = 0
    after_definition = False
    for line in wikitext.split("\n"):
        block.append(line)
        depth = max(0, depth + line.count("{{") - line.count("}}"))
        if depth:
            continue
        text = "\n".join(block)
        if after_definition and text.startswith("{{") and (example := _example_of("#*", text, templates)):
            words = example.split()
            text = f"#* {' '.join(words)}" if len(words) > 7 or _ENDED.search(words[-1]) else text
        # A call that begins with "-" is a heading.
        opens = text[:3]
        after_definition = opens[:1] in ("#", ";") or (after_definition and opens[:2] == "{{" and opens != "{{-")
        kept = _spanning(text, templates) if "\n" in text else _prose(text, templates)
        if kept is not None:
            lines.append(kept)
        block = []
    return "\n".join(lines + block)


def _spanning(block: str, templates: Templates) -> str | None:
    """Lines of one template, unchanged unless it is that of an example."""
    item = _ITEM.match(block)
    if item is None:
        return block
    call = _example_of(item[1], block[item.start(2) :], templates)
    return block if call is None else _prose(f"{item[1]} {' '.join(call.split())}", templates)


def _prose(line: str, templates: Templates) -> str | None:
    """The line, possibly without its number; None if it is not prose."""
    if line.startswith("'''"):  # the title again, before its pronunciation and inflection
        return line if _has_words(line.partition("'''")[2].partition("'''")[2], templates) else None
    item = _ITEM.match(line)
    if item is None:
        return line
    marker, text = item.groups()
    text = _example_of(marker, text, templates) or text
    text = _MEANING.sub("", text, count=1) if _MEANING.match(text) else text
    if marker[0] == ";" and (number := _NUMBERED.match(text)):
        marker, text = "#", text[number.end() :]
    # A definition may be a single link, but the lines below it are lists and examples.
    return f"{marker} {text}" if not marker.strip("#") or _has_words(text, templates) else None


def _example_of(marker: str, text: str, templates: Templates) -> str | None:
    """The text of an item below a definition with the sentence of the call that it begins with; None if it has none."""
    if len(marker) == 1 or not text.startswith("{{") or (call := _WHOLE_CALL.match(text)) is None:
        return None
    sentence = _example(call[1], templates)
    return sentence + text[call.end() :] if sentence else None


def _example(call: str, templates: Templates) -> str:
    """The sentence of a call that no line of the wiki's tables fits, and its translation; "" if the call has none.

    A reading stands between the sentence and its translation, so that the last sentence is the translation.
    """
    name, *values = _WITHIN_ARGUMENT.sub(lambda part: part[0].replace("|", _BAR), call).split("|")
    if templates.know(name) and not templates.is_general(name) and templates.text(call) is not None:
        return ""
    given = arguments([value.replace(_BAR, "|") for value in values])
    unnamed = [value for key, value in given.items() if key.isdecimal()]
    if unnamed and is_language(unnamed[0]):
        unnamed = unnamed[1:]
    texts = list(filter(_is_cited, unnamed)) or [value for key, value in given.items() if key.lower() in _TEXTS]
    meaning = next((given[key] for key in _MEANINGS if given.get(key)), texts[-1] if len(texts) > 1 else "")
    return " — ".join(filter(None, (texts[0], meaning))) if texts else ""


def _is_cited(text: str) -> bool:
    """Whether an argument is a sentence, or part of one; a call within it would name its source."""
    plain = _HIDDEN.sub("", _SHOWN_LINK.sub(r"\1", text)).replace("''", "")
    ended = _ENDED.search(plain) is not None and len(plain.split()) > 1
    return not plain.startswith("{{") and (ended or _is_sentence(plain) or len(_UNSPACED_LETTER.findall(plain)) > 7)


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
