import random

from tests.rows import each_row
from tokenizers import models

from bertwright.vocab.matcher import Matcher

ENTRIES = ["[UNK]", "[PAD]", "#", "##", "a", "ab", "abcd", "##c", "##cd", "##dd", "##d", "##b", "##éa", "é", "中"]


def by_library(entries: list[str], words: list[str]) -> list[list[int]]:
    model = models.WordPiece({e: i for i, e in enumerate(entries)}, unk_token="[UNK]", continuing_subword_prefix="##")
    return [[token.id for token in model.tokenize(word)] for word in words]


def by_us(entries: list[str], lines: list[str]) -> list[list[int]]:
    ids, ends = Matcher({entry: i for i, entry in enumerate(entries)})("".join(f"{line}\n" for line in lines))
    return [ids[start:end].tolist() for start, end in zip([0, *ends], ends, strict=False)]


def test_by_hand() -> None:
    def matched(line: str) -> list[str]:
        return [ENTRIES[i] for i in by_us(ENTRIES, [line])[0]]

    assert matched("abcdd") == ["abcd", "##d"]
    assert matched("abccd  é ") == ["ab", "##c", "##cd", "é"]
    assert matched("abx a xa") == ["[UNK]", "a", "[UNK]"]  # not "ab" and something
    assert matched("#") == ["#"] and matched("") == []
    assert matched("a" + "b" * 99) == ["ab"] + ["##b"] * 98 and matched("a" + "b" * 100) == ["[UNK]"]


@each_row("seed", range(5))
def test_drawn_vocabularies_match_as_in_the_library(seed: int) -> None:
    draw = random.Random(seed)

    def word(most: int) -> str:
        return "".join(draw.choices("aaabbcdeé中", k=draw.randint(1, most)))

    entries = list(dict.fromkeys(["[UNK]", *(draw.choice(["", "##"]) + word(4) for _ in range(60))]))
    words = [word(12) for _ in range(500)]
    expected = by_library(entries, words)
    assert by_us(entries, words) == expected
    assert by_us(entries, [" ".join(words)]) == [[i for ids in expected for i in ids]]
    unknown = expected.count([0])
    assert 0 < unknown < len(words)


def test_entries_that_no_word_can_have_change_nothing() -> None:
    assert by_us(["[UNK]", "a", "a\0", "b" * 101, "##", "[unused1]"], ["a", "aa"]) == [[1], [0]]


def test_entries_with_spaces_do_not_reach_into_the_next_word() -> None:
    entries = ["[UNK]", "a", "b", "##b", "a b", "ab a", "##b a", "a\nb", "b  "]
    assert by_us(entries, ["a b", "ab a", "b", "a", "b"]) == [[1, 2], [1, 3, 1], [2], [1], [2]]


def test_the_longest_pieces_of_the_longest_word() -> None:
    entries = ["[UNK]", "a", "##" + "a" * 99, "##" + "a" * 98, "a" * 100, "a" * 99]
    for last in (4, 5):
        assert by_us(entries[:last], ["a" * 100, "a" * 99]) == by_library(entries[:last], ["a" * 100, "a" * 99])
    assert by_us(entries[:4], ["a" * 100]) == [[1, 2]]


def test_a_vocabulary_of_nothing_else() -> None:
    assert by_us(["[UNK]"], ["a", "", "b c"]) == [[0], [], [0, 0]]
