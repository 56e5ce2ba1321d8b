"""Templates defined in the dump: which are plain, what they print, and that they cannot explode."""

from collections.abc import Mapping

from tests.rows import each_row

from bertwright.corpus.config import WikitextConfig
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.definitions import LONGEST, Definitions, plain_definition
from bertwright.corpus.wikitext.site import Site

SITE = Site("ltg", {4: ("Vikipedeja",), 6: ("Fails",), 10: ("Taiss",), 14: ("Kategoreja",)})


@each_row(
    ("wikitext", "body"),
    [
        ("Thursday", "Thursday"),
        ("{{{1}}} km<noinclude>\n{{documentation}}</noinclude>", "{{{1}}} km"),
        ("<!-- a\nb --><includeonly>x</includeonly>\n<noinclude>y", "x"),
        ("a <onlyinclude>b</onlyinclude> c <onlyinclude>d</onlyinclude>", "bd"),
        ("<b x=y>[[a|{{{1|b}}}]]</b>[[Kategoreja:c]]", "<b x=y>[[a|{{{1|b}}}]]</b>[[Kategoreja:c]]"),
        ("{{other|{{{1}}}}}<nowiki/>", "{{other|{{{1}}}}}"),
        ("#REDIRECT [[Template:Big Name]]", "#big Name"),
        ("#redirect [[Taiss:big_name]]", "#big name"),
        ("#redirect [[Page]]", None),
        ("{{#if:{{{1|}}}|a}}", None),
        ("{{#invoke:a|b}}", None),
        ("{{lc:{{{1}}}}}", None),
        ("{{{{{1}}}}}", None),
        ("{| a |}", ""),
        ("two\nlines", None),
        ("* item", None),
        ("<div>a</div>", ""),
        ("a<ref>b</ref>", None),
        ("<ref name=x>{{{1}}}</ref>", ""),
        ("<includeonly>{{#tag:ref|{{{1}}}}}</includeonly>", ""),
        ("<sup>{{{1}}}</sup>", None),
        ("<sup>[''[[a|which?]]'']</sup>", ""),
        ("see [[Vikipedeja:rules|rules]]", None),
        ("[[Kategoreja:a]]", None),
        ("[[Fails:a.png]]", None),
        ("[[a|b", None),
        ("<noinclude>a</noinclude>", None),
        ("x" * (LONGEST + 1), None),
    ],
)
def test_plain_definitions(wikitext: str, body: str | None) -> None:
    assert plain_definition("Taiss:My_Name", wikitext, SITE) == (None if body is None else ("my Name", body))


BODIES: Mapping[str, str] = {
    "km": "{{{1}}} km[[Kategoreja:x]]",
    "both": "{{km|{{{1}}}}} and {{km|{{{b|two}}}}}",
    "nested default": "{{{2|{{{1}}}}}}",
    "kms": "#km",
    "small words": "#small",
    "half": "a {{nothing known}} b",
    "loop": "x {{loop}}",
    "twice": "{{{1}}}{{{1}}}",
    "title": "''{{PAGENAME}}''",
    **dict(
        found
        for title, wikitext in {
            "séc": "[[Século {{{link|{{{1}}}}}}|século {{{1|}}}]]<noinclude>{{doc}}\n[[Kategoreja:x]]</noinclude>",
            "tutto attaccato": '<span class="nowrap">{{{testo|{{{1|}}}}}}</span><noinclude>\n{{man}}</noinclude>',
            "TA": "#REDIRECT [[Taiss:tutto attaccato]]",
            "k-de": "<includeonly>[[Saksan kieli|saks.]] {{kieli|de|{{{1}}}}}</includeonly><noinclude>x</noinclude>",
            "kieli": "Documentation <onlyinclude>''<span lang=\"{{{1}}}\">{{{2|}}}</span>''</onlyinclude> more",
            "deutsch": "{{kieli|de|{{{1}}}}}",
            "XIIvet": '<span title="12">XIIvet</span>',
            "footnote": "<ref>{{{1}}}</ref>",
            "İl": "{{{1}}} ili",
            "UK": "[[United Kingdom]]",
            "Uk": "Ukrainian",
            "UKR": "#REDIRECT [[Taiss:uk]]",
        }.items()
        if (found := plain_definition(f"Taiss:{title}", wikitext, SITE))
    ),
}


def text(wikitext: str, bodies: Mapping[str, str] = BODIES) -> str:
    found = paragraphs(wikitext, SITE, WikitextConfig(), "Daugava", Definitions(bodies))
    return " | ".join(paragraph.text for paragraph in found)


@each_row(
    ("wikitext", "expected"),
    [
        ("It is {{km|5}} long.", "It is 5 km long."),
        ("It is {{Kms|5}} long.", "It is 5 km long."),
        ("It is {{small words|5 km}} long.", "It is 5 km long."),
        ("{{both|1}}, {{both|[[one]]|b={{km|3}}}}.", "1 km and two km, one km and 3 km km."),
        ("a {{nested default|b}} {{nested default|b|c}}", "a b c"),
        ("The {{title}} flows.", "The Daugava flows."),
        ("a {{half}} b", "a b"),
        ("a {{loop}} b", "a b"),
        ("a {{unknown}} b", "a b"),
        ("{{km|5}}\n\na\n{{km|6}}", "a"),
        ("{{km|5}} is far.", "5 km is far."),
        ("{{nowrap|{{km|5}}}}.", "5 km."),
        ("It is {{footnote|here}} long.", "It is long."),
        ("It is {{half|here}} long.", "It is here long."),
        # as wikis write them: default and named arguments, links, markup, templates in templates, redirects
        ("In the {{séc|XX}} it grew.", "In the século XX it grew."),
        ("In the {{séc|XX|link=XX d.C.}} it grew.", "In the século XX it grew."),
        ("It covers {{TA|892 km²}}.", "It covers 892 km²."),
        ("It covers {{Tutto attaccato|testo=892 km²}}.", "It covers 892 km²."),
        ("A district ({{k-de|Bezirk}}).", "A district (saks. Bezirk)."),
        ("Called {{deutsch|Spree}}.", "Called Spree."),
        ("In {{XIIvet}} kantved.", "In XIIvet kantved."),
        ("a {{uk}} {{Uk}} {{UKR}} {{UK}} {{ukr}} b", "a Ukrainian Ukrainian Ukrainian United Kingdom b"),
        ("In {{il|Bursa}} and {{İl|Ankara}}.", "In Bursa ili and Ankara ili."),
    ],
)
def test_calls_are_written_out(wikitext: str, expected: str) -> None:
    assert text(wikitext) == expected


def test_without_definitions_the_form_of_the_call_decides() -> None:
    wikitext = "It is {{both|Five Six|b=6}} or {{title}} long. It is {{both|5|b=6}} long."
    assert [p.text for p in paragraphs(wikitext, SITE)] == ["It is or long."]


def test_expansion_is_bounded() -> None:
    doubling = {f"d{i}": f"{{{{d{i + 1}}}}}{{{{d{i + 1}}}}}" for i in range(7)} | {"d7": "word " * 50}
    assert len(text("a {{d0}} b" * 100, doubling)) < 2**16
    assert len(text("a " + "{{twice|" * 60 + "word" + "}}" * 60 + " b")) < 2**17
    many = {"m": "{{{1}}}" * 250}
    assert len(text("a {{m|" + "word " * 20_000 + "}} b", many)) < 10
    assert text("a {{m|word }} b", many).startswith("a wordword")


def test_the_wiki_s_own_definition_is_truer_than_a_line_for_all_wikis() -> None:
    def text(page: str, bodies: Mapping[str, str]) -> list[str]:
        return [p.text for p in paragraphs(page, SITE, definitions=Definitions(bodies))]

    page = "A wolf ({{lang-ru|волк}}) has 2{{e|6}} hairs."
    assert text(page, {}) == ["A wolf (волк) has 2×10^6 hairs."]
    assert text(page, {"lang-ru": "{{name|krīvu}}: ''{{{1}}}''", "name": "{{{1}}}", "e": "rd"}) == [
        "A wolf (krīvu: волк) has 2rd hairs."
    ]
    assert text("A cat{{sfn|1999}} is here.", {"sfn": " (see {{{1}}})"}) == ["A cat is here."], "a footnote's mark"
    quoted = "He said: {{quote|Nothing is as it was before.}}"
    assert text(quoted, {"quote": ""}) == ["He said:", "Nothing is as it was before."], "the definition is a box"
