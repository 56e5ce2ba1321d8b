"""YAML as it is written: it reads back, and says nothing twice by reference."""

import yaml

from bertwright.launch.yaml_text import yaml_text


def test_it_is_block_style_in_the_given_order_without_aliases() -> None:
    shared = {"b": [1, "two"]}
    values = {"z": shared, "a": shared, "script": "one\ntwo\n", "yes": "no", "empty": {}, "hu": "árvíztűrő"}
    text = yaml_text(values)
    assert yaml.safe_load(text) == values
    assert text.splitlines()[:4] == ["z:", "  b:", "    - 1", "    - two"]
    assert "&" not in text and "*" not in text and "script: |\n  one\n  two\n" in text and "árvíztűrő" in text
