"""Calls of templates that nothing explains: kept where they read as words of a sentence, silent where they do not."""

import re

import pytest
from tests.clock import calls
from tests.rows import each_row

from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.wikitext.unknown_calls import is_language

SITE = Site("ltg", {6: ("Fails",), 10: ("Taiss",)})


def text(wikitext: str) -> str:
    return " | ".join(paragraph.text for paragraph in paragraphs(wikitext, SITE))


@each_row(
    ("wikitext", "expected"),
    [
        ("The city covers {{TA|892 km²}} of land.", "The city covers 892 km² of land."),
        ("It is 45{{esd}}km and 3{{tühikud|2}}m long.", "It is 45 km and 3 m long."),
        ("Founded in the {{séc|XIII}}, it grew.", "Founded in the XIII, it grew."),
        ("The river {{ألمانية|Spree}} flows.", "The river Spree flows."),
        ("A '''city''' ({{јез-нем|[[Berlin]]}}) lies here.", "A city (Berlin) lies here."),
        ("It {{Senza fonte|has few people}} today.", "It has few people today."),
        ("This {{chiarire|last period|which?}} was long.", "This last period was long."),
        ("{{Small|It grew in the {{séc|XX}} too}}.", "It grew in the XX too."),
        # texts with the code of their language, wherever they stand
        ("A district ({{k-de|Bezirk}}) has a mayor.", "A district (Bezirk) has a mayor."),
        ("言葉を意味する{{el|και}}を表す。", "言葉を意味するκαιを表す。"),
        ("It is called {{v jazyku|deu|Berlin}} there.", "It is called Berlin there."),
        ("{{llang|de|Berlin}} is the capital of it.", "Berlin is the capital of it."),
        ("From {{etyl|enm|en}} {{term|sunne|lang=ang||sun}}.", "From sunne."),
        ("* a list of words that ends with one ({{fr|mot}})", "a list of words that ends with one (mot)"),
        # the text of a link that only another wiki has an article for, with and without words of its own
        ("その後、{{ill2|憲法改正|en|Constitutional amendment}}により選ばれた。", "その後、憲法改正により選ばれた。"),
        ("He met {{linkas|Jonas|lt|Jonas (1)|de|Jonas}} there.", "He met Jonas there."),
        ("He met {{linkas|Jonas (king)|lt|Jonas (1)|label=Jonas}} there.", "He met Jonas there."),
        # no space before a word: within full-width marks, after a particle, in the middle of a name, after an elision
        ("フランス語（{{発音|テレヴィジオン}}）に由来する。", "フランス語（テレヴィジオン）に由来する。"),
        ("「老撾」（{{簡体|老挝}}、Lǎowō）と書く。", "「老撾」（老挝、Lǎowō）と書く。"),
        ("しかし、{{疑問点範囲|最近の研究では違う}}。", "しかし、最近の研究では違う。"),
        ("レノンは{{ilq|何ヶ月も前}}と記憶していた。", "レノンは何ヶ月も前と記憶していた。"),
        ("福原元{{CP932フォント|僴}}は武将である。", "福原元僴は武将である。"),
        ("Nell'{{chiarire|ultimo periodo}} ci sono corse.", "Nell'ultimo periodo ci sono corse."),
        ("ב{{קישור שפה|אצטדיון}} נערכה האליפות.", "באצטדיון נערכה האליפות."),
        # doubted since a month
        ("また、{{いつ範囲|ここ数年|date=2020年5月}}は多い。", "また、ここ数年は多い。"),
        ("It {{by whom here|was said|date=May 2012}} often.", "It was said often."),
        # numbers
        ("A tower of {{conversie|150|m|ft|abbr=on}} height.", "A tower of 150 m height."),
        ("It has {{conversie|22|–|25|C|F}} in summer.", "It has 22 – 25 C in summer."),
        ("It works at {{M|1,5|M|Hz}} at most.", "It works at 1,5 MHz at most."),
        ("It lies {{km|70|m}} from here.", "It lies 70 km from here."),
        ("Město má rozlohu {{Km2|892}} a leží tam.", "Město má rozlohu 892 km2 a leží tam."),
        ("It cost {{currency|2.1&nbsp;trillion|KRW}} in all.", "It cost 2.1 trillion KRW in all."),
        ("It is {{M|12||km}} from here.", "It is 12 km from here."),
        ("It covers {{unité|892|km|2}} of land.", "It covers 892 km² of land."),
        ("He is {{unit|6|ft|4|in|m}} tall.", "He is 6 ft 4 in tall."),
        ("There are {{nombre|173|stations}} today.", "There are 173 stations today."),
        # centuries, eras, dates
        ("In the {{siglo|XVII||s}} it grew.", "In the XVII it grew."),
        ("In the {{Versaleta|xix}} it grew.", "In the xix it grew."),
        ("Au début du {{XXe siècle}} il naît.", "Au début du XXe siècle il naît."),
        ("del año 300 {{a. C.}} y", "del año 300 a. C. y"),
        ("roku 300{{př. n. l.}} a pak", "roku 300 př. n. l. a pak"),
        ("En {{AC|300}} fue así.", "En 300 AC fue así."),
        ("Born on {{V|26|6|2012}} in Rome.", "Born on 26.6.2012 in Rome."),
        ("La {{daton|18|januaro|1791}} li venis.", "La 18 januaro 1791 li venis."),
        # a name that is an abbreviation
        ("See {{p.|12}} of it and {{n°|5}} too.", "See p. 12 of it and n° 5 too."),
        ("Animals, {{p. ex.}} dogs, eat.", "Animals, p. ex. dogs, eat."),
        ("From 2009{{strich}}2014 it grew.", "From 2009 2014 it grew."),
        # a list item that is prose
        (
            "* The second son of the king went to {{ort|Berlin}} and died there.",
            "The second son of the king went to Berlin and died there.",
        ),
    ],
)
def test_words_of_a_sentence_are_kept(wikitext: str, expected: str) -> None:
    assert text(wikitext) == expected


@each_row(
    "wikitext",
    [
        pytest.param("a b c{{הערה|a remark}} d", id="directly after a word"),
        pytest.param("a b c. {{actualizar|soon}} d", id="after a sentence"),
        pytest.param("a “b”{{note here|a remark}} c", id="after a closing quotation mark"),
        pytest.param("a {{sfn|The Hindu}} b", id="a footnote by name"),
        pytest.param("a {{Refhely|Kovács|2008}} b", id="a name and a year"),
        pytest.param("a {{Refhely|Kovács|p=3}} b", id="a name and a page"),
        pytest.param("a {{צ|A sentence. And more.}} b", id="a remark in sentences"),
        pytest.param("a {{x|" + "Long Name, " * 20 + "}} b", id="a long list of names"),
        pytest.param("a b{{x|" + "long " * 30 + "}} c", id="a long remark"),
        pytest.param("a {{x|it is not said who said so. It should be said.}}. b", id="a remark before the stop"),
        pytest.param("a {{listen here|De-Berlin.ogg}} b", id="a file"),
        pytest.param("a {{site|www.example.org}} b", id="an address"),
        pytest.param("a {{Прапорець|USA}} b", id="a country's code"),
        pytest.param("a {{flagicon|Turkey}} b", id="a flag"),
        pytest.param("a {{Lippukuva|Turkey}} b", id="a flag by another wiki's name"),
        pytest.param("a {{source language|de}} b", id="a language's code"),
        pytest.param("a {{de}} b", id="no argument"),
        pytest.param("a {{Koord|52|31|0|N|13|24|0|E}} b", id="coordinates"),
        pytest.param("a {{box|a=1|b=2|c=3|d=4|text}} b", id="a box"),
        pytest.param("a {{x|two\nlines}} b", id="lines"),
        pytest.param("a {{#tag:x|y}} b", id="a parser function"),
        pytest.param("{{TA|892 km²}}\n\na b", id="alone on its line"),
        pytest.param("* {{vlagikoon|Frankryk}} a b", id="in a list"),
        pytest.param("a {{Population/Ohio|Columbus}} b", id="a key to a table of data"),
        pytest.param("a {{flagbox|1|en|2}} b", id="no text before a language"),
        pytest.param("a {{also|Title#Section}} b", id="a section to read"),
        pytest.param("a {{also|:en:Title}} b", id="a title of another wiki"),
        pytest.param("a {{colour|#e05b8e}} b", id="a colour"),
        pytest.param("a 'b'{{note here|a remark}} c", id="after a closing single quotation mark"),
        pytest.param("a {{Refhely|Kovács|date=3 May 2012}} b", id="a name and a day"),
        pytest.param("* Czech: {{t+|cs|svobodný}}\n\na b", id="a list of translations"),
    ],
)
def test_calls_outside_sentences_print_nothing(wikitext: str) -> None:
    found = text(wikitext)
    assert found.split() and set(found.replace("Czech:", "")) <= set("abcd.“”' |"), found


@each_row(
    "wikitext",
    [
        pytest.param("国勢調査{{注|総務省}}で", id="directly after a noun"),
        pytest.param("多いとされる{{誰か|研究者}}。", id="before the stop"),
        pytest.param("多い。{{参照|日本語}}しかし", id="after a sentence"),
        pytest.param("多いが、{{注|一説による。}}違う", id="a remark that ends as a sentence"),
        pytest.param("人口は{{自治体人口/兵庫県|神戸市}}人で", id="a key to a table of data"),
    ],
)
def test_notes_in_a_script_without_spaces_are_silent(wikitext: str) -> None:
    assert text(wikitext) == re.sub(r"\{\{.*?\}\}", "", wikitext)


LONG = "this is a clause that somebody doubts because nobody has ever given a source for it, as one should"
SENTENCES = f"Nobody knows why {LONG}. It is still here, and many people have read it since it was written."


@each_row(
    ("wikitext", "expected"),
    [
        (f"It grew. {{{{refnec|{SENTENCES}|date=2011-05}}}} It fell.", f"It grew. {SENTENCES} It fell."),
        (f"It is said that {{{{cita requerida|{LONG} {LONG}}}}}.", f"It is said that {LONG} {LONG}."),
        (f"{{{{refnec|{SENTENCES}}}}} It fell.", f"{SENTENCES} It fell."),
        (f"* {{{{refnec|{SENTENCES}}}}}", SENTENCES),
        (f"a\n\n{{{{spoiler|\n{SENTENCES}\n\n* {LONG}.\n}}}}\n\nb", f"a | {SENTENCES} | {LONG}. | b"),
        (f"{{{{hatnote|{SENTENCES}}}}}\n\na", "a"),
        (f"a\n\n{{{{neutrality|{SENTENCES}|the city|May 2011}}}}\n\nb", "a | b"),
        (f"a{{{{note|{SENTENCES}}}}} b", "a b"),
        (f"a {{{{box|title=a|text={SENTENCES}}}}} b", "a b"),
        (f"It grew. {{{{refnec|{SENTENCES}{{{{note|the source}}}}}}}} It fell.", f"It grew. {SENTENCES} It fell."),
    ],
)
def test_prose_in_a_call_is_kept_and_notes_are_not(wikitext: str, expected: str) -> None:
    assert text(wikitext) == expected


@each_row(
    ("wikitext", "expected"),
    [
        ("He came at {{heure|12|30}} in May. He left.", "He left."),
        ("It is {{#expr: 5 + 3}} years old. It grew.", "It grew."),
        ("It cost ${{realwert|UK|100|1914}} in all. It grew.", "It grew."),
        ("The city has {{table|Berlin|fs}} km² in all. It grew.", "It grew."),
        ("The city grew (by {{table|Berlin}}&nbsp;%) until now.", "The city grew until now."),
        ("It cost ${{inflation adjusted|100|y=1914}} in all. It grew.", "It grew."),
        ("It cost $100 (${{realwert|US|100|1914}} today) in all.", "It cost $100 in all."),
        ("Aged {{age in days|1990|5|12}} he left. He fell.", "He fell."),
        ("It has {{formatnum:{{#expr: {{People|Rome}}/2}}}} people. It grew.", "It grew."),
        ("* It is the {{ordinal|3}} city\n\nb", "It is the city | b"),
        ("== In {{x|5}} ==\nb", "b"),
        ("It grew.{{r|12}} It fell ({{x|5}}).", "It grew. It fell."),
    ],
)
def test_a_sentence_is_dropped_if_a_number_in_it_is_lost(wikitext: str, expected: str) -> None:
    assert text(wikitext) == expected


def test_the_marks_leave_no_trace_and_take_linear_time() -> None:
    """Linear in calls; and quadratic time in one call would take hours here."""

    def hostile(times: int) -> str:
        return "a \U0010fff0b\U0010fff1\U0010fff2 {{x|" * times + "c" + "}}" * times + " {{TA|5 km}} " * 4 * times

    assert not set(text(hostile(20_000))) & set("\U0010fff1\U0010fff2")
    few, many = (calls(lambda n=n: text(hostile(n))) for n in (500, 5000))  # type: ignore[misc]
    assert many < 11 * few


@each_row(
    ("code", "known"),
    [("de", True), ("zh-Hant", True), ("gem-pro", True), ("deu", True), ("k", False), ("", False), ("vlag", False)],
)
def test_codes_of_languages(code: str, known: bool) -> None:
    assert is_language(code) is known
