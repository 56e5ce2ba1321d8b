"""Patterns become sentences: slots, agreement, choices, articles, links."""

import re

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from tools.sample import english, world
from tools.sample.draws import Draws
from tools.sample.grammar import ENGLISH, HUNGARIAN, Grammar, Language, patterns
from tools.sample.world import Row, Tables


def grammar(language: Language, *, name: str = "test") -> Grammar:
    return Grammar(language, world.load(language.code, 40, 20), Draws(name))


def row(tables: Tables, table: str, name: str) -> Row:
    return next(row for row in tables[table] if row["name"] == name)


def both_numbers(language: Language, pattern: str, **topic: str) -> set[str]:
    made = grammar(language)
    things = {table: row(made.tables, table, name) for table, name in topic.items()}
    return {made.sentence(pattern, things, set()) for _ in range(40)}


def test_one_coin_rules_a_sentence() -> None:
    found = both_numbers(HUNGARIAN, "@ {animal*} {animal.food:t} [eszik|esznek].", animal="egér")
    assert found == {"Az egér magot eszik.", "Az egerek magot esznek."}
    found = both_numbers(ENGLISH, "the {animal*} {animal.calls}.", animal="mouse")
    assert found == {"The mouse squeaks.", "The mice squeak."}


def test_places_take_their_own_endings() -> None:
    assert both_numbers(HUNGARIAN, "@ {animal.home:loc} él.", animal="róka") == {"Az erdőben él."}
    assert both_numbers(HUNGARIAN, "@ {animal.home:lat} megy.", animal="juh") == {"A rétre megy."}


def test_choices_and_english_articles() -> None:
    assert both_numbers(ENGLISH, "@ {animal} (sees|hears) @ {fruit}.", animal="owl", fruit="apple") == {
        "An owl sees an apple.",
        "An owl hears an apple.",
    }


def test_the_second_of_a_kind_is_another() -> None:
    made = grammar(ENGLISH)
    for _ in range(200):
        first, second = made.sentence("{animal} {animal2}", {}, set()).lower().split(" ", 1)
        assert first != second


def test_a_word_is_linked_once_and_its_ending_stays_outside() -> None:
    made = grammar(HUNGARIAN)
    unlinked = {"béka"}
    topic = {"animal": row(made.tables, "animal", "béka")}
    text = " ".join(made.sentence("Lát egy {animal:t}.", topic, unlinked) for _ in range(30))
    assert text.count("[[béka|békát]]") == 1 and not unlinked
    unlinked = {"juhász"}
    topic = {"trade": row(made.tables, "trade", "juhász")}
    text = " ".join(made.sentence("Segít @ {trade:nak}.", topic, unlinked) for _ in range(30))
    assert text.count("[[juhász]]nak") == 1


@each_row("language", [HUNGARIAN, ENGLISH])
def test_every_pattern_can_be_filled(language: Language) -> None:
    made = grammar(language)
    lines = patterns(language.code)
    assert sum(len(section) for section in lines.values()) > 120
    for section, members in lines.items():
        assert len(set(members)) == len(members), f"a pattern stands twice in {section}"
        for pattern in members:
            sentence = made.sentence(pattern, {}, set())
            assert not re.search(r"[{}@|*()]|\[(?!\[)|  ", sentence.replace("'''", "")), sentence
            assert re.match(r"\W*[A-ZÁÉÍÓÖŐÚÜŰ]", sentence) and sentence[-1] in '.”"', sentence


def test_facts_are_the_same_each_time_and_neighbours_agree() -> None:
    first, second = (world.load("hu", 60, 30)["town"] for _ in range(2))
    assert [town["name"] for town in first] == [town["name"] for town in second]
    for town in first:
        neighbour = town["neighbour"]
        assert isinstance(neighbour, dict)
        assert neighbour["neighbour"] is town and neighbour["river"] is town["river"]


PLURALS = {
    "mouse": "mice",
    "cherry": "cherries",
    "fox": "foxes",
    "donkey": "donkeys",
    "market woman": "market women",
    "piece of lace": "pieces of lace",
}


@each_row(("word", "plural"), PLURALS.items())
def test_english_plurals(word: str, plural: str) -> None:
    assert english.suffixed(word, "s") == plural


@each_row(("word", "article"), [("owl", "an"), ("fox", "a"), ("hour", "an"), ("useful", "a")])
def test_english_articles(word: str, article: str) -> None:
    assert english.article(word) == article


def test_a_row_of_the_wrong_width_is_named(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "world.xx.txt").write_text("[animal] name | colour\nróka | vörös | erdő\n")
    monkeypatch.setattr(world, "__file__", str(tmp_path / "world.py"))
    with pytest.raises(DataError, match="róka"):
        world.load("xx", 1, 1)
