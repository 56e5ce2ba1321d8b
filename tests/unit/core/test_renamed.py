"""Every key that a recipe of an earlier version may have is a key today, or its new name is known."""

from pathlib import Path

from bertwright import Recipe
from bertwright.core.renamed import renamed, with_new_names
from bertwright.explain import explain

EARLIER = Path(__file__).with_name("earlier_keys.txt").read_text(encoding="utf-8").split()
"""The keys of a recipe in version 0.0; the first element of a list stands for all."""


def test_every_earlier_key_is_a_key_or_has_a_new_name() -> None:
    assert len(EARLIER) == 142
    for key in EARLIER:
        now = renamed(key) or key
        assert explain(Recipe, now)["key"] == now


def test_values_below_an_old_key_keep_their_place() -> None:
    old = {"corpus": {"downloads": "d"}, "train": {"phases": [{"length": 8}, {"masking": {"frozen": True}}]}}
    now = {"corpus": {"cache_dir": "d"}, "train": {"phases": [{"length": 8}, {"masking": {"static": True}}]}}
    assert with_new_names(old) == with_new_names(now) == now
    assert with_new_names([1, "downloads", None]) == [1, "downloads", None]
