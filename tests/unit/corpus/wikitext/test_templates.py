"""Templates that stand for words: the table's patterns, and the table itself."""

import tomllib
from pathlib import Path

import pytest
from tests.rows import each_row

import bertwright.corpus.wikitext.templates as module
from bertwright.core.errors import DataError
from bertwright.corpus.wikis import wikis
from bertwright.corpus.wikitext.locales import locale_of
from bertwright.corpus.wikitext.patterns import Field, Formed, Item, Pattern
from bertwright.corpus.wikitext.templates import Table, read_table, templates_of


@each_row(
    ("call", "text"),
    [
        ("convert|93030|km2", "93,030 km²"),
        ("Convert|5|to|10|km|mi|abbr=on", "5 to 10 km"),
        ("cvt|3|-|4|m", "3–4 m"),
        ("convert|6|ft|2|in|m", "6 ft 2 in"),
        ("convert|6|ft|2", "6 ft"),
        ("nowrap|x y", "x y"),
        ("nowrap|1=a = b", "a = b"),
        ("lang|hu|szöveg", "szöveg"),
        ("lang-hu|szöveg", "Hungarian: szöveg"),
        ("transl|ar|ALA|al-Jazāʾir", "al-Jazāʾir"),
        ("transl|al-Jazāʾir", "al-Jazāʾir"),
        ("abbr|km|kilometre", "km"),
        ("val|6.2|0.1|e=18|u=m/s", "6.2 ± 0.1×10^18 m/s"),
        ("val|7", "7"),
        ("frac|1|2", "1/2"),
        ("frac|3", "1/3"),
        ("frac|2|1|3", "2 1/3"),
        ("chem|C|n|H|2n+2", "CnH2n+2"),
        ("nihongo|tea|茶|cha", "tea (茶, cha)"),
        ("nihongo|tea|茶", "tea (茶)"),
        ("as of|2014|lc=y", "as of 2014"),
        ("as of|2014", "As of 2014"),
        ("formatnum:1234", "1,234"),
        ("key_press|Ctrl|C", "Ctrl+C"),
        ("=", "&#61;"),
        ("IPAc-en|lang|ˈ|eɪ|_|b", "/ˈeɪ b/"),
        ("IPAc-en|eɪ", "/eɪ/"),
        ("Harvtxt|Boolos|Jeffrey|1974, 1999|p=3", "Boolos & Jeffrey (1974, 1999)"),
        ("IPAc-en|US|ˈ|æ|s", "/ˈæs/"),
        ("circa|1450", "c. 1450"),
        ("coord|13|19|N|169|9|W|type:event", "13°19′N 169°9′W"),
        ("coord|13|19|N|169|9|W|display=title", ""),
        ("quote|a|b", "\n\na\n\n"),
        ("see|name=Castle|url=x|content=A fine castle above the town", "Castle. A fine castle above the town"),
        ("see|Castle", None),
        ("lang|hu", None),
        ("no such template|x", None),
    ],
)
def test_calls_read_as_words(call: str, text: str | None) -> None:
    assert templates_of("en").text(call) == text


@each_row(
    ("language", "call", "text"),
    [
        ("bn", "রূপান্তর|5|km", "৫ km"),
        ("bn", "আনুমানিক|২৪০০", "আনু. ২৪০০"),
        ("el", "μετατροπή|5|km|mi", "5 km"),
        ("hu", "szám|1200", "1200"),
        ("hy", "lang2|mo|ro|Republica", "Republica"),
        ("mr", "रुपया", "₹"),
        ("en", "lang-grc|Ἀχιλλεύς", "Ancient Greek: Ἀχιλλεύς"),
        ("simple", "lang-ru|Москва|label=none", "Москва"),
        ("es", "lang-ru|Москва", "en ruso: Москва"),
        ("es", "lang-zxx|Москва", "Москва"),
        ("ko", "llang|da|Egeskov Slot", "덴마크어: Egeskov Slot"),
        ("vi", "lang-sv|Sverige", "tiếng Thụy Điển: Sverige"),
        ("ar", "lang-ru|Москва", "بالروسية: Москва"),
        ("uk", "ДН|14|3|1854|2", "2 (14) березня 1854"),
        ("vi", "hn|ch=吳權", "吳權"),
    ],
)
def test_localised_names(language: str, call: str, text: str) -> None:
    assert templates_of(language).text(call) == text


def test_a_wiki_may_name_a_template_of_an_earlier_table(tmp_path: Path) -> None:
    assert templates_of("et").text("Murd|1|2") == "1/2"
    assert templates_of("mk").text("датум на раѓање|1990|5|12") == templates_of("mk").text("birth date|1990|5|12")
    assert templates_of("et").is_general("murdmata")
    assert templates_of("sv").text("fotnot|a remark") == "" and not templates_of("sv").is_general("fotnot")
    table = tmp_path / "mine.toml"
    table.write_text('[any]\nmine = "<{1}>"\n[et]\nsame = ["mine: minu|oma"]\n')
    assert templates_of("et", read_table(table)).text("oma|a") == "<a>"
    table.write_text('[et]\nsame = ["unheard of: minu"]\n')
    with pytest.raises(DataError, match="unheard of"):
        templates_of("et", read_table(table))


def test_a_languages_own_names_hold_there_alone() -> None:
    assert templates_of("uk").text("нп|Лист|листі|en|Letter") == "листі"
    assert not templates_of("hu").know("нп")
    assert templates_of("hu").know(" Nowrap")


def test_lines_of_the_users_own_file_win(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(
        '[any]\nnowrap = "<{1}>"\nmine = ["{2*-}", "{1}"]\n[uk]\nmine = "{x}"\ndisambiguation = ["My Dab"]\n',
        encoding="utf-8-sig",  # as Windows editors write it
    )
    english, ukrainian = (templates_of(language, read_table(table)) for language in ("en", "uk"))
    assert english.text("nowrap|a") == "<a>"
    assert english.text("mine|a|b|c_d|e") == "b-c d-e"
    assert english.text("mine|a") == "a"
    assert ukrainian.text("mine|x=a") == "a"
    assert "my dab" in ukrainian.disambiguation and "disambig" in ukrainian.disambiguation
    assert "my dab" not in english.disambiguation
    family = templates_of("uk", Table(tmp_path, '[any]\n"lang-*" = "<{1}>"\n"x|*e y" = "{0}!"\n'))
    assert family.text("lang-en|a") == "<a>"
    assert (family.text("X"), family.text("XXe_Y"), family.text("e y")) == ("X!", "XX!", None)
    alone = templates_of("uk", Table(tmp_path, '[uk]\ndisambiguation = "My Dab"\n'))
    assert alone.disambiguation - templates_of("uk").disambiguation == {"my dab"}


@each_row(
    ("content", "message"),
    [
        ("[any]\nx = 5", "is 5; "),
        ('x = "{1}"', "outside a table"),
        ('[any]\nx = "{1"', "'x': .* brace"),
        ("[any", "cannot read the template table"),
        ("#" * (4 * 2**20 + 1), "cannot read the template table .*: it is larger than 4,194,304 bytes"),
    ],
)
def test_a_wrong_file_is_refused(content: str, message: str, tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(content)
    with pytest.raises(DataError, match=message):
        templates_of("en", read_table(table))


@each_row("source", ["{1", "1}", "a [b", "a ] b", "[a [b]]", "{1:cardinal}"])
def test_a_broken_pattern_is_refused(source: str) -> None:
    with pytest.raises(DataError, match="template pattern"):
        Pattern.parse(source, locale_of("en"))


def _shown(items: tuple[Item, ...]) -> list[str]:
    """The names of all arguments that the items write."""
    fields = [field for item in items for field in (item.fields if isinstance(item, Formed) else (item,))]
    return [name for field in fields if isinstance(field, Field) and field.shown for name in field.names]


def test_every_pattern_of_the_tables_reads_and_cannot_explode() -> None:
    for path in Path(module.__file__).with_suffix("").iterdir():
        wiki, lines = path.stem, tomllib.loads(path.read_text("utf-8"))
        project = next((name for name in ("wiktionary", "wikivoyage", "wikisource") if wiki.endswith(name)), "")
        language = wiki.removesuffix(project)
        templates_of(language, None, project)
        assert language in ("any", *wikis()) or wiki == project
        for names, ways in lines.items():
            if names in ("disambiguation", "silent", "verbatim", "mentions", "languages", "same"):
                continue
            for name in names.split("|"):
                assert name == " ".join(name.lower().split()), f"{path.name}: {name!r} can never match"
            for way in [ways] if isinstance(ways, str) else ways:
                shown = [name for _, items in Pattern.parse(way, locale_of(language)).groups for name in _shown(items)]
                # Each argument once: a nest of calls grows no faster than its source.
                assert len(set(shown)) == len(shown), f"{path.name}: {names!r} repeats a field"


def test_no_name_stands_in_a_file_twice() -> None:
    for path in Path(module.__file__).with_suffix("").iterdir():
        lines = tomllib.loads(path.read_text("utf-8"))
        listed = (name for kind in ("silent", "verbatim") for name in lines.pop(kind, []))
        listed = [*listed, *(name for line in lines.pop("same", ()) for name in line.partition(": ")[2].split("|"))]
        for kind in ("disambiguation", "mentions", "languages"):
            lines.pop(kind, None)
        names = [name for line in lines for name in line.split("|")] + listed
        assert {name for name in names if names.count(name) > 1} == set(), path.name
