"""How well paragraphs are split into sentences: F1 over boundaries, ours compared with plain sentencex, as Markdown.

    python benchmarks/sentences.py DATA_FOLDER [--differences N]
    python benchmarks/sentences.py --treebanks FOLDER [--part dev] [--differences N]

Gold paragraphs are gold sentences joined by one space (none after a full-width stop): English Web Treebank paragraphs
unchanged (`# newpar`), short hand-written ones (tests/unit/corpus/sentences), and blocks of ten sentences for all other
texts, which are not contiguous. A boundary is a position between two non-space characters of a paragraph; the end of
the paragraph is not one. NerKor's files are numbered from 0 in text order: the Hungarian rules were chosen on the even
files, so the odd files are the ones to report.

`--treebanks` reads every `*-ud-{part}.conllu` of a folder of Universal Dependencies treebanks (one folder each, as
cloned) and adds pySBD, if it is installed (`pip install pysbd`), with its English rules for languages that it lacks.
The rules were chosen on dev and train parts, so test is the part to report. Paragraphs are those of `# newpar` and
`# newdoc`, or blocks of ten where these hold one sentence each.

Dumps have no gold sentences: for Greek, Armenian and Bengali the table shows how many sentences both splitters make of
the same paragraphs. `--differences N` prints N differences for each dump, and N of our errors for each gold set.
"""

from __future__ import annotations

import argparse
import warnings
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
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--treebanks", type=Path, metavar="FOLDER")
    parser.add_argument("--part", default="test", choices=("train", "dev", "test"))
    parser.add_argument("--differences", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.treebanks:
        print_treebanks(options.treebanks, options.part, options.differences)
    if options.data:
        print_gold(options.data, options.differences)


def print_gold(data: Path, most: int) -> None:
    """Print the tables of the gold sets and dumps, and at most `most` errors of each."""
    print("| gold | boundaries | ours: F1 (false, missed) | sentencex alone |\n| --- | --- | --- | --- |")
    wrong: list[str] = []
    for name, language, paragraphs in gold_sets(data):
        boundaries = sum(len(sentences) - 1 for sentences in paragraphs)
        ours, alone = score(paragraphs, splitter(language)), score(paragraphs, alone_splitter(language))
        print(f"| {name} | {boundaries:,} | {ours} | {alone} |")
        wrong += [f"- {name}: {place}" for place in errors(paragraphs, splitter(language), most)]
    print("\n| dump | paragraphs | ours, sentences | sentencex alone | joined | cut |\n|" + " --- |" * 6)
    for language, name in DUMPS.items():
        wrong += print_dump(data / "wiki" / f"{name}.xml.xz", language, most)
    print("", *wrong, sep="\n")


def alone_splitter(language: str) -> Splitter:
    """Unmodified sentencex, without empty sentences."""
    return lambda paragraph: [piece for piece in sentencex.segment(language, paragraph) if piece.strip()]


def print_treebanks(folder: Path, part: str, most: int) -> None:
    """Print a line for each treebank: sentences, and the scores of ours, sentencex and pySBD."""
    print(
        "| treebank | sentences | ours: F1 (false, missed) | sentencex alone | pySBD |\n| --- | --- | --- | --- | --- |"
    )
    for path in sorted(folder.glob(f"*/*-ud-{part}.conllu")):
        code = path.name.partition("_")[0]
        language = {"nb": "no"}.get(code, code)
        paragraphs = conllu(path.read_text("utf-8"))
        splitters = splitter(language), alone_splitter(language), pysbd_splitter(language)
        scores = " | ".join(score(paragraphs, split, language) if split else "" for split in splitters)
        print(f"| {path.parent.name} | {sum(map(len, paragraphs)):,} | {scores} |", flush=True)
        for place in errors(paragraphs, splitter(language), most, language):
            print(f"- {place}")


def pysbd_splitter(language: str) -> Splitter | None:
    """PySBD for this language, or None if it is not installed."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of its patterns
            import pysbd
            from pysbd.languages import LANGUAGE_CODES
    except ImportError:
        return None
    segmenter = pysbd.Segmenter(language=language if language in LANGUAGE_CODES else "en", clean=False)
    return lambda paragraph: [piece for piece in segmenter.segment(paragraph) if piece.strip()]


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


def paragraph(sentences: list[str], language: str = "") -> str:
    """The sentences joined into running text."""
    if language:
        return ("" if language in ("ja", "zh") else " ").join(sentences)
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
        elif line.startswith("# text ="):
            paragraphs[-1].append(line.removeprefix("# text =").strip())
    full = [paragraph for paragraph in paragraphs if paragraph]
    if marked and sum(map(len, full)) > 1.5 * len(full):
        return full
    return blocks([sentence for paragraph in full for sentence in paragraph])


def boundaries(sentences: list[str]) -> set[int]:
    """The boundaries between sentences, each as the number of non-space characters before it."""
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    return set(accumulate(lengths[:-1]))


def score(paragraphs: list[list[str]], split: Splitter, language: str = "") -> str:
    """F1 in percent, with the numbers of false and missed boundaries."""
    right = false = missed = 0
    for sentences in paragraphs:
        gold, found = boundaries(sentences), boundaries(split(paragraph(sentences, language)))
        right, false, missed = right + len(gold & found), false + len(found - gold), missed + len(gold - found)
    return f"{200 * right / max(1, 2 * right + false + missed):.2f} ({false} + {missed})"


def errors(paragraphs: list[list[str]], split: Splitter, most: int, language: str = "") -> Iterator[str]:
    """The text around the first `most` positions where the splitter is wrong."""
    for sentences in paragraphs:
        text = paragraph(sentences, language)
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
