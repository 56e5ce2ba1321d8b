"""Languages with another lower case than the tokenizers of BERT, which change each letter alone, by the same rule in
every language (the languages and conditions of Unicode's SpecialCasing.txt, and others written with ı).

A normalization of our own before theirs would be right, but two of the programs that read an exported model have none:
spaCy and llama.cpp would get other ids. So texts are lower-cased as by BERT everywhere, and the user is told.
"""

from __future__ import annotations

from bertwright.vocab.config import VocabConfig

_DOTTED = "I becomes i (not ı) and İ becomes i with a second dot (without one if accents are stripped)"
_SIGMA = "Σ at the end of a word becomes σ (not ς), so that words in capitals are not those in small letters"
_LITHUANIAN = "capitals of i and j with a further accent, as in dictionaries, lose their dot"
_DIFFERENT = {
    **dict.fromkeys(("tr", "az", "crh", "gag", "diq"), _DOTTED),
    **dict.fromkeys(("el", "pnt"), _SIGMA),
    "lt": _LITHUANIAN,
}


def different_case(config: VocabConfig, language: str) -> tuple[str, str] | None:
    """What is wrong with the lower case of texts in a language, given by the code of its wiki, and what to do; None
    if nothing is."""
    if not config.lower_case or language not in _DIFFERENT:
        return None
    wrong = f"texts are lower-cased as by every tokenizer of BERT, but in this language ({language}) wrongly: "
    remedy = "Leave vocab.lower_case out, which keeps capitals, or lower-case the sources by a program that knows how."
    if config.file is not None or config.extend is not None:
        remedy = (
            "It must be as the vocabulary was made; if its texts were lower-cased rightly before, do so with yours."
        )
    return f"{wrong}{_DIFFERENT[language]}.", remedy
