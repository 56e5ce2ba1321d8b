"""A text that a user gives means the same in NFD as in NFC: every place that reads one gives it the corpus's form.

macOS and some editors write letters and their accents apart, and both forms look the same. Where only one of them was
read, a contamination check found 0 of 120 copies of the corpus's own sentences.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pyarrow
import pyarrow.parquet
import pytest

from bertwright.corpus.config import FilterConfig
from bertwright.corpus.contamination import contamination, read_lines
from bertwright.corpus.filter import ByAlphabet
from bertwright.corpus.paragraphs import ParagraphRules
from bertwright.corpus.sources.records import plain_lines
from bertwright.corpus.wikitext.templates import read_table, templates_of
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.labelled.read import read_texts
from bertwright.examples.labelled.records import named
from bertwright.examples.labelled.sizes import text_sizes
from bertwright.examples.problems import Problems
from bertwright.exams.minimal_pairs import read_pairs
from bertwright.exams.perplexity import Perplexity
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.span.files import read_questions
from bertwright.tasks.tagging.files import Layout, read_sentences
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import SPECIALS, TextSettings, entries_of
from bertwright.vocab.prune import UsageCounter
from bertwright.vocab.run import run as make_vocab
from bertwright.vocab.split import build_tokenizer
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

NUMBERS = ("egy", "két", "három", "négy", "öt", "hét")
SENTENCES = [
    f"A {NUMBERS[i % 6]}százhúsz árvíztűrő tükörfúrógép közül a {i}. {NUMBERS[i // 6 % 6]} évig működött még Győr "
    f"és Szőny között, írták {word}."
    for i, word in enumerate(["később", "ezután", "utóbb", "végül", "előbb"] * 24)
]
ENTRIES = [*SPECIALS, "é", "á", "##é", "##ő", "gyár", "##ó", "ő"]


class Writer:
    """Writes files of texts in one normal form."""

    def __init__(self, folder: Path, form: str) -> None:
        self.folder, self.form = folder, form
        folder.mkdir()

    def text(self, text: str) -> str:
        return normalize(self.form, text)

    def __call__(self, name: str, rows: list[Any]) -> Path:
        file = self.folder / name
        if file.suffix == ".parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(self._given(rows)), file)
        elif file.suffix == ".json":
            file.write_text(json.dumps(self._given(rows)), encoding="utf-8")  # as escapes
        else:
            file.write_text("".join(f"{line}\n" for line in self._lines(file.suffix, rows)), encoding="utf-8")
        return file

    def _given(self, rows: list[Any]) -> Any:
        return json.loads(self.text(json.dumps(rows, ensure_ascii=False)))

    def _lines(self, suffix: str, rows: list[Any]) -> list[str]:
        if not isinstance(rows[0], Mapping):
            return [self.text(row) for row in rows]
        if suffix == ".jsonl":
            return [self.text(json.dumps(row, ensure_ascii=False)) for row in rows]
        mark = "\t" if suffix == ".tsv" else ","
        return [self.text(mark.join(cells)) for cells in (rows[0], *(row.values() for row in rows))]


def contaminated(write: Writer) -> object:
    for name in ("lines.txt", "rows.jsonl"):
        rows = SENTENCES if name == "lines.txt" else [json.dumps({"q": each}) for each in SENTENCES]
        found = contamination([SENTENCES], {"set": read_lines(write(name, rows))})["set"]
        assert (found["found"], found["sentences"], found["share"]) == (120, 120, 1.0)
    return found


def pattern(write: Writer) -> object:
    rules = ParagraphRules(FilterConfig(patterns=(write.text("^tükör[úű]"),)))
    return [rules.apply(each, Counter()) for each in ("Tükörűr jön", "tükörkép")]


def alphabet(write: Writer) -> object:
    return ByAlphabet(["hu"], write.text("abcdeéfőű")).measure(["éőű xyz abc"])


def table(write: Writer) -> object:
    made = write("mine.toml", ['[hu]\n"hajó" = "{1} {név}"'])
    return templates_of("hu", read_table(made)).text("hajó|a|név=Főnix")


def cloze(write: Writer) -> object:
    return EvaluateConfig(cloze=(write.text("A [MASK=főváros] szép."),)).cloze


def classes(write: Writer) -> object:
    found = []
    rows = [{"szöveg": "Jó nap", "osztály": "dühös"}, {"szöveg": "ő", "osztály": "vidám"}]
    for suffix in ("tsv", "csv", "jsonl", "json", "parquet"):
        file = write(f"rows.{suffix}", rows)
        given = {"labels": ["dühös", "vidám"], "text": "szöveg", "label": "osztály"}
        task = ClassificationConfig.model_validate(json.loads(write.text(json.dumps(given, ensure_ascii=False))))
        found.append(list(read_texts(file, task.files.described, Problems())))
        assert text_sizes(file, task.files.described).number == 2
    assert found[1:] == found[:-1] and [text.label for text in found[0]] == [0, 1]
    return found


def tags(write: Writer) -> object:
    columns = write("words.conll", ["Győr\tB-hely", "szép\tO", ""])
    rows = write("words.jsonl", [{"words": ["Győr", "szép"], "tags": ["B-hely", "első"]}])
    read = [read_sentences(file, Layout("", ""), Problems()) for file in (columns, rows)]
    return [[(each.words, each.tags) for each in sentences] for _, sentences in read]


def answers(write: Writer) -> object:
    context = "Később Győrben, majd Pécsett élt."
    begin = write.text(context).index("P")
    given = {"text": ["Pécsett"], "answer_start": [begin]}
    file = write("questions.jsonl", [{"id": "1", "context": context, "question": "Hol élt?", "answers": given}])
    problems = Problems()
    found = list(read_questions(file, problems))
    assert not problems.counts and found[0].answers[0] == ("Pécsett", context.index("P"))
    return found


def exam_pairs(write: Writer) -> object:
    return read_pairs(write("pairs.jsonl", [{"sentence_good": "Ő szép.", "sentence_bad": "Őt szép."}]))


def exam_lines(write: Writer) -> object:
    return Perplexity.model_validate({"texts": [write.text("Jó napot.")], "file": write("lines.txt", SENTENCES)}).read()


def entries(write: Writer) -> object:
    build_tokenizer([write.text(entry) for entry in ENTRIES], False, False).save(str(write.folder / "tokenizer.json"))
    return [entries_of(write("vocab.txt", ENTRIES)), entries_of(write.folder / "tokenizer.json")]


def vocabulary(write: Writer) -> object:
    made = make_vocab(VocabConfig(file=write("vocab.txt", ENTRIES)), None, write.folder / "vocab")
    flat, _ = load_tokenizer(made).encode_texts(["gyáró éé őé"])
    assert made.counts["vocabulary"] == VocabConfig(file=Path("vocab.txt")).hash_of(ENTRIES)
    return flat.tolist()


def asked(write: Writer) -> object:
    """What `predict`, `fill_mask`, `encode` and `tag` read."""
    tokenizer = Tokenizer(build_tokenizer(ENTRIES, False, False))
    assert tokenizer.fast.encode(write.text("gyáró éé")).ids == tokenizer.fast.encode("gyáró éé").ids
    flat, lengths = tokenizer.encode_texts([write.text("gyáró éé [MASK] ő"), write.text("őé")])
    return flat.tolist(), lengths.tolist(), dict(named({write.text("szöveg"): 1}))


def needed(write: Writer) -> object:
    """The texts that an imported vocabulary is pruned by."""
    counter = UsageCounter(ENTRIES, TextSettings(False, False))
    counter.read([write.text("gyáró éé őé"), write.text("éő")])
    return counter.kept().tolist()


def source(write: Writer) -> object:
    return plain_lines(write.text("\n".join(SENTENCES)))


READERS = (
    *(source, contaminated, pattern, alphabet, table, cloze, classes, tags, answers, exam_pairs, exam_lines, entries),
    *(vocabulary, asked, needed),
)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_nfd_reads_as_nfc(read: Callable[[Writer], object], tmp_path: Path) -> None:
    assert any(normalize("NFD", each) != each for each in SENTENCES)
    assert read(Writer(tmp_path / "nfd", "NFD")) == read(Writer(tmp_path / "nfc", "NFC"))
