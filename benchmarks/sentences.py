"""How well paragraphs are split into sentences: F1 over boundaries, ours compared with plain sentencex, as Markdown.

    python benchmarks/sentences.py DATA_FOLDER [--differences N]

Gold paragraphs are gold sentences joined by one space (none after a full-width stop): English Web Treebank paragraphs
unchanged (`# newpar`), short hand-written ones (tests/unit/corpus/sentences), and blocks of ten sentences for all other
texts, which are not contiguous. A boundary is a position between two non-space characters of a paragraph; the end of
the paragraph is not one. NerKor's files are numbered from 0 in text order: the Hungarian rules were chosen on the even
files, so the odd files are the ones to report.

Dumps have no gold sentences: for Greek, Armenian and Bengali the table shows how many sentences both splitters make of
the same paragraphs. `--differences N` prints N differences for each dump, and N of our errors for each gold set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

import sentencex

from bertwright.corpus.split import splitter
from cleaners.pages import our_text, read_wiki

HAND_WRITTEN = Path(__file__).parents[1] / "tests" / "unit" / "corpus" / "sentences"
DUMPS = {"el": "elwiki", "hy": "hywiki", "bn": "bnwiki"}
ARTICLES = 60
Splitter = Callable[[str], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--differences", type=int, default=0, metavar="N")
    options = parser.parse_args()
    print("| gold | boundaries | ours: F1 (false, missed) | sentencex alone |\n| --- | --- | --- | --- |")
    wrong: list[str] = []
    for name, language, paragraphs in gold_sets(options.data):
        boundaries = sum(len(sentences) - 1 for sentences in paragraphs)
        ours, alone = score(paragraphs, splitter(language)), score(paragraphs, alone_splitter(language))
        print(f"| {name} | {boundaries:,} | {ours} | {alone} |")
        wrong += [f"- {name}: {place}" for place in errors(paragraphs, splitter(language), options.differences)]
    print("\n| dump | paragraphs | ours, sentences | sentencex alone | joined | cut |\n|" + " --- |" * 6)
    for language, name in DUMPS.items():
        wrong += print_dump(options.data / "wiki" / f"{name}.xml.xz", language, options.differences)
    print("", *wrong, sep="\n")


def alone_splitter(language: str) -> Splitter:
    """Unmodified sentencex, without empty sentences."""
    return lambda paragraph: [piece for piece in sentencex.segment(language, paragraph) if piece.strip()]


def gold_sets(data: Path) -> Iterator[tuple[str, str, list[list[str]]]]:
    """The gold sets as name, language, and paragraphs of sentences."""
    files = sections((data / "text" / "hu_nerkor_wikipedia_sents.txt").read_text("utf-8"))
    numbered = {"NerKor": files, "NerKor, even files": files[::2], "NerKor, odd files": files[1::2]}
    for name, chosen in numbered.items():
        yield name, "hu", [block for file in chosen for block in blocks(file)]
    for name, language, folder in (
        ("UD Hungarian-Szeged", "hu", "ud_hungarian_szeged"),
        ("UD English-EWT", "en", "ud_english_ewt"),
        ("UD English-ParTUT", "en", "ud_english_partut"),
    ):
        texts = [path.read_text("utf-8") for path in sorted((data / "eval" / folder).glob("*.conllu"))]
        yield name, language, [block for text in texts for block in conllu(text)]
    for path in sorted(HAND_WRITTEN.glob("*.txt")):
        yield f"hand-written {path.stem}", path.stem, sections(path.read_text("utf-8"))


def paragraph(sentences: list[str]) -> str:
    """The sentences joined into running text."""
    return "".join(s if s.endswith(tuple("。！？」』）”")) else f"{s} " for s in sentences).strip()


def sections(text: str) -> list[list[str]]:
    """The lines between empty lines."""
    return [section.split("\n") for section in text.strip().split("\n\n")]


def blocks(sentences: list[str]) -> list[list[str]]:
    """The sentences in groups of ten."""
    return [sentences[start : start + 10] for start in range(0, len(sentences), 10)]


def conllu(text: str) -> list[list[str]]:
    """The sentences of a CoNLL-U file by paragraph, in groups of ten if it marks no paragraphs."""
    paragraphs: list[list[str]] = [[]]
    marked = False
    for line in text.split("\n"):
        if line.startswith(("# newpar", "# newdoc")):
            paragraphs.append([])
            marked = True
        elif line.startswith("# text = "):
            paragraphs[-1].append(line.removeprefix("# text = "))
    return [paragraph for paragraph in paragraphs if paragraph] if marked else blocks(paragraphs[0])


def boundaries(sentences: list[str]) -> set[int]:
    """The boundaries between sentences, each as the number of non-space characters before it."""
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    return set(accumulate(lengths[:-1]))


def score(paragraphs: list[list[str]], split: Splitter) -> str:
    """F1 in percent, with the numbers of false and missed boundaries."""
    right = false = missed = 0
    for sentences in paragraphs:
        gold, found = boundaries(sentences), boundaries(split(paragraph(sentences)))
        right, false, missed = right + len(gold & found), false + len(found - gold), missed + len(gold - found)
    return f"{200 * right / max(1, 2 * right + false + missed):.2f} ({false} + {missed})"


def errors(paragraphs: list[list[str]], split: Splitter, most: int) -> Iterator[str]:
    """The text around the first `most` positions where the splitter is wrong."""
    for sentences in paragraphs:
        text = paragraph(sentences)
        gold, found = boundaries(sentences), boundaries(split(text))
        for place in sorted(gold ^ found):
            if most <= 0:
                return
            most -= 1
            yield f"{'false' if place in found else 'missed'}: {around(text, place)}"


def around(text: str, place: int) -> str:
    """The text around the boundary after `place` non-space characters, with the boundary shown as a bar."""
    ends = [index + 1 for index, character in enumerate(text) if not character.isspace()]
    end = ends[place - 1]
    return f"…{text[max(0, end - 40) : end]} | {text[end : end + 30].strip()}…"


def print_dump(path: Path, language: str, most: int) -> list[str]:
    """Print the dump's table row; returns at most `most` positions where ours differs from plain sentencex."""
    wiki = read_wiki(path, ARTICLES)
    paragraphs = [line for page in wiki.articles for line in our_text(page, wiki).split("\n") if line]
    places: list[str] = []
    ours = alone = joined = cut = 0
    for paragraph in paragraphs:
        one, other = (boundaries(split(paragraph)) for split in (splitter(language), alone_splitter(language)))
        ours, alone = ours + len(one) + 1, alone + len(other) + 1
        joined, cut = joined + len(other - one), cut + len(one - other)
        places += [
            f"- {wiki.name}, {'cut' if place in one else 'joined'}: {around(paragraph, place)}"
            for place in sorted(one ^ other)[: most - len(places)]
        ]
    print(f"| {wiki.name} | {len(paragraphs):,} | {ours:,} | {alone:,} | {joined:,} | {cut:,} |")
    return places


if __name__ == "__main__":
    main()
