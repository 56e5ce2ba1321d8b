"""Language variants."""

from tests.rows import each_row

from bertwright.corpus.wikitext.links import variant_text


@each_row(
    ("content", "language", "text"),
    [
        ("a", "zh", "a"),
        ("zh-hans:a;zh-hant:b", "zh", "a"),
        (" zh-hans : a ; zh-hant : b ; ", "zh", "a"),
        ("sr-ec:а; sr-el:a", "sr-el", "a"),
        ("zh-hans:a: b; c;zh-hant:d", "zh", "a: b; c"),
        ("zh-hans:a&nbsp;b;zh-hant:c", "zh", "a&nbsp;b"),
        ("old=>zh-cn:a;zh-tw:b", "zh", "a"),
        ("A|zh-hans:a;zh-hant:b", "zh", "a"),
        ("zh-hans;zh-hant|a", "zh", "a"),
        ("zh-hans|a:b", "zh", "a:b"),
        ("zh-Hant-TW;|a", "zh", "a"),
        ("zh:a;zh-Hant-TW:b", "zh-hant-tw", "b"),
        ("zh-Hans:a;zh-Hant:b", "zh", "a"),
        ("H|zh-hans:a;zh-hant:b", "zh", ""),
        ("T|zh-hans:a", "zh", ""),
        ("-|zh-hans:a", "zh", ""),
        ("A;H|zh-hans:a", "zh", ""),
        ("R|zh-hans:a", "zh", "zh-hans:a"),
        ("|a", "zh", "a"),
        ("Time: now", "en", "Time: now"),
        ("", "zh", ""),
    ],
)
def test_a_variant_reads_as_the_wikis_own(content: str, language: str, text: str) -> None:
    assert variant_text(content, language) == text
