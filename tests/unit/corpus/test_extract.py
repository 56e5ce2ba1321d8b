"""What a whole run makes of the settings of splitting and of paragraphs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.corpus import extract
from bertwright.corpus.config import CorpusConfig, DeduplicateConfig, FilterConfig, SplitConfig
from bertwright.corpus.run import run
from bertwright.corpus.text import read_documents, shard_names

AT_COMMAS = "import sys\nfor line in sys.stdin: print(line.replace(', ', ',\\n'), end='')\n"
KEEP_ALL = DeduplicateConfig(documents=False, near_documents=False, paragraphs=False)
Made = Callable[..., Artifact]


@pytest.fixture
def made(tmp_path: Path, export: Callable[..., bytes], new_page: Any) -> Made:
    """`made(wikitexts, filter settings, split=…)`: the corpus of pages with these wikitexts."""

    def make(*texts: str, split: SplitConfig | None = None, **filters: Any) -> Artifact:
        pages = [new_page(i, f"Lap {i}", text) for i, text in enumerate(texts, 1)]
        (tmp_path / "a.xml").write_bytes(export(pages))
        config = CorpusConfig(
            source=str(tmp_path / "a.xml"), language="hu", workers=1, shards=1,
            split=split or SplitConfig(),
            filter=FilterConfig(enabled=False, **filters), deduplicate=KEEP_ALL,
        )  # fmt: skip
        return run(config, tmp_path / f"corpus {len(list(tmp_path.iterdir()))}")

    return make


def documents(artifact: Artifact) -> list[list[str]]:
    return [document for name in shard_names(artifact) for document in read_documents(artifact, name)]


def test_a_program_splits_the_paragraphs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"Az {i}. híd, amely szép. Áll\n\nmég, most is." for i in range(30)]
    split = SplitConfig(command=(sys.executable, "-X", "utf8", "-c", AT_COMMAS))
    found = made(*texts, split=split)
    assert documents(found)[7] == ["Az 7. híd,", "amely szép. Áll", "még,", "most is."]
    monkeypatch.setattr(extract, "_BATCH", 100)
    assert documents(made(*texts, split=split)) == documents(found)


def test_the_complaint_about_a_program_reaches_the_user(made: Made) -> None:
    with pytest.raises(DataError, match=r"corpus\.split\.command.*No such file"):
        made("Egy híd.", split=SplitConfig(command=("./no-such-splitter",)))


def test_rules_about_paragraphs_are_applied_and_counted(made: Made) -> None:
    text = "Írjon ide: info@hid.hu.\n\nHívja: +36 1 234 5678.\n\nEz a lap {{sütiket|x}}lorem ipsum.\n\nSzép híd."
    found = made(text, text.replace("lap", "oldal"), boilerplate=True, emails="mask", phones="drop")
    assert documents(found)[0] == ["Írjon ide: name@example.com.", "Szép híd."]
    assert found.counts["masked"] == {"email": 2}
    assert found.counts["removed_paragraphs"] == {"boilerplate": 2, "phone": 2}


def test_a_line_that_a_rule_removes_leaves_no_empty_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Az első híd.\nÍrjon ide: info@hid.hu.\nA második híd.\n\nKérem: a@b.hu.\n")
    source = {"path": str(tmp_path / "a.txt"), "lines": "sentences"}
    rules = FilterConfig(enabled=False, emails="drop")
    found = run(CorpusConfig(source=source, language="hu", workers=1, filter=rules), tmp_path / "corpus")
    assert documents(found) == [["Az első híd.", "A második híd."]]
    assert (found.counts["sentences"], found.counts["dropped"]) == (2, {"empty": 1})


def test_headings_are_kept_while_their_section_has_text() -> None:
    """(heading, sentences left) of each paragraph, to the headings and the starts of paragraphs."""
    paragraphs = [("", 2), ("A", 0), ("", 0), ("B", 0), ("", 1), ("", 2), ("C", 1), ("D", 0)]
    found = [extract.Paragraph("x", heading or None) for heading, _ in paragraphs]
    sentences, headings, starts = extract._sentences(found, iter([["x."] * count for _, count in paragraphs]))
    assert (len(sentences), headings, starts) == (6, [(2, "B"), (5, "C")], [0, 2, 3, 5])
