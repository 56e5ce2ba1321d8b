"""Regression 3: the last article dropped, and articles made of nothing.

sharding.py of the Hungarian recipe (roberthajdu92/nvidia-bert-wiki-preprocess @8cddce5) closes an article when it
meets a blank line, and never at the end of the file: a file that does not end in a blank line loses its last article.
A blank line that closes nothing is taken for a sentence: two blank lines in a row put an empty sentence at the head
of the next article, three make an article of one empty sentence, which is counted when shards are balanced.

Here a document ends at any number of blank lines or at the end of the file, and a line without text is no sentence.
There is no switch back.
"""

from pathlib import Path

from tests.rows import each_row

from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.run import run
from bertwright.corpus.text import read_documents, shard_names

FIRST = ["Az első cikk első mondata.", "Az első cikk második mondata."]
SECOND = ["A második cikk.", "Két mondata van."]
LAST = ["Az utolsó cikk.", "Utána nincs üres sor."]
Articles = list[list[str]]


def original(text: str) -> Articles:
    articles: Articles = []
    open_article: list[str] = []
    for line in text.splitlines(keepends=True):
        if not line.strip() and open_article:
            articles.append(open_article)
            open_article = []
        else:
            open_article.append(line.strip())
    return articles


def ours(text: str, folder: Path) -> Articles:
    (folder / "text.txt").write_text(text, encoding="utf-8")
    config = CorpusConfig(
        source={"path": str(folder / "text.txt"), "lines": "sentences"},
        language="hu",
        filter=FilterConfig(enabled=False),
        workers=1,
    )
    corpus = run(config, folder / "corpus")
    return [document for name in shard_names(corpus) for document in read_documents(corpus, name)]


def joined(articles: Articles, between: str, end: str) -> str:
    return between.join("\n".join(article) for article in articles) + end


def test_both_agree_on_a_file_as_the_original_wants_it(tmp_path: Path) -> None:
    text = joined([FIRST, SECOND, LAST], "\n\n", "\n\n")
    assert original(text) == ours(text, tmp_path) == [FIRST, SECOND, LAST]


@each_row("end", ["", "\n"])
def test_the_last_article(tmp_path: Path, end: str) -> None:
    text = joined([FIRST, SECOND, LAST], "\n\n", end)
    assert original(text) == [FIRST, SECOND]
    assert ours(text, tmp_path) == [FIRST, SECOND, LAST]


def test_a_file_of_one_article(tmp_path: Path) -> None:
    text = joined([FIRST], "", "\n")
    assert original(text) == []
    assert ours(text, tmp_path) == [FIRST]


@each_row(
    ("between", "made"),
    [
        ("\n\n\n", [FIRST, ["", *SECOND]]),
        ("\n \n\t\n", [FIRST, ["", *SECOND]]),
        ("\n\n\n\n", [FIRST, [""], SECOND]),
    ],
)
def test_repeated_blank_lines(tmp_path: Path, between: str, made: Articles) -> None:
    text = joined([FIRST, SECOND], between, "\n\n")
    assert original(text) == made
    assert ours(text, tmp_path) == [FIRST, SECOND]
