"""What entries are in an older vocabulary, against the tokenizers of the library and a search of one's own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.vocab.correspondence import NEW, Correspondence, correspond
from bertwright.vocab.entries import TextSettings, special_names
from bertwright.vocab.split import build_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = list("abcdehiklmnoprstuvzá")
OLD = [
    *SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS), "ház", "Ház", "haz", "##ak", "##nak", "ban", "##ban",
    "Pest", "mal", "##om", ".", "[unused0]",
]  # fmt: skip
NEW_ENTRIES = [
    "[CLS]", "[PAD]", "[MASK]", "[SEP]", "[UNK]", "ház", "házak", "##ban", "##banak", "malomban", "őrség", "őő", "Ház",
    "pest", "##om", ".", "[unused0]", "[unused7]", "z", "##ź",
]  # fmt: skip
CASED, UNCASED = TextSettings(False, False), TextSettings(True, True)


def found(
    entries: list[str],
    older: list[str],
    settings: TextSettings = CASED,
    older_settings: TextSettings = CASED,
    **roles: Any,
) -> tuple[Correspondence, dict[str, str | list[str]]]:
    """The correspondence, and for each entry the older entry that it is, or those that it consists of."""
    made, read = correspond(entries, older, settings, older_settings, roles), dict[str, str | list[str]]()
    ends = np.cumsum(made.counts_V)
    for entry, same, count, end in zip(entries, made.same_V, made.counts_V, ends, strict=True):
        pieces = [older[piece] for piece in made.pieces_N[end - count : end]]
        read[entry] = older[same] if same != NEW else pieces
        assert same == NEW or not pieces
    return made, read


def test_entries_are_the_same_or_consist_of_pieces() -> None:
    made, read = found(NEW_ENTRIES, OLD)
    assert all(read[entry] == entry for entry in (*SPECIALS, "ház", "Ház", "##ban", "##om", ".", "[unused0]", "z"))
    assert read["házak"] == ["ház", "##ak"] and read["malomban"] == ["mal", "##om", "##ban"]
    assert read["##banak"] == ["##ban", "##ak"], "as the rest of a word"
    assert read["pest"] == ["p", "##e", "##s", "##t"], "the older vocabulary distinguishes case"
    assert read["őrség"] == ["r", "##s"] and read["őő"] == read["##ź"] == [], "without letters that are unknown"
    assert read["[unused7]"] == []
    assert made.numbers == (12, 5, 3) and made.note == (
        "of 20 entries 12 are copied, 5 composed of older pieces, and 3 near the mean of all"
    )


def test_text_settings_decide_what_an_entry_matches() -> None:
    lower = [entry for entry in OLD if entry not in ("ház", "Ház", "Pest", "á", "##á")]
    _, read = found(NEW_ENTRIES, lower, CASED, UNCASED)
    assert read["Ház"] == read["ház"] == ["haz"] and read["házak"] == ["haz", "##ak"]
    _, read = found(["Ház", "ház", *SPECIALS], [*lower, "Ház"], CASED, UNCASED)
    assert read["Ház"] == ["haz"], "the older tokenizer never gives an entry with a capital letter"
    _, read = found(["pest", "haz", "##ban", *SPECIALS], OLD, UNCASED, CASED)
    assert read["pest"] == ["Pest"], "what it is called where case is distinguished"
    assert read["haz"] == "haz" and read["##ban"] == "##ban"
    without = [entry for entry in OLD if entry != "haz"]
    assert found(["haz", *SPECIALS], without, UNCASED, CASED)[1]["haz"] == ["ház", "Ház"]


@each_row("written", [{}, {"[MASK]": "*mask*"}])
def test_special_entries_are_known_by_their_role(written: dict[str, str]) -> None:
    older = ["<s>", "<pad>", "</s>", "<unk>", written.get("[MASK]", "<mask>"), *OLD[5:]]
    _, read = found(SPECIALS, older, **written)
    assert read == dict(zip(SPECIALS, ["<pad>", "<unk>", "<s>", "</s>", older[4]], strict=True))


def test_a_folder_says_how_it_writes_them(tmp_path: Path) -> None:
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"mask_token": {"content": "<m>"}, "pad_token": "<p>"})
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"cls_token": "<c>", "unk_token": None}))
    assert special_names(tmp_path) == {"[MASK]": "<m>", "[PAD]": "<p>", "[CLS]": "<c>"}
    (tmp_path / "tokenizer_config.json").write_text("[")
    assert special_names(tmp_path) == {"[MASK]": "<m>", "[PAD]": "<p>"} and special_names(tmp_path / "none") == {}


@pytest.mark.parametrize("settings", [CASED, UNCASED])
def test_pieces_are_those_of_the_library_and_of_a_greedy_search(settings: TextSettings) -> None:
    random = np.random.default_rng(5)
    letters = np.array(LETTERS)
    older = [*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    older += sorted(
        {"".join(random.choice(letters, 2)) for _ in range(60)} | {f"##{a}{b}" for a in "abks" for b in "tuv"}
    )
    drawn = {"".join(random.choice(letters, size)) for size in random.integers(3, 8, 120)}
    entries = [*SPECIALS, *sorted(drawn), *sorted(f"##{word}" for word in drawn)]
    _, read = found(entries, older, settings, settings)
    tokenizer = build_tokenizer(older, *settings)
    for word in sorted(drawn):
        normal = tokenizer.normalizer.normalize_str(word)
        assert read[word] == tokenizer.encode(word, add_special_tokens=False).tokens
        assert read[f"##{word}"] == greedy(normal, set(older))


def greedy(rest: str, older: set[str]) -> list[str]:
    """The longest ## entry that the rest of a word begins with, and so on."""
    if not rest:
        return []
    end = next(end for end in range(len(rest), 0, -1) if f"##{rest[:end]}" in older)
    return [f"##{rest[:end]}", *greedy(rest[end:], older)]
