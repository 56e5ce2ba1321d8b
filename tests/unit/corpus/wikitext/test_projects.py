"""The text of other projects than Wikipedia: dictionaries, books, travel guides and wikis with tabs."""

import pytest

from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.definitions import Definitions
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.wikitext.templates import templates_of


def texts(wikitext: str, project: str, language: str = "en") -> list[str]:
    return [paragraph.text for paragraph in paragraphs(wikitext, Site(language, {}, project), title="Cat")]


ENTRY = """==English==
===Etymology===
From {{inh|en|enm|catte}}, from {{der|en|gem-pro|*kattuz||a cat}}, akin to {{cog|de|Katze}} and {{cog|nl|-}}.

===Pronunciation===
* {{a|UK}} {{IPA|en|/kæt/}}
* {{audio|en|En-cat.ogg|Audio (UK)}}

===Noun===
{{en-noun}}

# {{lb|en|informal}} A small [[animal]] of the house.
#: {{ux|en|Our '''cat''' sleeps all day.}}
#: {{syn|en|mouser|puss}}
#* {{quote-book|en|year=1900|author=A. Writer|title=A Book|passage=The '''cat''' went out.}}
# {{plural of|en|ca}}

====Derived terms====
* {{l|en|catfish}}
* [[cat's eye]], [[wildcat]]
{{der3|en|a|b}}

====Translations====
{{trans-top|a small animal}}
* Czech: {{t+|cs|kočka|f}}
* Serbo-Croatian:
*: Cyrillic: {{t|sh|мачка}}, Latin: {{t|sh|mačka}}
{{trans-bottom}}
"""


def test_a_dictionary_keeps_its_prose() -> None:
    assert texts(ENTRY, "wiktionary") == [
        "From Middle English catte, from Proto-Germanic *kattuz (“a cat”), akin to German Katze and Dutch.",
        "A small animal of the house.",
        "Our cat sleeps all day.",
        "The cat went out.",
        "plural of ca",
    ]


@pytest.mark.parametrize(("language", "wikitext", "expected"), [
    (
        "de",
        "== Boot ({{Sprache|Deutsch}}) ==\n{{Worttrennung}}\n:Boot, {{Pl.}} Boo·te\n{{Bedeutungen}}\n"
        ":[1] kleines [[Wasserfahrzeug]]\n{{Synonyme}}\n:[1] [[Kahn]], [[Barke]]\n{{Beispiele}}\n"
        ":[1, 2] Wir fahren mit dem ''Boot'' über den Fluss.<ref>Buch</ref>",
        ["kleines Wasserfahrzeug", "Wir fahren mit dem Boot über den Fluss."],
    ),
    (
        "fr",
        "== {{langue|fr}} ==\n=== {{S|étymologie}} ===\n: Du {{étyl|la|fr|cattus}}.\n=== {{S|nom|fr}} ===\n"
        "'''chat''' {{pron|ʃa|fr}} {{m}}\n# {{zoologie|fr}} Petit animal.\n#* ''Le '''chat''' dort.'' {{source|Moi}}\n"
        "==== {{S|dérivés}} ====\n* {{lien|chaton|fr}} (''petit chat'')",
        ["Du latin cattus.", "Petit animal.", "Le chat dort."],
    ),
    ("de", ":[1] [[brüchig]]e und [[gebacken]]e [[Süßigkeit]]\n:[1] [[Keks]]", ["brüchige und gebackene Süßigkeit"]),
    ("es", ";1 {{ámbito|Zoología}}: animal pequeño de la casa.\n*Inglés: [[cat]]", ["animal pequeño de la casa."]),
    ("pl", ": (1.1) mały ssak\n: (1.1) [[kotka]], [[kocur]]", ["mały ssak"]),
    ("ja", "#[[家]]に飼う小さな動物。\n*英語: [[cat]]\n*[[猫]]、[[子猫]]", ["家に飼う小さな動物。"]),
])  # fmt: skip
def test_dictionaries_in_other_languages(language: str, wikitext: str, expected: list[str]) -> None:
    assert texts(wikitext, "wiktionary", language) == expected


@pytest.mark.parametrize(("language", "wikitext", "expected"), [
    (
        "cs", "# zvíře\n#* {{Příklad|cs|Pes je [[přítel]] člověka.}}<ref>{{Citace|titul=Kniha}}</ref>",
        ["zvíře", "Pes je přítel člověka."],
    ),
    ("cs", "#* {{Příklad|sk|Život je pes.|Život je [[pes]].}}", ["Život je pes. — Život je pes."]),
    ("ko", "#:{{예문|ko|나는 아무 관계도 없다|footer=그들은 서로 관계가 없음|출처=시}}", ["나는 아무 관계도 없다"]),
    (
        "ms", "#* {{quote-book\n|de\n|title=Ein Buch über alte Quellen\n|passage=Das ist\nein Satz.|t=Satu ayat.}}",
        ["Das ist ein Satz. — Satu ayat."],
    ),
    ("ms", "#*: {{quote|de|Nun steht es fest.|Sekarang sudah jelas.}}", ["Nun steht es fest. — Sekarang sudah jelas."]),
    (
        "th", "#: {{ja-usex|山に'''白熊'''がいるかなあ‼|やま に しろくま が いる か|มีหมีขั้วโลก}}",
        ["山に白熊がいるかなあ‼ — มีหมีขั้วโลก"],
    ),
    (
        "nl", "# zee\n{{bijv-2|Das [[Wasser]] ist kalt.|Het water is koud.}}\n{{bijv-1|Geen dag zonder water!}}",
        ["zee", "Das Wasser ist kalt. — Het water is koud.", "Geen dag zonder water!"],
    ),
    (
        "es", ";1 {{ámbito|Mar}}: mucha agua salada.\n{{sinónimo|océano}}\n{{ejemplos|El mar es [[grande]].|a=Yo}}",
        ["mucha agua salada.", "El mar es grande."],
    ),
    ("en", "#* {{RQ:Author Book|V|138|2|O beg a greater thing.}}", ["O beg a greater thing."]),
    (
        "ru", "* [[есть]]{{-}}в значении «существовать» опускается{{gap}}обычно",
        ["есть — в значении «существовать» опускается обычно"],
    ),
    (
        "sv", "#:{{citat|år=1996|titel=Naiv|Han løp og badet seg.|Han sprang och badade.}}",
        ["Han løp og badet seg. — Han sprang och badade."],
    ),
    (
        "ru",
        "# {{значение\n |определение = [[существовать]]\n |примеры     = {{пример|Быть или не {{выдел|быть}}?|Автор}}\n"
        " |синонимы    = жить\n}}",
        ["существовать", "Быть или не быть?"],
    ),
    ("nl", "# zee\n{{-syn-|een rij van woorden}}\n{{box|Dit is geen voorbeeld.}}", ["zee"]),
    (
        "ja", "#* {{ux|pl|Idę do domu.|[[わたし|私]]は[[いえ|家]][[に]]かえります。}}",
        ["Idę do domu. — 私は家にかえります。"],
    ),
    ("cs", "#* {{Synonyma|cs|pes|čokl|hafan}}\n#* {{Citace|titul=Kniha o psech a lidech}}", []),
    ("en", "* {{unheard|en|This is not below a definition.}}", []),
])  # fmt: skip
def test_examples_are_known_by_their_form_and_place(language: str, wikitext: str, expected: list[str]) -> None:
    assert texts(wikitext, "wiktionary", language) == expected


def test_an_encyclopedia_keeps_its_lists() -> None:
    assert texts("* [[Catfish]]\n* Czech: [[kočka]]", "wikipedia") == ["Catfish", "Czech: kočka"]


def test_a_template_that_spans_lines_is_left_whole() -> None:
    quotation = "#* {{quote-book|en|title=X\n|passage=The cat\n* sat there.}}\n* [[catfish]]"
    assert texts(quotation, "wiktionary") == ["The cat", "sat there."]


def test_listings_of_a_travel_guide() -> None:
    guide = (
        "*{{see|name=Old Tower|alt=|url=http://x.org|lat=1|content=Built in 1400, with a view.}}\n"
        "* {{listing|type=eat|name=The Inn}}\n"
        "The shops of {{buy|name=Market Street|lat=2}} are cheap, about {{EUR|5}}.\n"
        "{{Regionlist\n|region1name=[[North]]\n|region1color=#fff\n|region1description=Hills and lakes.\n}}"
    )
    assert texts(guide, "wikivoyage") == [
        "Old Tower. Built in 1400, with a view.",
        "The Inn",
        "The shops of Market Street are cheap, about €5.",
        "North. Hills and lakes.",
    ]
    assert texts("* {{vCard|type=hotel|name=Gasthof|description=Mit Blick auf den See.}}", "wikivoyage", "de") == [
        "Gasthof. Mit Blick auf den See."
    ]
    assert texts("* {{Voir|nom=La tour|description=Une belle vue.}}", "wikivoyage", "fr") == ["La tour. Une belle vue."]


@pytest.mark.parametrize(("language", "listing", "expected"), [
    (
        "he", "{{ראו|שם=המגדל|טלפון=123|תיאור=מגדל ישן עם נוף יפה של כל העיר מכל הצדדים.}}",
        "המגדל. מגדל ישן עם נוף יפה של כל העיר מכל הצדדים.",
    ),
    (
        "ru",
        "{{monument|type=architecture|region=ru-mow|lat=1|name=[[Храм|Старый храм]]|description=Построен в камне, "
        "стоит на холме над самой рекой.}}",
        "Старый храм. Построен в камне, стоит на холме над самой рекой.",
    ),
])  # fmt: skip
def test_listings_are_known_by_their_form(language: str, listing: str, expected: str) -> None:
    page = f"{{{{Infobox|name=City|text=A box at the top that has some words of prose in it.}}}}\nText.\n* {listing}"
    assert texts(page, "wikivoyage", language) == ["Text.", expected]


def test_templates_of_a_book_print_what_they_are_given() -> None:
    page = (
        "{{c|{{larger|CHAPTER I}}}}\n\n{{di|T}}he {{sc|Abbot}} wrote {{unheardof|“in {{x-smaller|haste}}”|130%}}"
        "{{gap}}to {{unheardof2|2em}}his {{hws|bro|brother}}\n{{hwe|ther|brother}}.{{nop}}\n{{rh|12|ABBEY|}}\n"
        "{{ppoem|class=x|\nThe owl and the cat\nwent to sea}}\n{{PD-old}}"
    )
    assert texts(page, "wikisource") == [
        "CHAPTER I",
        "The Abbot wrote “in haste” to his brother.",
        "The owl and the cat went to sea",
    ]


@pytest.mark.parametrize(("language", "wikitext", "expected"), [
    ("de", "{{BlockSatzStart}}\n{{SeitePR|77|De Anthologie 1782 077.jpg|t1}}\n{{Seite|Buch.djvu/3|3}}Text.", ["Text."]),
    ("it", "{{Unheard|N|el mezzo}} del cammin, {{altro|A|2em}} noi", ["Nel mezzo del cammin, A noi"]),
    ("en", "{{dropinitial|{{anchor|8:1}}8}}And {{di|T}}he", ["8 And The"]),
    ("en", "{{ppoem|class=poem|\n{italic}The owl >> 5\n::and the cat\n10 << went}}", ["The owl and the cat went"]),
    ("fr", "{{personnage|ALCESTE|c}}\nLaissez-moi.", ["ALCESTE", "Laissez-moi."]),
    (
        "ru",
        "{{выступ|'''Ба{{акут}}йна,''' см. {{tsdl|Баня|ба{{акут}}ня|so}}.}}{{tsdbr}}\n"
        "{{poemx|Ода|Строка<br />{{лесенка|и|ещё}}|1820}}",
        ["Ба́йна, см. ба́ня.", "Ода", "Строка", "и ещё"],
    ),
    ("it", "{{§|12}}nel {{§|a|mezzo}} del {{AutoreCitato|Dante Alighieri|Dante}} {{R|3}}", ["nel mezzo del Dante"]),
    ("ru", "{{ВАР|Міръ|Мир}} и {{перенос|сло|во}}", ["Міръ и слово"]),
    (
        "he", "{{נוסח|ויחי|2=הערה ארוכה מאוד}} {{מ:קמץ|ד=צהרים|ס=צהרים}}{{ר1}}{{מ:דחי|גוים|גוים}}{{מ:לגרמיה}}",
        ["ויחי צהריםגוים"],
    ),
    ("he", "לויתן{{ר1}}תתננו", ["לויתן תתננו"]),
    ("ar", "متن{{حا|هامش}} بقية", ["متن بقية"]),
])  # fmt: skip
def test_books_in_other_languages(language: str, wikitext: str, expected: list[str]) -> None:
    assert texts(wikitext, "wikisource", language) == expected


def test_tabs_are_sections() -> None:
    page = "Before.\n<tabber>\nFirst game=\nIt is a sword.\n|-|\nSecond = It is a shield.\n</tabber>\nAfter. <tabber>"
    found = paragraphs(page, Site("en", {}, "fandom"))
    assert [(p.heading, p.text) for p in found] == [
        (None, "Before."), ("First game", "It is a sword."), ("Second", "It is a shield."), (None, "After."),
    ]  # fmt: skip


def test_widgets_of_fandom_print_nothing() -> None:
    page = (
        '<mainpage-leftcolumn-start />\n<infobox layout="x"><title source="a"><default>B</default></title></infobox>\n'
        "The Jedi<youtube>abc123</youtube> are ''here''.\n<tabview>\nA/B|One\n</tabview>\n"
        "{{Quote|Do. Or do not.|Yoda|Film}}\n<poll>Which?\nA\n</poll><verbatim>x</verbatim>\n<mainpage-endcolumn />"
    )
    assert texts(page, "fandom") == ["The Jedi are here.", "Do. Or do not."]
    box = (
        "{{Character\n|name=Yoda\n|home=Dagobah\n|quote=''Do or do not'', said the [[master]] to him.\n"
        f"|ja={'やってみるなどということはない、 ' * 7}}}}}\n"
        "He {{tip|text=This is not in the line of the text.}} left."
    )
    said = ["Do or do not, said the master to him.", "He left."]
    assert texts(box, "fandom") == said
    # A template that the dump defines as a table has no words of its own.
    boxes = Definitions({"character": ""})
    assert [p.text for p in paragraphs(box, Site("en", {}, "fandom"), definitions=boxes)] == said
    assert texts("<youtube>is</youtube> a tag of Fandom.", "wikipedia") == ["<youtube>is</youtube> a tag of Fandom."]


def test_the_most_special_table_wins() -> None:
    english, french = templates_of("en", None, "wiktionary"), templates_of("fr", None, "wiktionary")
    assert english.text("l|de|Katze") == "Katze"
    assert french.text("l|chat|fr") == "chat"
    assert "l" in french.mentions
    assert not templates_of("en").know("ux")
    assert french.text("nowrap|a b") == "a b"
    assert english.text("rare misspelling of|en|kat") == "rare misspelling of kat"
    assert english.text("der|en|xx-unheard|word") == "word"
