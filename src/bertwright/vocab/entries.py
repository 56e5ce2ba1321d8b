"""Reads the entries of a vocabulary, and the text settings it was made with, from the files that other programs write.

Two files hold the entries: `vocab.txt`, one entry per line, and `tokenizer.json` of the library tokenizers, the only
one that transformers writes from version 5 on. Does not import that library, so that checking a recipe stays fast.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, is_normalized, normalize

from bertwright.core.errors import DataError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.core.json_values import parse_json
from bertwright.corpus.characters import WORD_BREAK, compose
from bertwright.vocab.config import LONGEST_WORD, MAX_FILE, VocabConfig

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"
FILES = ("vocab.txt", "tokenizer.json")
"""The files of a model folder that hold its entries; the first one that exists is read."""
_NO_TOKENIZER = "is not a tokenizer.json of the library tokenizers. Give a vocab.txt instead."
_WORDPIECE = "WordPiece"
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
WORD_BREAKS = {"type": "Replace", "pattern": {"Regex": WORD_BREAK}, "content": " "}
"""The normalizer of `vocab.split` that makes zero-width spaces between words spaces, as tokenizer.json has it."""


class TextSettings(NamedTuple):
    """The text settings of a vocabulary, as in the section `[vocab]`."""

    lower_case: bool
    strip_accents: bool
    longest_word: int = LONGEST_WORD

    @classmethod
    def of(cls, vocab: VocabConfig) -> TextSettings:
        """Those of a recipe."""
        return cls(vocab.lower_case, vocab.strip_accents, vocab.longest_word)

    @classmethod
    def recorded(cls, counts: Mapping[str, Any]) -> TextSettings:
        """Those in the counts of a vocabulary artifact; the first ones did not record the longest word."""
        return cls(counts["lower_case"], counts["strip_accents"], counts.get("longest_word", LONGEST_WORD))

    @property
    def stated(self) -> dict[str, bool | int]:
        """Those that a recipe has to state about a finished vocabulary, by the names of their keys."""
        same = self.longest_word == LONGEST_WORD
        return {name: value for name, value in self._asdict().items() if name != "longest_word" or not same}

    def __str__(self) -> str:
        return " ".join(f"vocab.{name}={str(value).lower()}" for name, value in self.stated.items())


def entries_file(folder: Path) -> Path | None:
    """The file with the entries of a model folder; None if it has none."""
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def entries_of(path: Path) -> list[str]:
    """The entries of a `vocab.txt` (any line endings), or of the WordPiece model of a `tokenizer.json`, by id,
    in NFC.

    Raises `DataError` if the file cannot be read, or is the tokenizer of another kind of network.
    """
    return _composed(_written_in(path))


def _composed(entries: list[str]) -> list[str]:
    """The entries in the normal form of every text before it is split; written in another form, none could occur.

    An entry whose composed form is an entry too stays as it is, so that no id changes. So does one without accents,
    such as the parts of a Korean letter: where accents are stripped, texts are taken apart, and stay so.
    """
    known = set(entries)
    for place, entry in enumerate(entries):
        accented = not is_normalized("NFC", entry) and "Mn" in map(category, normalize("NFD", entry))
        if accented and (form := compose(entry)) not in known:
            entries[place] = form
            known.add(form)
    return entries


def _written_in(path: Path) -> list[str]:
    try:
        if path.suffix == ".json":
            return _of_tokenizer(path, read_bytes(path, MAX_FILE))
        # utf-8-sig, because a byte-order mark would become part of [PAD].
        text = read_bytes(path, MAX_FILE).decode("utf-8-sig")
    except IsADirectoryError as error:
        file = entries_file(path)
        give = f"Give {file}." if file else f"It has no {' and no '.join(FILES)}; give the path of such a file."
        raise DataError(f"{path} is a folder, not a vocabulary. {give}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Give the path of a vocab.txt.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 (byte {error.start:,}). Convert it to UTF-8, with one entry per line."
        ) from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}. Give the path of a vocab.txt.") from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def has_other_tokenizer(path: Path) -> bool:
    """Whether a file with a vocabulary is a `tokenizer.json` of another kind than WordPiece, such as BPE."""
    if path.suffix != ".json":
        return False
    try:
        model = parse_json(read_bytes(path, MAX_FILE))["model"]
        return "vocab" in model and model.get("type", _WORDPIECE) != _WORDPIECE
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False  # `entries_of` reports a damaged file


def text_settings(folder: Path) -> TextSettings | None:
    """The text settings that the tokenizer files of a model folder state; None if they state none, or others than
    those of `[vocab]`."""
    tokenizer, config = folder / "tokenizer.json", folder / "tokenizer_config.json"
    try:
        if tokenizer.is_file():
            parsed = parse_json(read_bytes(tokenizer, MAX_FILE))
            found = _of_normalizers([*_flat(parsed.get("normalizer"))])
            longest = operator.index(parsed["model"].get("max_input_chars_per_word", LONGEST_WORD))
            return found and found._replace(longest_word=longest)
        stated = parse_json(read_bytes(config, MAX_JSON)) if config.is_file() else {}
        return _of_bert(stated, "do_lower_case") if isinstance(stated.get("do_lower_case"), bool) else None
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return None  # the code that reads the entries reports a damaged file


def _of_tokenizer(path: Path, data: bytes) -> list[str]:
    tokenizer = parse_json(data)
    model = tokenizer.get("model") if isinstance(tokenizer, dict) else None
    # Entries added after training are listed separately.
    added = tokenizer.get("added_tokens") or [] if isinstance(tokenizer, dict) else []
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise DataError(f"{path} {_NO_TOKENIZER}")
    kind = model.get("type", _WORDPIECE)
    if kind != _WORDPIECE or not isinstance(model["vocab"], dict):
        raise DataError(
            f"{path} is a {kind} tokenizer, but only WordPiece vocabularies, as BERT has them, can be used. Give a "
            "network, or a vocab.txt, with WordPiece; or let training start from that network with a vocabulary of its "
            "own, whose rows are made of that one's (train.init_from, and train.init_embeddings=pieces)."
        )
    try:
        ids = {**model["vocab"], **{str(each["content"]): each["id"] for each in added}}
        ids = {entry: operator.index(number) for entry, number in ids.items()}
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} {_NO_TOKENIZER}") from error
    entries = sorted(ids, key=ids.__getitem__)
    if [ids[entry] for entry in entries] != list(range(len(entries))):
        raise DataError(
            f"{path} does not number its {len(entries):,} entries from 0 without gaps. Give a vocab.txt instead, in "
            "which every id has a line."
        )
    return entries


def _flat(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a normalizer, or in order the parts of a sequence of them."""
    if isinstance(normalizer, dict) and normalizer.get("type") == "Sequence":
        for part in normalizer.get("normalizers") or []:
            yield from _flat(part)
    elif isinstance(normalizer, dict):
        yield normalizer


def _of_normalizers(parts: list[Mapping[str, Any]]) -> TextSettings | None:
    lower_case = strip_accents = False
    for part in parts:
        if part.get("type") == "BertNormalizer":
            settings = _of_bert(part, "lowercase")
            lower_case, strip_accents = lower_case or settings.lower_case, strip_accents or settings.strip_accents
        elif part.get("type") in ("Lowercase", "StripAccents"):
            lower_case = lower_case or part["type"] == "Lowercase"
            strip_accents = strip_accents or part["type"] == "StripAccents"
        elif part.get("type") not in _FORMS and part != WORD_BREAKS:
            return None
    return TextSettings(lower_case, strip_accents)


def _of_bert(stated: Mapping[str, Any], key: str) -> TextSettings:
    # In transformers and in tokenizers, accents follow the case unless they are stated.
    lower_case, accents = bool(stated.get(key)), stated.get("strip_accents")
    return TextSettings(lower_case, lower_case if accents is None else bool(accents))


def special_names(folder: Path) -> dict[str, str]:
    """How a model folder writes the special entries, by how they are written here; {} if its files do not say."""
    named = dict[str, str]()
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        try:
            stated = parse_json(read_bytes(folder / name, MAX_JSON))
            for entry in SPECIALS:
                given = stated.get(f"{entry[1:-1].lower()}_token")
                content = given.get("content") if isinstance(given, dict) else given
                named |= {entry: content} if isinstance(content, str) else {}
        except (OSError, ValueError, AttributeError):
            continue  # absent, as in folders of this project; a damaged one says nothing
    return named
