"""Entries that are added to a finished vocabulary: which ones, where, and what the report says of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Prepared
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import entries_of
from bertwright.vocab.extend import Extended, extend
from bertwright.vocab.run import run
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import load_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz")
OLDER = [*SPECIALS, "[unused0]", "[unused1]", *LETTERS, *(f"##{letter}" for letter in LETTERS), "cell"]
OLDER = [*OLDER, *(f"q{a}{b}" for a in LETTERS for b in "qx")]
WORDS = Counter({"cells": 50, "genome": 40, "genomes": 20, "protein": 30, "ő": 4, "at": 90, "zyx": 1})


def extended(tmp_path: Path, size: int, words: Counter[str] = WORDS, **keys: Any) -> Extended:
    (tmp_path / "older.txt").write_text("".join(f"{entry}\n" for entry in OLDER))
    return extend(VocabConfig(extend=tmp_path / "older.txt", size=size, **keys), OLDER, words)


def test_words_that_are_split_badly_become_entries(tmp_path: Path) -> None:
    found = extended(tmp_path, len(OLDER) + 4, alphabet_coverage=1)
    assert found.entries[: len(OLDER)] == OLDER, "every entry keeps its id"
    assert found.entries[len(OLDER) :] == ["ő", "##ő", "genome", "protein"]
    assert "cells" not in found.entries and "at" not in found.entries, "two pieces are not many"
    fertility = (50 * 2 + 40 * 6 + 20 * 7 + 30 * 7 + 4 + 90 * 2 + 3) / 235
    assert found.report == {
        "older": len(OLDER),
        "added": 4,
        "in_unused": 0,
        "characters": 2,
        "badly_split_words": 91,
        "older_fertility": round(fertility, 4),
        "older_unknown_rate": round(4 / 235, 6),
        "examples": found.report["examples"],
    }
    assert found.report["examples"][:2] == ["genome", "protein"]
    tokenizer = build_tokenizer(found.entries, False, False)
    assert tokenizer.encode("genomes cells őat", add_special_tokens=False).tokens == [
        "genome", "##s", "cell", "##s", "ő", "##a", "##t",
    ]  # fmt: skip


def test_unused_entries_are_replaced_first(tmp_path: Path) -> None:
    found = extended(tmp_path, len(OLDER) + 1, alphabet_coverage=1, fill_unused=True)
    assert found.entries[5:7] == ["ő", "##ő"] and found.entries[len(OLDER) :] == ["genome"]
    assert (found.report["added"], found.report["in_unused"]) == (3, 2)
    alone = extended(tmp_path, len(OLDER), fill_unused=True)
    assert len(alone.entries) == len(OLDER) and alone.entries[7:] == OLDER[7:]
    few = extended(tmp_path, len(OLDER) + 9, Counter({"at": 3}), fill_unused=True)
    assert few.entries == OLDER and few.report["added"] == 0


def test_the_same_text_gives_the_same_entries(tmp_path: Path) -> None:
    turned = Counter(dict(reversed(WORDS.items())))
    assert extended(tmp_path, 150).entries == extended(tmp_path, 150, turned).entries


@each_row(
    ("keys", "said"),
    [
        ({"size": len(OLDER)}, f"no room for entries beside the {len(OLDER)} of vocab.extend .*vocab.fill_unused=true"),
        ({"size": len(OLDER) - 2, "fill_unused": True}, "raise vocab.size above that$"),
        ({"size": 200, "trainer": {"kind": "sentencepiece"}}, "with the WordPiece trainer, .*: omit vocab.trainer"),
        ({"size": 200, "unused": 3}, "omit vocab.unused"),
        ({"file": "other.txt"}, "vocab.file takes one as it is: give one"),
    ],
)
def test_what_cannot_be_extended_is_refused(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=said):
        extended(tmp_path, keys.pop("size", None), **keys)
    with pytest.raises(RecipeError, match="give that vocabulary"):
        VocabConfig(fill_unused=True)


def test_the_stage_extends_a_vocabulary(prepared: Prepared, tmp_path: Path) -> None:
    older = tmp_path / "older.txt"
    letters = [entry for entry in entries_of(prepared.vocab.file("vocab.txt")) if len(entry.removeprefix("##")) == 1]
    older.write_text("".join(f"{entry}\n" for entry in [*SPECIALS, *letters]))
    config = VocabConfig(extend=older, size=130)
    made = run(config, prepared.corpus, tmp_path / "vocab")
    entries, added = entries_of(made.file("vocab.txt")), made.counts["extended"]
    assert entries[: added["older"]] == entries_of(older) and len(entries) == added["older"] + added["added"] <= 130
    assert added["added"] > 10 and made.counts["fertility"] < added["older_fertility"]
    assert all(entry in load_tokenizer(made).vocabulary for entry in added["examples"][: added["added"]])
    moved = tmp_path / "moved.txt"
    moved.write_bytes(older.read_bytes())
    assert run(config.model_copy(update={"extend": moved}), prepared.corpus, tmp_path / "vocab").fingerprint == (
        made.fingerprint
    ), "known by its content"
