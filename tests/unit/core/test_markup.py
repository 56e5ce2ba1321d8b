"""Trees of elements: text never becomes markup, in HTML or in Markdown; links lead to the web or to a file beside."""

import pytest
from markdown_it import MarkdownIt
from tests.rows import each_row

from bertwright.page.markup import address, b, code, element, html, markdown, p, small

EVIL = "<script>\"'&*_`[x](y)"


def rendered(*blocks: object) -> str:
    return MarkdownIt("commonmark").enable("table").render(markdown(blocks))  # type: ignore[arg-type]


def test_text_and_attributes_are_escaped_once_in_html() -> None:
    page = html(element("html", element("head"), element("body", p("R&D <b>", title='"><i>'))), "b > i {}")
    assert page.startswith("<!DOCTYPE html>\n<html><head><style>b > i {}</style></head>")
    assert '<p title="&quot;&gt;<i&gt;">R&amp;D &lt;b&gt;</p>' in page


def test_text_stays_between_its_elements() -> None:
    bold = b("x")
    assert markdown([p("a ", bold, " c ", (bold, ["d", small("e")]), "f")]) == "a **x** c **x**def"


@each_row("link", ["javascript:alert(1)", "data:text/html,x", "//evil.org", "/etc", "../x", "http://a b", ""])
def test_a_link_leads_to_the_web_or_to_a_file_beside_the_page(link: str) -> None:
    with pytest.raises(ValueError, match="is not a link"):
        element("a", "x", href=link)
    assert address(link) == link, "is text"


@each_row("link", ["#results", "export/hf/", "https://hu.wikipedia.org/wiki/Kezd%C5%91lap"])
def test_these_are_links(link: str) -> None:
    assert element("a", "x", href=link).get("href") == link


@each_row(
    "text",
    ["# x", "- x", "+ x", "1. x", "23) x", "> x", "===", "---", "    x", "\tx", "| a |", "*x*", "~~~", "```\nx", EVIL],
)
def test_text_is_a_paragraph_of_markdown(text: str) -> None:
    shown = (
        " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    )
    assert rendered(text) == f"<p>{shown}</p>\n"
    assert rendered(element("ul", element("li", text))) == f"<ul>\n<li>{shown}</li>\n</ul>\n"


@each_row("text", ["`", "``x", "a`b|c", "x\\", "<b>&amp;"])
def test_code_shows_what_it_holds(text: str) -> None:
    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert rendered(p(code(text))) == f"<p><code>{shown}</code></p>\n"
    rows = element("table", element("tr", element("th", "a")), element("tr", element("td", code(text))))
    assert f"<td><code>{shown}</code></td>" in rendered(rows)


def test_a_cell_holds_what_would_end_it() -> None:
    rows = element("table", element("tr", element("th", "a|b")), element("tr", element("td", EVIL, "|\\|")))
    page = rendered(rows)
    assert "<th>a|b</th>" in page and "|\\|</td>" in page and page.count("<td>") == 1


def test_blocks_are_apart() -> None:
    quote = element("blockquote", b("Unfinished."), " This.")
    blocks = [
        element("h2", "Use"),
        quote,
        element("pre", "import x\nx()", class_="python"),
        element("ul", element("li", "a")),
    ]
    assert markdown(blocks) == "## Use\n\n> **Unfinished.** This.\n\n```python\nimport x\nx()\n```\n\n- a"
    assert rendered(element("p", address("https://a.org/x_y"))) == "<p>https://a.org/x_y</p>\n"


@each_row(
    ("text", "shown"),
    [
        ("", ""),
        ("a\u202eb\u200bc\x00d", "a b c d"),
        ("  két \n sor\t", "két sor"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("~~x~~ `y` [z](u)", r"\~\~x\~\~ \`y\` \[z\](u)"),
    ],
)
def test_words_of_others_are_plain_text_of_one_line(text: str, shown: str) -> None:
    assert markdown([p(text)]) == shown


@each_row(
    ("text", "span"),
    [
        ("not_entailment", "`not_entailment`"),
        ("a\n <b>\u202e*", "`a <b> *`"),
        ("`", "`` ` ``"),
        ("x``y`", "``` x``y` ```"),
    ],
)
def test_names_in_code_stand_as_they_are(text: str, span: str) -> None:
    assert markdown([p(code(text))]) == span
