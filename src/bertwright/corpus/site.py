"""What one wiki calls things: its language and the names of its namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

MEDIA, FILE, CATEGORY = -2, 6, 14

# MediaWiki accepts these in every wiki, whatever <siteinfo> lists.
_CANONICAL = {"media": MEDIA, "file": FILE, "image": FILE, "category": CATEGORY}


@dataclass(frozen=True)
class Site:
    """A wiki as its dump's `<siteinfo>` describes it."""

    language: str
    """Wikipedia's code of the wiki's language, such as "hu"."""

    namespaces: Mapping[int, tuple[str, ...]]
    """The names of each namespace by its number, localised and canonical English."""

    def namespace(self, prefix: str) -> int | None:
        """The number of the namespace called `prefix` (any case, "_" as space), else None."""
        return self._numbers.get(prefix.replace("_", " ").strip().lower())

    @cached_property
    def _numbers(self) -> dict[str, int]:
        localised = {
            name.replace("_", " ").lower(): number
            for number, names in self.namespaces.items()
            for name in names
            if name
        }
        return _CANONICAL | localised
