"""The tokenizer.json of a WordPiece model, as the page's own tokenizer (`serve/talk/tokenizer.js`) takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json
from bertwright.corpus.characters import WORD_BREAK
from bertwright.serve.inside.characters import character_rules

_FILE = "tokenizer.json"
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def describe_tokenizer(folder: Path) -> dict[str, Any]:
    """What the page needs to give the ids that tokenizers gives by the tokenizer.json of a folder.

    Raises `RecipeError` if there is none, or one with a part that the page does not know.
    """
    file = folder / _FILE
    if not file.is_file():
        raise RecipeError(f"{folder} has no {_FILE}. Save it with AutoTokenizer of transformers.")
    given = parse_json(read_bytes(file, MAX_JSON).decode("utf-8"))
    model = _part(given, "model", ("WordPiece",))
    _part(given, "pre_tokenizer", ("BertPreTokenizer",))
    first, last = _around(given)
    special = _special(given["added_tokens"])
    ids = {**model["vocab"], **special}
    entries = [""] * (max(ids.values()) + 1)
    for entry, number in ids.items():
        entries[number] = entry
    return {
        "steps": _steps(given["normalizer"]),
        "entries": entries,
        "special": list(special),
        "first": [ids[entry] for entry in first],
        "last": [ids[entry] for entry in last],
        "unknown": model["unk_token"],
        "continuation": model["continuing_subword_prefix"],
        "longest": model["max_input_chars_per_word"],
        "characters": character_rules(),
    }


def _part(given: Mapping[str, Any], name: str, known: Sequence[str]) -> Mapping[str, Any]:
    """A part of the file, of a type that is known."""
    part = given.get(name) or {}
    # Early versions of the file do not name the type of the model.
    kind = part.get("type", "WordPiece" if "max_input_chars_per_word" in part else None)
    if kind not in known:
        raise _unknown(f"{name} {kind}", known)
    found: Mapping[str, Any] = part
    return found


def _steps(normalizer: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of normalisation, in order."""
    kind = normalizer and normalizer["type"]
    if normalizer is None:
        return []
    if kind == "Sequence":
        return [step for each in normalizer["normalizers"] for step in _steps(each)]
    if kind == "NFC":
        return [{"kind": "compose"}]
    if kind == "Replace":
        return [{"kind": "replace", "pattern": _pattern(normalizer["pattern"]), "by": normalizer["content"]}]
    if kind == "BertNormalizer":
        lower, accents = normalizer["lowercase"], normalizer["strip_accents"]
        rules = {
            "clean": normalizer["clean_text"],
            "ideographs": normalizer["handle_chinese_chars"],
            "accents": lower if accents is None else accents,
            "lower": lower,
        }
        return [{"kind": name} for name, wanted in rules.items() if wanted]
    raise _unknown(f"normalizer {kind}", ("NFC", "Replace", "BertNormalizer"))


def _pattern(given: Mapping[str, str]) -> str:
    """A regular expression of JavaScript. Only one is known to mean the same in both: ours."""
    if "String" in given:
        return "".join(f"\\u{{{ord(c):x}}}" for c in given["String"])
    if given.get("Regex") != WORD_BREAK:
        raise _unknown(f"replacement of {given.get('Regex')!r}", ("plain texts",))
    return WORD_BREAK


def _special(added: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The entries that are found in running text, with their ids."""
    for each in added:
        if flags := [flag for flag in _FLAGS if each[flag]]:
            raise _unknown(f"added token {each['content']!r} that is {' and '.join(flags)}", ("plain ones",))
    return {each["content"]: each["id"] for each in added if each["content"]}


def _around(given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The entries before and after a text."""
    processor = _part(given, "post_processor", ("BertProcessing", "TemplateProcessing"))
    if processor["type"] == "BertProcessing":
        return [processor["cls"][0]], [processor["sep"][0]]
    ends = [part["SpecialToken"]["id"] if "SpecialToken" in part else None for part in processor["single"]]
    place = ends.index(None)
    # A name in the template may stand for several entries.
    named = {name: part["tokens"] for name, part in processor["special_tokens"].items()}
    first, last = ([token for name in part for token in named[name]] for part in (ends[:place], ends[place + 1 :]))
    return first, last


def _unknown(what: str, known: Sequence[str]) -> RecipeError:
    return RecipeError(
        f"a page has a tokenizer of its own, which knows {' and '.join(known)}, but {_FILE} has the {what}. Run this "
        "model by `bertwright serve`, which uses the library's tokenizer."
    )
