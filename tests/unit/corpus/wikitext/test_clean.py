"""What the wikitext cleaner keeps, drops and repairs, construct by construct."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.corpus.config import WikitextConfig
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.wikitext.clean import is_disambiguation, paragraphs, without_quotes
from bertwright.corpus.wikitext.links import redirect_target
from bertwright.corpus.wikitext.site import Site

GOLDEN = Path(__file__).parents[3] / "golden" / "wikitext"
HUNGARIAN = Site("hu", {0: ("",), 6: ("Fájl",), 10: ("Sablon",), 14: ("Kategória",)})  # as its dump says
ENGLISH = Site("en", {0: ("",), 6: ("File",), 14: ("Category",)})
CHINESE = Site("zh", {0: ("",), 6: ("File",), 14: ("Category",)})
SITES = {"hu": HUNGARIAN, "en": ENGLISH}


def texts(wikitext: str, site: Site = ENGLISH) -> list[str]:
    return [paragraph.text for paragraph in paragraphs(wikitext, site)]


@each_row("language", ["hu", "en"])
def test_whole_page_is_cleaned_as_written_down(language: str) -> None:
    page = (GOLDEN / f"{language}.wiki").read_text("utf-8")
    lines = []
    for paragraph in paragraphs(page, SITES[language]):
        lines += [f"= {paragraph.heading}"] * (paragraph.heading is not None)
        lines.append(paragraph.text)
    assert lines == (GOLDEN / f"{language}.txt").read_text("utf-8").splitlines()


@each_row(
    ("wikitext", "text"),
    [
        pytest.param("A [[cat]] sat.", "A cat sat.", id="link"),
        pytest.param("Two [[cat]]s, [[cat (animal)|a cat]].", "Two cats, a cat.", id="label"),
        pytest.param("[[#History|Below]] it", "Below it", id="section link"),
        pytest.param("On [[Mars: a story]].", "On Mars: a story.", id="colon in a title"),
        pytest.param("See [[:Category:Cats]] or [[:Category:Cats|cats]].", "See or cats.", id="category link"),
        pytest.param("Cats.[[category: Cats|x]]", "Cats.", id="category in small letters"),
        pytest.param("Cats.[[be-tarask:Кот]][[nl:Kat]][[FR:Chat]]", "Cats.", id="interlanguage"),
        pytest.param("Cats.[[cz:Kočka]][[zh-min-nan:Niau]][[simple:Cat]]", "Cats.", id="other languages"),
        pytest.param("The [[re:publica]], a [[re:publica|Fair]].", "The re:publica, a Fair.", id="no language"),
        pytest.param("A [[wikt:cat|word]] in [[s:Book]].", "A word in s:Book.", id="other project"),
        pytest.param("Before [[Image:a.jpg|thumb|x [[y]] z]]after", "Before after", id="image"),
        pytest.param("{{nowrap|a [[File:b.png|thumb|[[c|d]]]]e}}", "a e", id="image in a template"),
        pytest.param("Before [[Kép:a.JPG|thumb]]after", "Before after", id="old name of File"),
        pytest.param("10<sup>6</sup>, ''x''<sup>&minus;12</sup>, km<sup>2</sup>", "10⁶, x⁻¹², km²", id="power"),
        pytest.param("Fe<SUP class=a>3+</SUP>, 10<sub>2</sub>, H<sub>2</sub>O", "Fe³⁺, 10₂, H2O", id="charge and base"),
        pytest.param("1<sup>er</sup>, 21<sup>st</sup>, <sup>235</sup>U", "1er, 21st, 235U", id="ordinal and isotope"),
        pytest.param("10{{sup|6}} and 1{{sup|er}}", "10⁶ and 1er", id="power by a template"),
        pytest.param("'''''Both''''' '''bold''' ''italic''", "Both bold italic", id="quotes"),
        pytest.param("L'''amour'' fou", "L'amour fou", id="elision before italics"),
        pytest.param("'''a''' or '''b''', from ''c'' here", "a or b, from c here", id="paired bold"),
        pytest.param("In ''[[Faust]]'''s end,\n''a''<nowiki/>'s b", "In Faust's end, a's b", id="possessive"),
        pytest.param("[http://a.b''The'' (1) b] [//[::1]:8/a b]", "The (1) b b", id="end of an address"),
        pytest.param("[http://a.b The label [archive]]", "The label [archive]", id="brackets in an external label"),
        pytest.param("So [see [http://a.b The label]] it", "So [see The label] it", id="external link in brackets"),
        pytest.param("[http://a.b c [http://d.e f]", "[http://a.b c f", id="external link without end"),
        pytest.param("[[http://a.b/c.jpg d e]] [[//a.b|f]] [[http://a]]", "d e f", id="external link, two brackets"),
        pytest.param("The list [1, [2, 3]] and b]] [c]] d", "The list [1, [2, 3]] and b [c] d", id="two brackets"),
        pytest.param("[[Caf%C3%A9]] [[100%]] [[%FF]] [[a%0A]] [[%41|%41]]", "Café 100% %FF a%0A %41", id="percent"),
        pytest.param("[http://a.b/c?d=e The label] and [//a.b x] [https://a.b]", "The label and x", id="external"),
        pytest.param("A [[File:b.jpg|thumb|c [12]]] d [[e|f [g]]] h.", "A d f [g] h.", id="bracket ends a caption"),
        pytest.param("[[File:b.jpg|c [http://a.b d]]]It.", "It.", id="external link ends a caption"),
        pytest.param("a [[\u200eCategory:B]][[Category\u200f:C]][[\u200fFile:d]] e", "a e", id="marks of direction"),
        pytest.param("a [[分類:B]] [[Kategorija:C|d]] [[カテゴリ:E]]", "a", id="other names of Category"),
        pytest.param("He saw [[en:Bar|the bar]], [[en:Foo]].", "He saw the bar, en:Foo.", id="the wiki's own prefix"),
        pytest.param("[sftp://a b] [tel:+1 c] [geo:1,2 d] [http://] [//]", "b c d [http://] [//]", id="protocols"),
        pytest.param("مدينة (بالألمانية: {{x}}، {{y}}؛) هنا", "مدينة (بالألمانية) هنا", id="Arabic gaps"),
        pytest.param("It is\n<!-- a -->\non.<!-- b -->\n<!--c--> <!--d-->\nSo.", "It is on. So.", id="comment alone"),
        pytest.param("a<DynamicPageList>\ncount=5\n</DynamicPageList> b", "a b", id="list of pages"),
        pytest.param("A list [1] and [sic]", "A list [1] and [sic]", id="plain brackets"),
        pytest.param("a<!-- b\n\n -->c", "ac", id="comment"),
        pytest.param("a<!-- b", "a", id="comment to the end of the page"),
        pytest.param('a<ref name="x">b {{c}}</ref>d<ref name=x/>e<REF>f</REF >', "ade", id="references"),
        pytest.param("a <ref>b", "a b", id="reference without end"),
        pytest.param("a <math>x|y}}</math> b", "a b", id="maths"),
        pytest.param('So <source lang=c inline>f("{{x}}")</source> is.', 'So f("{{x}}") is.', id="code in a sentence"),
        pytest.param("a <syntaxhighlight enclose='none' >\nb;</syntaxhighlight> c", "a b; c", id="code, older form"),
        pytest.param("a <syntaxhighlight lang=inline>b</syntaxhighlight> c", "a c", id="a block of code"),
        pytest.param("H<sub>2</sub>O <small>(wet)</small>", "H2O (wet)", id="inline tags"),
        pytest.param("0<x and y>1 in sum, so x<y and y>z", "0<x and y>1 in sum, so x<y and y>z", id="signs"),
        pytest.param("A List<String>, <stdio.h>, <j@x.org>", "A List<String>, <stdio.h>, <j@x.org>", id="no tags"),
        pytest.param("a <SPAN\nclass=x>b</SPAN > <section begin=x/>c</ref>", "a b c", id="tags of extensions"),
        pytest.param("x &lt; y &amp;&#32;z&nbsp;&#x41; &unknown;", "x < y & z A &unknown;", id="character references"),
        pytest.param("&lt;ref&gt; &#91;&#91;a&#93;&#93;", "<ref> [[a]]", id="escaped markup is text"),
        pytest.param("<nowiki>[[a|b]] {{c}} = '|' &amp;</nowiki>", "[[a|b]] {{c}} = '|' &", id="nowiki"),
        pytest.param("<nowiki>''a''</nowiki> <nowiki>'''</nowiki>b", "a b", id="escaped quote marks"),
        pytest.param("a<nowiki> b </nowiki>c<nowiki> </nowiki>d", "a b c d", id="spaces in nowiki part words"),
        pytest.param('<nowiki><i id="mwAQ">a</i></nowiki> <nowiki><p></nowiki>', "a <p>", id="escaped by the editor"),
        pytest.param("a <nowiki>( )</nowiki> b", "a ( ) b", id="nowiki is not tidied"),
        pytest.param("* <nowiki>*</nowiki> starred", "* starred", id="nowiki in a list"),
        pytest.param("soft\u00adhyphen \u200eleft\u202a \ufeffmark", "softhyphen left mark", id="invisible"),
        pytest.param("a\u00a0b\u2009c\u3000d\te", "a b c d e", id="spaces"),
        pytest.param("cafe\u0301", "café", id="NFC"),
        pytest.param("ক\u200dখ", "ক\u200dখ", id="joiner is spelling"),
        pytest.param("ᠣᠯᠠ\u180eᠠ", "ᠣᠯᠠ\u180eᠠ", id="vowel separator is spelling"),
        pytest.param("ទៅ\u200bផ្សារ \u200b២០\u200bនាក់", "ទៅ\u200bផ្សារ ២០\u200bនាក់", id="a Khmer space between words"),
        pytest.param("zero\u200bwidth/\u200bspace។\u200b", "zerowidth/space។", id="a space of no width elsewhere"),
        pytest.param("__NOTOC__ a __ НЕ __ __БЕЗ_ЗМІСТУ__ __init__", "a __ НЕ __ __init__", id="behaviour words"),
        pytest.param("A ({{x}}) b ( , {{y}}; c) d (e, {{z}}).", "A b (c) d (e).", id="brackets"),
        pytest.param("A {{x}} , {{y}}, b {{z}} . C {{w}}: .", "A, b. C.", id="stops"),
        pytest.param("Wait ... .5 of .NET", "Wait ... .5 of .NET", id="points that are not stops"),
        pytest.param("The main() returns int[] and f().", "The main() returns int[] and f().", id="brackets of code"),
        pytest.param("A (({{x}})) b [] 語({{x}}) []({{x}}) [(,)]d.", "A b 語 d.", id="empty brackets"),
        pytest.param("Of –.25 or {{x}} —... then, a — . B: .5", "Of –.25 or —... then, a. B: .5", id="dash and point"),
        pytest.param("a {{{parameter|default}}} b", "a b", id="parameter"),
        pytest.param("a [[b.png|thumb|9px|c]]d [[e|f|g]]", "a d f|g", id="file without its namespace"),
        pytest.param("See [[:File:a.png|File:a.png]]. [[:File:a.png|The map]].", "See. The map.", id="link to a file"),
        pytest.param("An etc. {{x}}. And ... . B", "An etc. And ... B", id="two stops"),
        pytest.param("It ended.<ref>a</ref>. Then (so).. And", "It ended. Then (so). And", id="a stop on each side"),
        pytest.param("It ended.<ref>a</ref>.", "It ended.", id="a stop on each side, at the end"),
        pytest.param("पाणी आहे.<ref>a</ref>.", "पाणी आहे.", id="a stop on each side, after a vowel sign"),
        pytest.param("Well.. and where?.. There", "Well.. and where?.. There", id="a pause of two points"),
        pytest.param("ის კი.<ref>ა</ref>. და წავიდა", "ის კი. და წავიდა", id="a stop on each side, Georgian"),
        pytest.param("出兵（[[:de:War]]）した。<ref>a</ref>。次", "出兵した。次", id="full-width gaps"),
        pytest.param("人（{{x}}、{{y}}）。語（{{x}}、乙、{{y}}）。", "人。語（乙）。", id="full-width brackets"),
        pytest.param("甲、{{x}}、乙、{{y}}。待て。。。", "甲、乙。待て。。。", id="full-width commas"),
        pytest.param("a {{x|{{y|[[z|w]]}}}}. b", "a w. b", id="nested templates"),
        pytest.param("a [[b{{!}}c]] {{nowrap|d {{!}} e {{=}} f}} g", "a c d | e = f g", id="bar and equals sign"),
    ],
)  # fmt: skip
def test_construct_in_a_sentence(wikitext: str, text: str) -> None:
    assert texts(wikitext) == [text]


@each_row(
    ("wikitext", "text"),
    [
        pytest.param("A -{zh-hans:first; zh-hant:second}- b -{c}-", "A first b c", id="variants"),
        pytest.param("A [[b|-{zh-hans:c|d;zh-hant:e}-]] [[f-{g]]", "A c|d f-{g", id="variants in links"),
        pytest.param("-{zh-hans:a-{zh-hans:b;zh-hant:c}-;zh-hant:d}-e-{H|f}-", "abe", id="variants in variants"),
        pytest.param("-{zh-hans:[[a|b]] {{nowrap|c}};zh-hant:d}-", "b c", id="markup in variants"),
        pytest.param("the set -{a, b}x}- {y}- and -{{nowrap|z}}-", "the set a, b}x {y}- and -z-", id="braces"),
    ],
)
def test_variants_on_a_wiki_that_has_them(wikitext: str, text: str) -> None:
    assert texts(wikitext, CHINESE) == [text]


@each_row(
    ("language", "kept"),
    [("en", True), ("zh-yue", True), ("be-tarask", True), ("zh", False), ("sr-el", False), ("kk-cyrl", False)],
)
def test_variants_are_markup_only_where_the_wiki_has_a_converter(language: str, kept: bool) -> None:
    name = "4-{[4-(methyl)amino]phenyl}-benzoate"
    assert (texts(name, Site(language, {})) == [name]) == kept


@each_row(
    ("wikitext", "lines"),
    [
        pytest.param("a\nb\n\nc", ["a b", "c"], id="a blank line parts paragraphs"),
        pytest.param("a\r\n\r\nb", ["a", "b"], id="carriage returns"),
        pytest.param("a<br>b<p>c</p>d", ["a", "b", "c", "d"], id="breaking tags"),
        pytest.param("a\n----\n-----b\nc", ["a", "b c"], id="horizontal rules"),
        pytest.param("=a==\nb\n==c=\nd\n=======e=======\nf\n===", ["b", "d", "f ==="], id="uneven headings"),
        pytest.param("a\n<onlyinclude>{|\n|b\n* c\n|}</onlyinclude>\nd", ["a", "d"], id="table in a marked part"),
        pytest.param("<noinclude>a</noinclude>\n<includeonly>b</includeonly>", ["a"], id="parts for other pages"),
        pytest.param("<h3>Early</h3>Text.", ["Early", "Text."], id="headings of HTML"),
        pytest.param("* a\n** b\n#c\n:; d", ["a", "b", "c", "d"], id="lists"),
        pytest.param("*\n* —\n* !", [], id="items without a word"),
        pytest.param("a\n{|\n|b\n{|\n|c\n|}\n|d\n|}\ne", ["a", "e"], id="nested tables"),
        pytest.param("a\n:{|\n|b\n  |}\ne", ["a", "e"], id="indented table"),
        pytest.param("a <TABLE x=y><tr><td>b</table> c", ["a", "c"], id="HTML table"),
        pytest.param("a\n{|\n! h1 !! h2\n|-\n| b\n\nc", ["a", "c"], id="table without end"),
        pytest.param("!!! (says chk) | a band", ["!!! (says chk) | a band"], id="exclamation marks open a line"),
        pytest.param("a\n|}\nb", ["a", "b"], id="end of no table"),
        pytest.param("a\n{|style=x\n|b\n* c", ["a", "c"], id="attributes of a table without end"),
        pytest.param("a [[b\n\nc|d]] e", ["a b", "c|d e"], id="link that ends in another paragraph"),
        pytest.param("he said: {{quote|a b}} and", ["he said:", "a b", "and"], id="a quotation stands alone"),
        pytest.param("a\n{{x|\n{|\n|}}\nb", ["a", "b"], id="table open in a template"),
        pytest.param("{{Infobox\n| a = b\n| c = [[d]]\n\nText.", ["Text."], id="template without end"),
        pytest.param("a {{x|b [[c]]\nd", ["a d"], id="template without end in a line"),
        pytest.param("a [[File:b.jpg|thumb|c\nd", ["a d"], id="file without end"),
        pytest.param("a [[b|c d\ne", ["a c d e"], id="link without end"),
        pytest.param("a }} b ]] c", ["a b c"], id="ends without beginnings"),
        pytest.param("----\na", ["a"], id="rule"),
        pytest.param("-a\n!b", ["-a !b"], id="marks that are text"),
        pytest.param("<gallery>\nFile:a.jpg|b\n</gallery>c", ["c"], id="gallery"),
        pytest.param("<pre>a</pre><source>b</source><score>c</score>d", ["d"], id="code and scores"),
        pytest.param("", [], id="empty page"),
    ],
)
def test_lines_of_a_page(wikitext: str, lines: list[str]) -> None:
    assert texts(wikitext) == lines


def test_headings_go_to_the_paragraph_that_opens_their_section() -> None:
    page = "a\n== B ==\n=== ''C'' [[d|D]]<ref>x</ref> ===\ne\n\nf\n==G==h\n== <p>J<br>K<b>L</b><M> ==\nn\n== I =="
    assert paragraphs(page, ENGLISH) == [
        Paragraph("a", None),
        Paragraph("e", "C D"),
        Paragraph("f", None),
        Paragraph("h", "G"),
        Paragraph("n", "J KL<M>"),
    ]


@each_row(
    ("wikitext", "tex"),
    [
        ("of <math>\n  \\frac{a}{b}\\, ,\\;)\n</math> , it", "of \\frac{a}{b}\\, ,\\;), it"),
        ("is <chem>H2O</chem> or <ce>CO3^2-</ce>.", "is H2O or CO3^2-."),
        ("<math>f''(x) &lt; [[1]]|{{2}} = -{3}-</math> q", "f''(x) < [[1]]|{{2}} = -{3}- q"),
        ("{{quote|so <math>a=b|c</math>}}", "so a=b|c"),
    ],
)
def test_maths_as_its_tex_is_safe_from_every_step(wikitext: str, tex: str) -> None:
    assert [p.text for p in paragraphs(wikitext, ENGLISH, WikitextConfig(maths="tex"))] == [tex]
    assert tex not in texts(wikitext)


def test_magic_words_become_the_title() -> None:
    page = "{{PAGENAME}} has {{plural:2|page|pages}}, {{formatnum:1200}}. It is {{CURRENTYEAR}} now."
    assert [p.text for p in paragraphs(page, ENGLISH, title="Cats")] == ["Cats has pages, 1,200."]


def test_namespaces_come_from_the_site() -> None:
    page = "a [[Fájl:kép|x]][[Kategória:y]]b"
    assert texts(page, HUNGARIAN) == ["a b"]
    assert texts(page, ENGLISH) == ["a xb"], "a category is one in any language"


@each_row(
    ("wikitext", "target"),
    [
        ("#REDIRECT [[Cat]]", "Cat"),
        ("\n#redirect:[[Cat#Tail|x]]", "Cat"),
        ("#ÁTIRÁNYÍTÁS [[:hu:Macska]]", "Macska"),
        ("#ПЕРЕНАПРАВЛЕННЯ[[Кіт]]\n{{R}}", "Кіт"),
        ("#WEITERLEITUNG [[Katze]]", "Katze"),
        ("#đổi [[Mèo]]", "Mèo"),
        ("#পুনর্নির্দেশ [[বিড়াল]]", "বিড়াল"),
        ("#पुनर्निर्देशन [[मांजर]]", "मांजर"),
        ("#ΑΝΑΚΑΤΕΥΘΥΝΣΗ [[Γάτα]]", "Γάτα"),
        ("#ՎԵՐԱՀՂՈՒՄ [[Կատու]]", "Կատու"),
        ("#重定向 [[猫]]", "猫"),
        ("#転送[[ネコ]]", "ネコ"),
        ("#تحويل [[قط]]", "قط"),
        ("# [[Cat]]", None),
        ("Text #REDIRECT [[Cat]]", None),
        ("", None),
    ],
)
def test_redirects(wikitext: str, target: str | None) -> None:
    assert redirect_target(wikitext, HUNGARIAN) == target


def test_disambiguation_templates_are_local_or_english() -> None:
    assert is_disambiguation("'''A''' lehet:\n* [[B]]\n{{Egyért|x}}", HUNGARIAN)
    assert is_disambiguation("{{ disambiguation }}", HUNGARIAN)
    assert is_disambiguation("__DISAMBIG__", ENGLISH)
    assert not is_disambiguation("{{egyért}}", ENGLISH)
    assert not is_disambiguation("The word disambiguation. {{x|disambig}}", ENGLISH)


@each_row(
    ("language", "call"),
    [
        ("ar", "توضيح"), ("bn", "দ্ব্যর্থতা নিরসন"), ("cs", "Rozcestník"), ("de", "Begriffsklärung"),
        ("el", "Αποσαφήνιση"), ("en", "Hndis|Smith"), ("es", "Desambiguación"), ("fi", "Täsmennyssivu"),
        ("fr", "Homonymie"), ("hu", "Egyért"), ("hy", "Բազմիմաստություն"), ("it", "Disambigua"),
        ("ja", "Aimai"), ("ltg", "Zeimeibu škiršona"), ("mr", "निःसंदिग्धीकरण"), ("nl", "Dp"),
        ("pl", "Ujednoznacznienie"), ("pt", "Desambiguação"), ("ru", "Неоднозначность"), ("sv", "Förgrening"),
        ("tr", "Anlam ayrımı"), ("uk", "Неоднозначність"), ("vi", "Định hướng"), ("zh", "消歧义"),
    ],
)  # fmt: skip
def test_disambiguation_pages_of_every_wiki_in_the_table(language: str, call: str) -> None:
    site = Site(language, {})
    assert is_disambiguation(f"a\n{{{{{call}}}}}", site)
    assert not is_disambiguation(f"a {call}", site)


@each_row("name", ["Fájl", "fájl", "File", "file", "Image", "FILE", " File "])
def test_english_names_of_namespaces_hold_in_every_wiki(name: str) -> None:
    page = f"[[{name}:x.jpg|thumb|Egy híd]]A híd áll.[[Category:Hidak]][[Kategória:Hidak]]"
    assert texts(page, HUNGARIAN) == ["A híd áll."]


def test_the_number_of_a_namespace_by_either_name() -> None:
    found = [HUNGARIAN.namespace(name) for name in ("Sablon", "Template", "template_talk", "File", "Fájl", "Híd")]
    assert found == [10, 10, 11, 6, 6, None]


@each_row(
    ("line", "text"),
    [
        ("''a'' '''b''' '''''c'''''", "a b c"),
        ("'''''a''' b'' and '''''c'' d'''", "a b and c d"),
        ("no marks, rock 'n' roll", "no marks, rock 'n' roll"),
        ("''''a''''", "'a'"),
        ("''''''a''''''", "'a'"),
        ("''''''''a", "'a"),
        ("the ''Faust'''s end", "the Faust's end"),
        ("''Jeopardy!'''s host", "Jeopardy!'s host"),
        ("''The Beatles''' music", "The Beatles' music"),
        ("''Kuritiba''' is", "Kuritiba is"),
        ("l'''amour'' fou", "l'amour fou"),
        ("'''A''' and l'''amour'' fou", "A and l'amour fou"),
        ("one'''two d'''three''", "onetwo dthree"),
        ("one'''two''three d'''four''", "onetwothree dfour"),
        ("the one'''two a'''b'''c''", "the onetwo a'bc"),
        ("a '''b'' c", "a b c"),
        ("'''a'' b", "a b"),
        ("'''a", "a"),
        ("''a", "a"),
        ("''''a'' b", "'a b"),
        ("''", ""),
        ("", ""),
    ],
)
def test_a_line_reads_as_it_is_shown(line: str, text: str) -> None:
    assert without_quotes(line) == text


@each_row(
    ("wikitext", "text"),
    [
        ('Egy <span class="k" title="x > y">híd</span> áll.', "Egy híd áll."),
        ("Egy <span title='x > y'>híd</span> áll.", "Egy híd áll."),
        ('Egy <span title="x>híd</span> áll.', "Egy híd áll."),
        ("5 < 6 > 4, a \"b\" = 'c'", "5 < 6 > 4, a \"b\" = 'c'"),
        ("&notanentity; &copy; &bogus; &lt; R&D", "&notanentity; © &bogus; < R&D"),
    ],
)
def test_marks_inside_attributes_and_names_that_are_no_entity(wikitext: str, text: str) -> None:
    assert [paragraph.text for paragraph in paragraphs(wikitext, Site("hu", {}))] == [text]
