"""Paragraphs of Markdown as FineWiki writes it."""

from tests.rows import each_row

from bertwright.corpus.markdown_text import markdown_paragraphs


@each_row(
    ("text", "expected"),
    [
        ("# Híd\nEgy **fontos** mondat.\n\n## Élete\n- első\n- *második*", [
            (None, "Egy fontos mondat."), ("Élete", "első"), (None, "második"),
        ]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\nSzöveg.", [(None, "Szöveg.")]),
        ("```py\nx = 1\n```\nSzöveg.\n$$\nx^2\n$$\nVége.", [(None, "Szöveg."), (None, "Vége.")]),
        ("Ára 5$ és 6$, de $\\alpha$ nem.", [(None, "Ára 5$ és 6$, de nem.")]),
        ("Az [utca](https://x/y_(z)) és a ![kép](a.png) \\*csillag\\*.", [(None, "Az utca és a *csillag*.")]),
        ("egy_két_három, 2*3*4, a * b", [(None, "egy_két_három, 2*3*4, a * b")]),
        ("1. egy\n2. kettő\n\n12. század", [(None, "egy"), (None, "kettő"), (None, "12. század")]),
        ("> idézet\n\n---\n***\n## Üres", [(None, "idézet")]),
        ("**\n__\n[a](\n![", [(None, "[a](")]),
    ],
)  # fmt: skip
def test_paragraphs_and_headings(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert [(paragraph.heading, paragraph.text) for paragraph in markdown_paragraphs(text, "Híd")] == expected


def test_hostile_markdown_is_read_in_linear_time() -> None:
    for part in ("[", "**a ", "![](", "*a", "$a_", "|:-", "> ", "- * _ "):
        markdown_paragraphs(part * 20_000)
