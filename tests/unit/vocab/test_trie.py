"""The trie of a vocabulary, step by step, beside a dictionary of beginnings."""

import random

import numpy as np
from tests.rows import each_row

from bertwright.vocab.matcher import Trie


def walked(trie: Trie, root: int, text: str) -> tuple[int, int]:
    """(id, length) of the longest string of a root that `text` begins with, as far as there are steps; or (-1, 0)."""
    node, classes = np.array([root], np.int32), trie.classes(np.array([ord(c) for c in text], np.uint32))
    last = node
    for place in range(len(text)):
        node = trie.step(node, classes[place : place + 1])
        if node[0] == -1:
            break
        last = node
    return int(trie.longest[last[0]]), int(trie.length[last[0]])


def by_hand(strings: dict[str, int], text: str) -> tuple[int, int]:
    fitting = [string for string in strings if text.startswith(string)]
    longest = max(fitting, key=len, default="")
    return (strings[longest], len(longest)) if fitting else (-1, 0)


@each_row("seed", range(6))
def test_every_walk_ends_at_the_longest_string(seed: int) -> None:
    draw = random.Random(seed)
    letters = ["a", "b", "\u0001", "\u0002", "ő", "中", "\U0001d518", "\U0010ffff"]  # two are marks of the roots

    def drawn(most: int) -> str:
        return "".join(draw.choices(letters, k=draw.randint(1, most)))

    roots = [{drawn(4): number for number in range(draw.choice([0, 1, 60]))} for _ in range(3)]
    trie = Trie(roots)
    for root, strings in enumerate(roots):
        for text in [drawn(6) for _ in range(200)] + list(strings):
            assert walked(trie, root, text) == by_hand(strings, text), (root, text)


def test_a_character_that_no_string_has_ends_every_walk() -> None:
    trie = Trie([{"ab": 0}, {"b": 1}])
    nodes = np.arange(len(trie.longest), dtype=np.int32)
    for character in ("x", "\0", "\uffff"):
        classes = np.repeat(trie.classes(np.array([ord(character)])), len(nodes))
        assert (trie.step(nodes, classes) == -1).all()


def test_thousands_of_characters_behind_one_node_have_their_places() -> None:
    strings = {chr(0x4E00 + number): number for number in range(20_000)}
    trie = Trie([strings])
    classes = trie.classes(np.arange(0x4E00, 0x4E00 + 20_000))
    nodes = trie.step(np.zeros(20_000, np.int32), classes)
    assert trie.longest[nodes].tolist() == list(range(20_000)) and (trie.length[nodes] == 1).all()


def test_strings_share_their_beginnings() -> None:
    alone, together = Trie([{"abcdefgh": 0}]), Trie([{"abcdefgh": 0, "abcdefgi": 1}])
    assert len(together.longest) == len(alone.longest) + 1
