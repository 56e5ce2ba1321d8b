"""Bold and italic marks are removed and apostrophes among them kept, by MediaWiki's rule for a line of text."""

from tests.rows import each_row

from bertwright.corpus.wikitext.inline_marks import without_quotes


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
