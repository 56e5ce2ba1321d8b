"""The generated articles: randomly chosen patterns about one thing, laid out as an ordinary wiki page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.sample import world
from tools.sample.draws import Draws
from tools.sample.grammar import LANGUAGES, Grammar, patterns
from tools.sample.page import Page
from tools.sample.world import Row, Tables, word


@dataclass(frozen=True)
class Amount:
    """Numbers of generated things in a language; animals, trades and fruits are taken from its tables completely."""

    towns: int
    people: int
    tales: int


@dataclass(frozen=True)
class Words:
    """The fixed words of a language's pages."""

    headings: Mapping[str, str]
    categories: Mapping[str, str]
    infobox: Mapping[str, str]
    category: str
    source: str
    references: str
    tale: str
    fair: str


AMOUNTS = {"hu": Amount(towns=90, people=270, tales=220), "en": Amount(towns=60, people=180, tales=130)}

WORDS = {
    "hu": Words(
        headings={
            "town": "A település", "river": "A folyó", "animal": "Állatvilág", "trade": "Mesterség",
            "product": "Az áru", "fruit": "Gyümölcsök", "person": "Élete", "tale": "A mese", "fair": "A vásár",
        },
        categories={
            "town": "Települések", "river": "Folyók", "animal": "Állatok", "trade": "Mesterségek",
            "product": "Áruk", "fruit": "Gyümölcsök", "person": "Mesterek", "tale": "Mesék", "fair": "Vásárok",
        },
        infobox={
            "river": "folyó", "trade": "mesterség", "colour": "szín", "month": "ünnep", "home": "élőhely",
            "food": "eledel", "town": "város", "instrument": "hangszer", "region": "tájegység", "fish": "hal",
        },
        category="Kategória", source="Vándorok könyve", references="Jegyzetek",
        tale="{0} {1} és {2} {3}", fair="{adjective} vásár",
    ),
    "en": Words(
        headings={
            "town": "The town", "river": "The river", "animal": "Animals", "trade": "Trade",
            "product": "The goods", "fruit": "Fruits", "person": "Life", "tale": "The tale", "fair": "The fair",
        },
        categories={
            "town": "Towns", "river": "Rivers", "animal": "Animals", "trade": "Trades",
            "product": "Goods", "fruit": "Fruits", "person": "Craftsmen", "tale": "Tales", "fair": "Fairs",
        },
        infobox={
            "river": "river", "trade": "trade", "colour": "colour", "month": "festival", "home": "habitat",
            "food": "food", "town": "town", "instrument": "instrument", "region": "region", "fish": "fish",
        },
        category="Category", source="The wanderers' book", references="References",
        tale="The {1} and the {3}", fair="{name} fair",
    ),
}  # fmt: skip

PARTS = {
    "town": (("town", "town", 9), ("trade", "town.trade", 4), ("animal", "town.animal", 3), ("fruit", "town.fruit", 2)),
    "river": (("river", "river", 9), ("town", "river.town", 5), ("trade", "river.town.trade", 2)),
    "animal": (("animal", "animal", 14),),
    "trade": (("trade", "trade", 11), ("product", "trade", 4)),
    "product": (("product", "trade", 9), ("trade", "trade", 5)),
    "fruit": (("fruit", "fruit", 8), ("animal", "", 3), ("trade", "", 3)),
    "person": (("person", "person", 11), ("trade", "person.trade", 4), ("town", "person.town", 3)),
    "tale": (("tale", "trade", 12), ("animal", "animal", 3)),
    "fair": (("fair", "town", 9), ("trade", "town.trade", 3), ("product", "", 3)),
}
"""The content of each kind of article: section of patterns, path of the thing they are about, number of patterns."""


def pages(language: str) -> Iterator[Page]:
    """Yield all generated articles of a language, identical in every run."""
    amount = AMOUNTS[language]
    tables = world.load(language, amount.towns, amount.people)
    writer = _Writer(language, tables)
    for kind, table in (("town", "town"), ("river", "river"), ("animal", "animal"), ("trade", "trade"),
                        ("product", "trade"), ("fruit", "fruit"), ("person", "person"), ("fair", "town")):  # fmt: skip
        for row in tables[table]:
            yield writer.page(kind, {table: row})
    for animal, trade in _couples(tables, Draws(language, "tales"), amount.tales):
        yield writer.page("tale", {"animal": animal, "trade": trade})


def _couples(tables: Tables, draws: Draws, count: int) -> list[tuple[Row, Row]]:
    return draws.some([(animal, trade) for animal in tables["animal"] for trade in tables["trade"]], count)


class _Writer:
    """Turns the things of one language's world into pages."""

    def __init__(self, language: str, tables: Tables) -> None:
        self.words = WORDS[language]
        self.tables = tables
        self.patterns = patterns(language)
        self.draws = Draws(language, "pages")
        self.grammar = Grammar(LANGUAGES[language], tables, self.draws)
        articles = [word(row) for name in ("town", "river", "animal", "trade", "fruit") for row in tables[name]]
        self.links = {*articles, *(word(row["product"]) for row in tables["trade"])}

    def page(self, kind: str, topic: Mapping[str, Row]) -> Page:
        title = self._title(kind, topic)
        unlinked = self.links - {title, title[0].lower() + title[1:]}
        bound = dict(topic)
        if kind == "tale":
            bound |= {"town": self.draws.one(self.tables["town"]), "animal2": self._other(topic["animal"])}
        blocks = [self._infobox(kind, topic)]
        for part, (section, path, count) in enumerate(PARTS[kind]):
            scene = bound if part == 0 else _bound(path, section, bound)
            chosen = self._chosen(section, count, in_order=kind == "tale" and part == 0)
            sentences = [self._noted(self.grammar.sentence(line, scene, unlinked)) for line in chosen]
            if part == 0:
                sentences.insert(0, self.grammar.sentence(self.draws.one(self.patterns[f"{kind}.open"]), scene, set()))
                sentences += self._ending(kind, scene, unlinked)
            else:
                blocks.append(f"== {self.words.headings[section]} ==")
            blocks.append(self._laid_out(sentences, bullets=part > 0 and self.draws.below(4) == 0))
        if any("<ref" in block for block in blocks):
            blocks.append(f"== {self.words.references} ==\n<references />")
        blocks.append(f"[[{self.words.category}:{self.words.categories[kind]}]]")
        return Page(title, 0, "\n\n".join(block for block in blocks if block))

    def _chosen(self, section: str, count: int, *, in_order: bool) -> list[str]:
        lines = self.patterns[section]
        chosen = self.draws.some(lines, count)
        return sorted(chosen, key=lines.index) if in_order else chosen

    def _ending(self, kind: str, scene: Mapping[str, Row], unlinked: set[str]) -> list[str]:
        endings = self.patterns.get(f"{kind}.end")
        return [self.grammar.sentence(self.draws.one(endings), scene, unlinked)] if endings else []

    def _other(self, animal: Row) -> Row:
        return self.draws.one([row for row in self.tables["animal"] if row is not animal])

    def _title(self, kind: str, topic: Mapping[str, Row]) -> str:
        if kind == "fair":
            title = self.words.fair.format(name=word(topic["town"]), adjective=word(topic["town"]["adjective"]))
        elif kind == "tale":
            animal, trade = word(topic["animal"]), word(topic["trade"])
            title = self.words.tale.format(self.grammar.language.article(animal), animal,
                                           self.grammar.language.article(trade), trade)  # fmt: skip
        else:
            title = word(topic["trade"]["product"]) if kind == "product" else word(next(iter(topic.values())))
        return title[0].upper() + title[1:]

    def _noted(self, sentence: str) -> str:
        """Return the sentence, with a footnote one time in sixteen."""
        if self.draws.below(16):
            return sentence
        return f"{sentence}<ref>{{{{cite|{self.words.source}|{self.draws.below(90) + 10}}}}}</ref>"

    def _laid_out(self, sentences: list[str], *, bullets: bool) -> str:
        if bullets:
            return "\n".join(f"* {sentence}" for sentence in sentences)
        middle = (len(sentences) + 1) // 2 if len(sentences) > 6 else len(sentences)
        return "\n\n".join(" ".join(part) for part in (sentences[:middle], sentences[middle:]) if part)

    def _infobox(self, kind: str, topic: Mapping[str, Row]) -> str:
        if kind not in ("town", "river", "animal", "person"):
            return ""
        row = topic[kind]
        lines = [
            f"| {label} = [[{word(row[column])}]]" for column, label in self.words.infobox.items() if column in row
        ]
        return "\n".join([f"{{{{Infobox {self.words.categories[kind].lower()}", *lines, "}}"])


def _bound(path: str, section: str, topic: Mapping[str, Row]) -> dict[str, Row]:
    """Return the topic of a later section: the thing at the path, by the name in its patterns; empty without a path."""
    if not path:
        return {}
    root, *steps = path.split(".")
    thing = topic[root]
    for step in steps:
        inner = thing[step]
        assert isinstance(inner, dict)
        thing = inner
    return {"trade" if section == "product" else section: thing}
