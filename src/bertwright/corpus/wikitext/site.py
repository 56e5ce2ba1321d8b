"""The vocabulary of one wiki: its language and the names of its namespaces."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bertwright.corpus.wikis import wikis

MEDIA, FILE, TEMPLATE, CATEGORY = -2, 6, 10, 14

# MediaWiki accepts these names in every wiki; an export lists only the wiki's own.
_CANONICAL = {
    "media": MEDIA, "special": -1, "talk": 1, "user": 2, "user talk": 3, "project": 4, "project talk": 5,
    "file": FILE, "file talk": 7, "image": FILE, "image talk": 7, "mediawiki": 8, "mediawiki talk": 9,
    "template": TEMPLATE, "template talk": 11, "help": 12, "help talk": 13, "category": CATEGORY, "category talk": 15,
}  # fmt: skip

# An export lists one name for each namespace, but MediaWiki accepts further ones: older ones, those of other scripts,
# and for a minority language those of the language its wiki falls back on.
_CATEGORIES = """
Catagóir Categoria Categoría Categorie Catégorie Categorìa Flokkur Kategori Kategoria Kategória Kategorie Kategorija
Kategorio Kategoriya Kategory Kateqoriya Luokka Sanat Turkum Категори Категорија Категория Категорія Катэгорыя Санат
Төркем Туркум Κατηγορία Կատեգորիա კატეგორია קטגוריה تصنيف رده زمرہ تۈر سانات श्रेणी वर्ग বিষয়শ্রেণী หมวดหมู่ 分类 分類 類別
カテゴリ 분류
""".lower().split()

# Languages that MediaWiki converts between scripts or countries (its LanguageConverter).
_CONVERTED = {
    *("ban", "crh", "gan", "iu", "kk", "ku", "mni", "sh", "shi", "sr", "tg", "tly", "ug", "uz", "wuu", "zgh", "zh"),
}


_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e]")


def without_marks(title: str) -> str:
    """The title without marks of the writing direction, which MediaWiki ignores in it."""
    return title if title.isascii() else _DIRECTION.sub("", title)


@dataclass(frozen=True)
class Site:
    """A wiki as its dump's `<siteinfo>` describes it."""

    language: str
    """Wikipedia's code of the wiki's language, such as "hu"."""

    namespaces: Mapping[int, tuple[str, ...]]
    """The wiki's own names of each namespace, by its number; the canonical English names are valid as well."""

    project: str = ""
    """Its project: "wikipedia", "wiktionary", "fandom", ...; "" if unknown."""

    @cached_property
    def has_variants(self) -> bool:
        """Whether `-{...}-` is markup: the wiki shows its texts in several variants of the language."""
        # "sr-el" is a variant of Serbian, but "zh-yue" is a wiki of its own.
        base = self.language if self.language in wikis() else self.language.partition("-")[0]
        return base in _CONVERTED

    def namespace(self, prefix: str) -> int | None:
        """The number of the namespace called `prefix` (any case, "_" as space), else None."""
        return self._numbers.get(without_marks(prefix).replace("_", " ").strip().lower())

    @cached_property
    def _numbers(self) -> dict[str, int]:
        localised = {
            name.replace("_", " ").lower(): number
            for number, names in self.namespaces.items()
            for name in names
            if name
        }
        # The wiki's own names take precedence over the canonical ones.
        return _CANONICAL | dict.fromkeys(_CATEGORIES, CATEGORY) | localised
