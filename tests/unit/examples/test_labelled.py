"""Labelled texts: GLUE's own layouts and one's own files, what is no example, cutting as transformers cuts."""

import csv
import errno
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row
from tests.unit.examples import made

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import sha256_of
from bertwright.core.stage_context import StageContext
from bertwright.core.work_split import FolderLock, StageIncomplete, WorkSplit
from bertwright.examples.batch import batch_hash
from bertwright.examples.config import ExamplesConfig, ImportedData, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.example_set import Selection
from bertwright.examples.labelled import records
from bertwright.examples.labelled import run as stage
from bertwright.examples.labelled.config import GLUE, SUFFIXES, Columns, LabelledTexts, glue
from bertwright.examples.labelled.data import Labelled, LabelledExamples
from bertwright.examples.labelled.files import TextFiles
from bertwright.examples.labelled.read import Text, read_texts
from bertwright.examples.labelled.records import _READERS, TABLES
from bertwright.examples.loader import Heldout, Loader, LoaderSettings
from bertwright.examples.own_files import find_files
from bertwright.examples.problems import Problems
from bertwright.examples.run_tasks import Inputs

FILES = {
    "cola": 'gj04\t1\t\tOur friends won.\nks08\t0\t*\tFriends our "won.\n',
    "sst2": "sentence\tlabel\na warm story \t1\ndull \t0\n",
    "mrpc": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe left .\tHe went .\n0\t7\t9\tA\tB\n",
    "qqp": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tWhy?\tHow?\t0\n1\t3\t4\tWho?\tWho is it?\t1\n",
    "stsb": "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    "0\tg\tf\t2012\t1\tn\tn\tA dog runs.\tA dog is running.\t4.800\n1\tg\tf\t2012\t1\tn\tn\tA.\tB.\t0.000\n",
    "mnli": "index\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
    "0\t1\tg\tIt rains.\tIt is wet.\tneutral\tentailment\n1\t2\tg\tIt rains.\tIt is dry.\tneutral\tcontradiction\n",
    "qnli": "index\tquestion\tsentence\tlabel\n0\tWho?\tHe did.\tentailment\n1\tWho?\tNo.\tnot_entailment\n",
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tHe won.\tHe played.\tentailment\n1\tA.\tB.\tnot_entailment\n",
    "wnli": "index\tsentence1\tsentence2\tlabel\n0\tIt fell.\tThe cup fell.\t1\n1\tIt fell.\tThe table fell.\t0\n",
}
"""A line or two in the layout of each file of GLUE, invented."""
READ = {
    "cola": [("Our friends won.", "", 1), ('Friends our "won.', "", 0)],
    "sst2": [("a warm story ", "", 1), ("dull ", "", 0)],
    "mrpc": [("He left .", "He went .", 1), ("A", "B", 0)],
    "qqp": [("Why?", "How?", 0), ("Who?", "Who is it?", 1)],
    "stsb": [("A dog runs.", "A dog is running.", 4.8), ("A.", "B.", 0)],
    "mnli": [("It rains.", "It is wet.", 0), ("It rains.", "It is dry.", 2)],
    "qnli": [("Who?", "He did.", 0), ("Who?", "No.", 1)],
    "rte": [("He won.", "He played.", 0), ("A.", "B.", 1)],
    "wnli": [("It fell.", "The cup fell.", 1), ("It fell.", "The table fell.", 0)],
}
TEXTS = LabelledTexts(("no", "yes"), (Columns("label", "text", "pair"),))


def read(file: Path, texts: LabelledTexts = TEXTS) -> list[Text]:
    return list(read_texts(file, texts, Problems()))


@each_row("task", GLUE)
def test_the_layout_of_each_task_is_read(task: str, tmp_path: Path) -> None:
    name = task.removesuffix("-mm")
    file = tmp_path / "train.tsv"
    file.write_text(FILES[name], encoding="utf-8")
    assert read(file, glue(task)) == READ[name]  # type: ignore[arg-type]
    held = {"mnli": "dev_matched", "mnli-mm": "dev_mismatched"}.get(task, "dev")
    for other in ("dev_matched", "dev_mismatched", "dev", "test"):
        (tmp_path / f"{other}.tsv").write_text("")
    files = find_files(tmp_path, TextFiles(glue(task)), "k")  # type: ignore[arg-type]
    assert file in files.train and tmp_path / f"{held}.tsv" in files.heldout and tmp_path / "test.tsv" in files.unread


def test_own_files_are_read_alike_in_every_format(tmp_path: Path) -> None:
    rows = [{"text": 'a, "b"', "pair": "c", "label": "yes"}, {"text": "d\ne", "pair": "", "label": 0}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.json").write_text("\ufeff" + json.dumps(rows), encoding="utf-8")
    (tmp_path / "a.csv").write_text('text,pair,label\n"a, ""b""",c,yes\n"d\ne",,0\n')
    pa = pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")
    import pyarrow.parquet

    text = [{**row, "label": str(row["label"])} for row in rows]
    pyarrow.parquet.write_table(pa.Table.from_pylist(text), tmp_path / "a.parquet")
    expected = [('a, "b"', "c", 1.0), ("d\ne", "", 0.0)]
    assert [read(tmp_path / f"a.{kind}") for kind in ("jsonl", "json", "csv", "parquet")] == [expected] * 4


def test_every_suffix_has_a_reader() -> None:
    assert set(SUFFIXES) == {*TABLES, *_READERS}


def test_a_spreadsheet_with_semicolons_is_read(tmp_path: Path) -> None:
    """As Excel writes it in Hungarian: with a byte order mark, and commas inside texts."""
    lines = ("text;pair;label", '"Szép, ""jó""; tetszett";c, d;yes', "ű,ő;;no;x")
    (tmp_path / "a.csv").write_text("\r\n".join(lines), encoding="utf-8-sig", newline="")
    assert read(tmp_path / "a.csv") == [('Szép, "jó"; tetszett', "c, d", 1.0), ("ű,ő", "", 0.0)]
    (tmp_path / "a.csv").write_text("text,pair,label\na;b,c,yes\n")
    assert read(tmp_path / "a.csv") == [("a;b", "c", 1.0)]


def test_what_is_no_example_is_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("label\ttext\tpair\nyes\ta\tb\n-1\tc\td\nno\te\n\tf\tg\n")
    problems = Problems()
    assert list(read_texts(file, TEXTS, problems)) == [("a", "b", 1.0)]
    assert problems.counts == {"texts without a label": 2, "texts that lack a column": 1}
    assert problems.first["texts that lack a column"] == "line 4"
    file.write_text("label\ttext\tpair\nno\te\nyes\ta\tb\n")
    assert list(read_texts(file, TEXTS, Problems())) == [("a", "b", 1.0)], "the first one, too"


@each_row(
    ("labels", "values", "numbers"),
    [
        (("-1", "0", "1"), [-1, 0, 1, "-1", "1"], [0, 1, 2, 0, 2]),
        (("1", "0"), [1, 0, "1", "0"], [0, 1, 0, 1]),
        (("-", "+"), ["-", "+", -1, None], [0, 1]),
        (("-1", "1"), ["-1", 1, "", None], [0, 1]),
        (("no", "yes"), [1, "0", "yes", -1, "-1", -1.0], [1, 0, 1]),
        (("score",), [-1, "-1", "-1.0", 0, "-", "", None], [-1, -1, -1, 0]),
    ],
)
def test_what_names_a_class_is_one_in_every_format(
    labels: tuple[str, ...], values: list[object], numbers: list[float], tmp_path: Path
) -> None:
    texts = LabelledTexts(labels, (Columns("label", "text"),))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": "a", "label": value}) + "\n" for value in values))
    problems = Problems()
    found = list(read_texts(tmp_path / "a.jsonl", texts, problems))
    assert [text.label for text in found] == numbers and problems.counts["texts without a label"] == len(values) - len(
        numbers
    )


def test_where_names_are_numbers_no_other_number_is_a_class(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na,1\nb,0\n")
    stars = LabelledTexts(("1", "2", "3"), (Columns("label", "text"),))
    with pytest.raises(DataError, match=r"line 3 has the label '0', which is not one of the classes \(1, 2, 3\)"):
        read(tmp_path / "a.csv", stars)


@each_row(
    ("name", "content", "says"),
    [
        (
            "a.tsv",
            "text\tpair\tlabel\na\tb\tmaybe\n",
            "line 2 has the label 'maybe', which is not one of the classes (0 no, 1 yes)",
        ),
        ("a.tsv", "text\tpair\tlabel\na\tb\t2\n", "line 2 has the label '2', which is not one"),
        ("a.tsv", "text\tlabel\na\tb\n", "has the columns 'text', 'label'; needed are 'text', 'pair', 'label'"),
        ("a.jsonl", '{"text": 3, "pair": "b", "label": 0}', "line 1 has '3' where a text is expected"),
        ("a.jsonl", '{"text": "a", "pair": 0, "label": 0}', "line 1 has '0' where a text is expected"),
        ("a.jsonl", '{"text": [], "pair": "b", "label": 0}', "line 1 has '[]' where a text is expected"),
        ("a.jsonl", "[1]", "line 1 is not an object but '[1]'"),
        ("a.jsonl", "{", "line 1 is not valid JSON"),
        ("a.json", '{"text": "a"}', "does not contain a list of objects"),
        ("a.json", "[", "is not valid JSON"),
        ("a.json", f'[{{"label": {"9" * 21}}}]', "is not valid JSON (the number 99999999999999999999... is too large)"),
        ("a.json", '[{"label": 1e999}]', "is not valid JSON (the number 1e999 is too large)"),
        ("a.json", "[" * 99 + "]" * 99, "is not valid JSON (it is nested deeper than 64 levels)"),
        ("a.csv", 'text,pair,label\n"a,b,c\n', "line 2: unexpected end of data. Correct the table of comma-separated"),
        ("a.parquet", "PAR1 and no more", "is damaged or is not a Parquet file"),
    ],
)
def test_errors_name_their_place(name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name)
    assert says in str(caught.value) and str(tmp_path / name) in str(caught.value)


def test_long_cells_are_read_and_unclosed_ones_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, long = csv.field_size_limit(), "word " * 100_000
    (tmp_path / "a.csv").write_text(f'text,pair,label\n"{long}",b,yes\n')
    assert read(tmp_path / "a.csv") == [(long, "b", 1.0)]
    monkeypatch.setattr(records, "_MAX_CELL", 1000)
    with pytest.raises(DataError, match=r"a\.csv, line 2: a cell has more than 1,000 characters\. Close its quotation"):
        read(tmp_path / "a.csv")
    assert csv.field_size_limit() == before


@each_row(("name", "content"), [("a.jsonl", "{}"), ("a.json", "[{}]")])
def test_half_a_surrogate_pair_is_a_replacement_character(name: str, content: str, tmp_path: Path) -> None:
    row = json.dumps({"text": "a\ud83d", "pair": "\U0001f600", "label": "no"})
    (tmp_path / name).write_text(content.replace("{}", row))
    assert read(tmp_path / name) == [("a\ufffd", "\U0001f600", 0)]


def test_a_damaged_page_and_a_disk_error_are_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")
    import pyarrow.parquet

    rows = [{"text": f"text {number}", "pair": "b", "label": "no"} for number in range(3000)]
    file = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), file, compression="snappy", use_dictionary=False)
    whole = file.read_bytes()
    file.write_bytes(whole[:200] + bytes(200) + whole[400:])
    with pytest.raises(DataError, match=r"a\.parquet is damaged"):
        read(file)

    def fails(*arguments: object, **options: object) -> object:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", fails)
    with pytest.raises(OSError, match=r"Input/output error: .*a\.parquet"):
        read(file)


def test_bytes_that_are_no_utf8_and_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    table = "text\tpair\tlabel\né\tb\t0\n"
    for encoding, line, converted in (("latin-1", 2, "iconv -f WINDOWS-1252"), ("utf-16", 1, "iconv -f UTF-16")):
        (tmp_path / "a.tsv").write_bytes(table.encode(encoding))
        with pytest.raises(DataError, match=rf"a\.tsv is not UTF-8: .* in line {line}\. .*{converted} -t UTF-8"):
            read(tmp_path / "a.tsv")
    (tmp_path / "b.tsv").write_text(FILES["stsb"].replace("4.800", "nan"))
    with pytest.raises(DataError, match="line 2 has the label 'nan', which is not a number"):
        read(tmp_path / "b.tsv", glue("stsb"))


def test_a_folder_without_a_file_to_train_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"k: .*away does not exist"):
        find_files(tmp_path / "away", TextFiles(TEXTS), "k")
    (tmp_path / "dev.tsv").write_text("")
    with pytest.raises(RecipeError, match=r"has no file to train on: .* found: dev\.tsv"):
        find_files(tmp_path, TextFiles(TEXTS), "k")
    (tmp_path / "A.CSV").write_text("")
    with pytest.raises(RecipeError, match=r"A\.CSV is in none of the formats \.tsv, \.csv,"):
        find_files(tmp_path / "A.CSV", TextFiles(TEXTS), "k")
    for name in ("rte_train.json", "rte_dev.json"):  # of HuLU
        (tmp_path / name).write_text("")
    assert [file.name for file in find_files(tmp_path, TextFiles(TEXTS), "k").train] == ["rte_train.json"]


@each_row(
    ("train", "heldout"),
    [
        ("training.csv", "valid.csv"),
        ("train.csv", "val.csv"),
        ("Training-1.csv", "validation-1.csv"),
        ("rte_train.csv", "rte_valid.csv"),
        ("train-00000-of-00001.csv", "dev-00000-of-00001.csv"),
        ("wnut17train.csv", "wnut17dev.csv"),
    ],
)
def test_names_in_use_are_known(train: str, heldout: str, tmp_path: Path) -> None:
    for name in (train, heldout, "trainers.csv", "test.csv"):
        (tmp_path / name).write_text("")
    files = find_files(tmp_path, TextFiles(TEXTS), "k")
    assert [[file.name for file in each] for each in files] == [[train], [heldout], ["test.csv", "trainers.csv"]]


Made = Callable[..., Artifact]


@pytest.fixture
def build(tmp_path: Path, examples: Artifact) -> Made:
    """`build(rows, dev)`: the examples artifact of rows (text, pair, label), its vocabulary at `build.vocab`, and what
    was logged at `build.said`."""
    documents = made.text(60)
    vocab = made.vocabulary(tmp_path / "vocab", made.corpus(tmp_path / "corpus", [documents]))
    said: list[str] = []

    def make(
        rows: list[tuple[str, str, str]],
        dev: list[tuple[str, str, str]] = (),  # type: ignore[assignment]
        share: WorkSplit | None = None,
        **config: object,
    ) -> Artifact:
        folder = tmp_path / sha256_of([rows, list(dev)])[:8]
        folder.mkdir(exist_ok=True)
        for name, each in (("train", rows), ("dev", dev)):
            if each:
                lines = "".join("\t".join(row) + "\n" for row in each)
                (folder / f"{name}.tsv").write_text("text\tpair\tlabel\n" + lines, encoding="utf-8")
        data = ImportedData(0, folder, 16, MaskingConfig(), quarantine=False, files=TextFiles(TEXTS))
        settings = ExamplesConfig(**config)  # type: ignore[arg-type]
        context = StageContext(folder / "examples", made.Said(said), share=share)
        return stage.run(settings, (PlanSet(length=16),), Inputs(None, vocab, (data,)), context)

    make.vocab, make.said = vocab, said  # type: ignore[attr-defined]
    return make


def sentences(number: int, seed: int) -> list[str]:
    return [s for document in made.text(number, seed) for s in document]


def pairs(number: int, seed: int = 2) -> list[tuple[str, str, str]]:
    texts = sentences(number, seed)
    return [(a, b, ("no", "yes")[i % 2]) for i, (a, b) in enumerate(zip(texts, texts[::-1], strict=True))]


@pytest.mark.parametrize("length", [8, 9, 16, 64])
def test_sequences_are_those_of_transformers_tokenizer(build: Made, length: int) -> None:
    """Ids, segments and cut of `truncation=True`, as the Azure example and every fine-tuning of theirs has them."""
    transformers = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    rows = [*pairs(12), ("", "", "no"), ("ba", sentences(3, 5)[0], "yes"), (sentences(3, 5)[1], "ba", "yes")]
    rows += [("ba [SEP] di", "[MASK]ba", "no"), ("[CLS]", "[sep] [UNK]", "yes")]
    artifact, vocab = build(rows, pairs(2, 7)), build.vocab  # type: ignore[attr-defined]
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(vocab.file("tokenizer.json")))
    theirs.cls_token, theirs.sep_token = "[CLS]", "[SEP]"
    found, every = LabelledExamples.open(artifact, "train", length, vocab), Selection.of(np.arange(len(rows)))
    batch = found.batch(every)
    for number, (a, b, label) in enumerate(rows):
        lists = theirs([a], [b], truncation=True, max_length=length, return_token_type_ids=True)
        expected = {name: values[0] for name, values in lists.items()}
        inside = slice(*batch.cu_seqlens[number : number + 2])
        assert batch.token_ids[inside].tolist() == expected["input_ids"], (a, b)
        assert batch.segment_ids[inside].tolist() == expected["token_type_ids"]
        assert batch.position_ids[inside].tolist() == list(range(len(expected["input_ids"])))
        assert batch.sequence_labels[number] == ("no", "yes").index(label)
    assert batch.counts.predictions == 0 and (found.lengths(every) == np.diff(batch.cu_seqlens)).all()


def test_an_epoch_has_every_example_once_on_any_number_of_ranks(build: Made) -> None:
    artifact = build(pairs(12), pairs(2, 7))
    number = artifact.counts["train"]["examples"]
    settings = LoaderSettings(16, MaskingConfig(), number, MicroBatching(4), 1, "0")
    examples = LabelledExamples.open(artifact, "train", 16, build.vocab)  # type: ignore[attr-defined]
    loader = Loader(examples, settings)
    hashes = [sum(batch_hash(b) for r in range(ranks) for b in loader.step(0, r, ranks)) % 2**64 for ranks in (1, 2, 3)]
    assert len(set(hashes)) == 1 and examples.sizes == [number]
    whole = examples.batch(Selection.of(np.arange(number)))
    assert hashes[0] == batch_hash(whole)
    counts = [loader.counts(0, r, 2) for r in range(2)]
    assert sum(c.sequences for c in counts) == number and sum(c.tokens for c in counts) == whole.counts.tokens
    assert examples.mean_tokens == whole.counts.tokens / number
    assert sum(batch_hash(b) for b in loader.with_micro_batch(1).step(1)) % 2**64 == hashes[0], (
        "another order, the same examples"
    )
    held = list(Heldout.evenly(LabelledExamples.open(artifact, "heldout", 16), 5).batches(4))
    assert [b.counts.sequences for b in held] == [4, 1]


def test_of_several_processes_the_first_makes_them(build: Made, tmp_path: Path) -> None:
    with FolderLock(tmp_path, shared=True) as lock:
        with pytest.raises(
            StageIncomplete, match="rank 0 of 2 prepares the labelled texts; the other ranks do nothing here"
        ):
            build(pairs(40), share=WorkSplit(1, 2, lock))
        assert build(pairs(40), share=WorkSplit(0, 2, lock)).counts["train"]["examples"]


def test_an_array_that_is_cut_while_it_is_read_is_refused(build: Made) -> None:
    """Reading beyond its end would kill the process."""
    artifact = build(pairs(12), pairs(2, 7))
    settings = LoaderSettings(16, MaskingConfig(), 8, MicroBatching(4), 1, "0")
    loader = Loader(LabelledExamples.open(artifact, "train", 16), settings)
    loader.step(0)
    file = artifact.file("labelled/train.tokens")
    with file.open("r+b") as opened:
        opened.truncate(2)
    for read_it in (loader.step, loader.counts):
        with pytest.raises(ArtifactError, match=r"train\.tokens was truncated while it was read: it has 2 bytes"):
            read_it(1)


def test_without_a_file_for_it_a_share_is_held_out_by_the_texts_alone(build: Made) -> None:
    rows = pairs(40)
    artifact = build(rows, heldout=0.2)
    counts = artifact.counts
    assert counts["train"]["examples"] + counts["heldout"]["examples"] == len(rows)
    assert 0.1 < counts["heldout"]["examples"] / len(rows) < 0.3 and counts["heldout"]["repeated"] == 0
    assert sum(counts["train"]["classes"]) == counts["train"]["examples"] and counts["labels"] == ["no", "yes"]
    again = build(rows[::-1], heldout=0.2)
    one, other = (Counter(Labelled.open(a, "heldout").first.tolist()) for a in (artifact, again))
    assert one == other
    with pytest.raises(DataError, match=r"none of the texts fell into the share examples\.heldout=0\.0001"):
        build(pairs(2), heldout=0.0001)


def test_few_held_out_texts_are_warned_of(build: Made) -> None:
    build(pairs(40), heldout=0.2)
    build(pairs(40), pairs(9)[:49])
    build(pairs(40), pairs(60, 5)[:50])
    said = [line for line in build.said if "imprecise" in line]  # type: ignore[attr-defined]
    assert len(said) == 2 and said[0].endswith("will be imprecise; raise examples.heldout")
    assert said[1].startswith("examples: warning: scores on so few held-out texts (")
    assert said[1].endswith("will be imprecise; give more of them")


def test_repeated_held_out_texts_are_reported(build: Made) -> None:
    rows = pairs(12)
    assert build(rows, [*rows[:3], *pairs(2, 7)]).counts["heldout"]["repeated"] == 3
