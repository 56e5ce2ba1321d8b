"""Every text of a place or a recipe is looked at for secrets, wherever it stands."""

from bertwright.launch.secrets import secrets, texts


def test_every_text_has_its_dotted_key() -> None:
    values = {"a": "1", "b": {"c": ["2", {"d": "3"}], "n": 4, "t": True}, "e": []}
    assert list(texts(values)) == [("a", "1"), ("b.c.0", "2"), ("b.c.1.d", "3")]


def test_a_secret_may_be_the_next_text_of_the_same_list_only() -> None:
    """`--token` and its value are two words there; texts of different keys have nothing to do with each other."""
    assert [key for key, _ in secrets({"options": ["run", "--token", "planted"]})] == ["options.2"]
    assert list(secrets({"options": ["run", "--token"], "words": ["planted"]})) == []
    assert list(secrets({"a": "--token", "b": "planted"})) == []
    assert list(secrets({"one": {"0": "--token"}, "two": {"0": "planted"}})) == []


def test_every_secret_is_found_and_none_is_shown() -> None:
    found = list(secrets({"a": ["--api-key=planted"], "b": {"c": "https://host/x?sig=planted"}}))
    assert [key for key, _ in found] == ["a.0", "b.c"]
    assert not any("planted" in text for _, text in found)
