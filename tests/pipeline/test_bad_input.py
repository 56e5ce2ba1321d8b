"""Any invalid input gives one clear error with a remedy, an exit code, and no output that looks finished."""

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES
from tests.pipeline.conftest import Call
from tests.rows import each_row

from bertwright.sample import SMALL as SAMPLE

XML = bz2.decompress(SAMPLE.read_bytes())
PAGES = XML.index(b"<page>")
HTML = b"<!DOCTYPE html>\n<html><head><title>503 Service Unavailable</title></head></html>\n"
LATIN = "Az árvíztűrő tükörfúrógép nagyon hosszú mondat.\n\n".encode("iso-8859-2") * 50
CUT_IN_HEADER = bz2.compress(XML)[:300]


def in_streams(compress: Callable[[bytes], bytes]) -> bytes:
    """The sample in many small streams, so that a truncated file still yields what precedes the cut."""
    return b"".join(compress(XML[i : i + 20_000]) for i in range(0, len(XML), 20_000))


SOURCES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("wiki.xml.bz2", b"", "is empty (0 bytes). Download it again"),
    "HTML saved as bz2": ("wiki.xml.bz2", HTML, "is not a bz2 file but an HTML page: the download failed"),
    "HTML saved as xz": ("wiki.xml.xz", HTML, "is not a xz file but an HTML page: the download failed"),
    "HTML saved as xml": ("wiki.xml", HTML, "is an HTML page, not a dump"),
    "HTML inside bz2": ("wiki.xml.bz2", bz2.compress(HTML), "is an HTML page, not a dump"),
    "bz2 cut in its first block": ("wiki.xml.bz2", CUT_IN_HEADER, "truncated in its first block. Download it again"),
    "bz2 cut before a whole page": ("wiki.xml.bz2", bz2.compress(XML[: PAGES + 200]), "contains no complete page"),
    "xz cut in its first block": (
        "wiki.xml.xz",
        lzma.compress(XML)[:30],
        "truncated in its first block. Download it again",
    ),
    "xz cut before a whole page": ("wiki.xml.xz", lzma.compress(XML[: PAGES + 200]), "contains no complete page"),
    "bz2 damaged in its middle": ("wiki.xml.bz2", bytes(SAMPLE.read_bytes()[:20_000]) + b"\0" * 20_000, "is damaged"),
    "text in ISO-8859-2": ("text.txt", LATIN, "is not valid UTF-8 at byte"),
    "dump in ISO-8859-2": ("wiki.xml", XML[: PAGES + 900] + LATIN + XML[PAGES + 900 :], "is not valid UTF-8 at byte"),
    "binary": ("text.txt", b"\0\1\2\3" * 100, "is not text: byte 0 is zero"),
    "zip": ("wiki.xml.zip", b"PK\x03\x04" + b"\0" * 40, "is a zip file; plain, bz2, gz, xz and zstd can be read"),
    "gz cut in its first block": (
        "wiki.xml.gz",
        gzip.compress(XML)[:30],
        "truncated in its first block. Download it again",
    ),
    "a line that is no JSON": ("a.jsonl", b'{"text": "x"}\n{"text": \n', "line 2 is not JSON"),
    "JSON without its key": ("a.jsonl", b'{"body": "x"}\n', "line 1 has no key 'text'; its keys are 'body'"),
    "Parquet without its end": ("a.parquet", b"PAR1" + b"\0" * 90, "is damaged or truncated"),
    "another XML": ("wiki.xml", b"<?xml version='1.0'?>\n<rss><channel/></rss>\n", "its root element is <rss>"),
    "nothing but blanks": ("text.txt", b"  \n\n \n", "Download it again"),
}


@each_row("name", SOURCES)
def test_a_source_that_cannot_be_used(name: str, tmp_path: Path, call: Call, small_recipe: Path) -> None:
    file, data, says = SOURCES[name]
    (tmp_path / file).write_bytes(data)
    refused(call, 3, says, tmp_path / "out", small_recipe, f"corpus.source={tmp_path / file}")


def refused(call: Call, code: int, says: str, out: Path, recipe: Path, *overrides: str) -> str:
    """Assert one error containing `says`, the exit code, and that no stage looks finished; returns the error."""
    done = call("run", recipe, *overrides, "--out", out)
    error = next(line for line in done.err.splitlines() if line.startswith("bertwright: "))
    assert done.code == code, done.err
    assert says in done.err, done.err
    assert "Traceback" not in done.err and done.out == "" and len(error) < 700
    made = {path.name for path in out.iterdir()} if out.is_dir() else set()
    assert made <= {".lock", "recipe.toml", "forecast.json", "log.jsonl"}, "nothing half-written is left"
    return done.err


def test_a_missing_source_and_an_empty_folder(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    missing = tmp_path / "nowhere.xml.bz2"
    says = f"cannot read {missing}: No such file or directory. Set corpus.source to the path"
    refused(call, 3, says, tmp_path / "out", small_recipe, f"corpus.source={missing}")
    (tmp_path / "empty").mkdir()
    refused(call, 3, "there is no file in", tmp_path / "out", small_recipe, f"corpus.source={tmp_path / 'empty'}")
    pattern = f"corpus.source={tmp_path}/*.bz2"
    refused(call, 3, "no file matches", tmp_path / "out", small_recipe, pattern)


def test_a_source_in_another_language(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    overrides = ("corpus.language=hy", "corpus.filter.languages=[]")
    said = "says that its language is 'hu', but corpus.language is 'hy', and its first articles are in 'hu'"
    error = refused(call, 2, said, tmp_path / "out", small_recipe, *overrides)
    assert "Set corpus.language=hu, or, to keep both languages" in error


CUT = {
    "wiki.xml.bz2": bz2.compress(XML[: len(XML) // 2], 1)[:-20],
    "wiki-multistream.xml.bz2": in_streams(bz2.compress)[:40_000],
    "wiki.xml.xz": in_streams(lzma.compress)[:40_000],
}


@each_row("name", CUT)
def test_a_dump_cut_after_some_pages_keeps_them_and_says_what_is_lost(
    name: str, tmp_path: Path, call: Call, small_recipe: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(CUT[name])
    done = call("corpus", small_recipe, f"corpus.source={path}", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert f"corpus: {path.name} ends after" in done.err
    counts = json.loads((tmp_path / "out" / "corpus" / "manifest.json").read_text())["counts"]
    assert 10 < counts["pages"] < XML.count(b"<page>")
    assert counts["sources"][0]["cut"]["after"] in done.err


def test_a_run_folder_that_cannot_be_written(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    (tmp_path / "file").write_text("a regular file")
    says = "Choose a folder you may write to (--out DIR)"
    error = refused(call, 3, says, tmp_path / "file" / "run", small_recipe)
    assert f"cannot write {tmp_path / 'file' / 'run'}" in error
    refused(call, 3, says, tmp_path / "file", small_recipe)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_run_folder_without_permission(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(call, 3, "cannot write", tmp_path / "locked" / "run", small_recipe)


SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz")]
GREEK = [*"αβγδεζηθικλμνξοπρστυφχψω", *(f"##{c}" for c in "αβγδεζηθικλμνξοπρστυφχψω")]
VOCABULARIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 3, "is empty. A vocab.txt has one entry per line"),
    "a double entry": ("\n".join([*SPECIALS, "a", "b", "a"]).encode(), 3, "line 8: 'a' is on line 6 already"),
    "an empty line": ("\n".join([*SPECIALS, "", "b"]).encode(), 3, "line 6: empty entry"),
    "no special entries": ("\n".join(LETTERS).encode(), 3, "lacks [PAD], [UNK], [CLS], [SEP], [MASK]"),
    "not UTF-8": ("\n".join([*SPECIALS, "ő"]).encode("iso-8859-2"), 2, "is not UTF-8"),
    "another language": ("\n".join(SPECIALS + GREEK).encode(), 2, "does not fit this corpus"),
    "without accents": ("\n".join(SPECIALS + LETTERS).encode(), 2, "vocab.lower_case=true, vocab.strip_accents=true"),
    "accents stripped": ("\n".join([*SPECIALS, *LETTERS, *"áéíóöőúüű"]).encode(), 2, "could never occur"),
}


@each_row("name", VOCABULARIES)
def test_a_vocabulary_that_does_not_belong(
    name: str, tmp_path: Path, call: Call, small_recipe: Path, small_examples: Callable[[Path], Path]
) -> None:
    data, code, says = VOCABULARIES[name]
    path, out = tmp_path / "vocab.txt", tmp_path / "out"
    path.write_bytes(data)
    recipe = tmp_path / "given.toml"
    recipe.write_text(small_recipe.read_text().replace("size = 400", f"file = {json.dumps(str(path))}"))
    strip = ["vocab.lower_case=true", "vocab.strip_accents=true"] if name == "accents stripped" else []
    done = call("run", recipe, *strip, "--out", out)
    assert done.code == code, done.err
    assert says in done.err and str(path) in done.err and "Traceback" not in done.err
    # Whether the words of the corpus are known can only be seen once it is made; all else is seen before any work.
    of_corpus = name in ("another language", "without accents")
    assert not (out / "vocab").exists() and (out / "corpus").exists() == of_corpus
    assert call("run", recipe, *strip, "--out", out).code == code, "nor is it finished the second time"


def test_a_missing_vocabulary_and_a_network_too_small_for_it(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    recipe = tmp_path / "given.toml"
    recipe.write_text(small_recipe.read_text().replace("size = 400", 'file = "nowhere.txt"'))
    refused(call, 2, "vocab.file: nowhere.txt cannot be read", tmp_path / "out", recipe)
    refused(call, 2, "but the vocabulary has 401 entries", tmp_path / "out", small_recipe, "vocab.size=401")


RECIPE_MISTAKES: dict[str, tuple[str, str, str]] = {
    "a mistyped key": ("language =", "langauge =", "small.toml:4: corpus.langauge: unknown key 'langauge'; did you"),
    "a mistyped section": ("[examples]", "[exmaples]", "exmaples: unknown key 'exmaples'; did you mean 'examples'?"),
    "a value of the wrong kind": ("passes = 1", "passes = 'x'", "examples.passes: must be a whole number; got 'x'"),
    "a value out of range": (
        "heldout = 0.2",
        "heldout = 2",
        "examples.heldout: 2 must be below 1: it is a share, 0.02 for 2 %",
    ),
    "a choice that is none": (
        '"poly"',
        '"pol"',
        "schedule: 'pol' is not one of 'linear', 'poly', 'poly_nvidia', 'constant', 'cosine', 'wsd'; did you "
        "mean 'poly'?",
    ),
    "a missing section": ("[model]", "[report]", "model: this key is required"),
    "not TOML": ("[vocab]", "[vocab", "not valid TOML"),
    "two lengths": ("steps = 12", "steps = 12\nepochs = 1", "give exactly one of steps, epochs, samples, tokens"),
    "a phase beyond the positions": ("length = 32", "length = 64", "longer than the model's 32 positions"),
    "micro-batch and batch": ("micro_batch = 2", "micro_batch = 9", "micro_batch 9 is larger than the global batch 4"),
}


@each_row("name", RECIPE_MISTAKES)
@each_row("verb", ["check", "run"])
def test_a_mistake_in_the_recipe_is_found_before_any_work(
    name: str, verb: str, tmp_path: Path, call: Call, small_recipe: Path
) -> None:
    right, wrong, says = RECIPE_MISTAKES[name]
    recipe = tmp_path / "small.toml"
    recipe.write_text(small_recipe.read_text().replace(right, wrong, 1))
    out = ["--out", tmp_path / "out"] if verb == "run" else []
    done = call(verb, recipe, *out)
    assert (done.code, done.out) == (2, "")
    assert says in done.err and str(recipe) in done.err and "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def test_all_mistakes_are_shown_at_once(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    recipe = tmp_path / "small.toml"
    text = small_recipe.read_text()
    for name in ("a mistyped key", "a value of the wrong kind", "a choice that is none"):
        right, wrong, _ = RECIPE_MISTAKES[name]
        text = text.replace(right, wrong, 1)
    recipe.write_text(text)
    done = call("check", recipe, "train.sed=1")
    says = [RECIPE_MISTAKES[n][2] for n in ("a mistyped key", "a value of the wrong kind", "a choice that is none")]
    for part in [*says, "command line: train.sed: unknown key 'sed'; did you mean 'seed'?"]:
        assert part in done.err


def test_a_recipe_that_is_not_there(tmp_path: Path, call: Call) -> None:
    done = call("run", tmp_path / "nowhere.toml", "--out", tmp_path / "out")
    assert done.code == 2 and "cannot read the recipe" in done.err and not (tmp_path / "out").exists()


def test_where_the_share_takes_no_document_one_is_held_out(tmp_path: Path, call: Call, small_recipe: Path) -> None:
    done = call("run", small_recipe, "examples.heldout=0.0001", "--until", "examples", "--out", tmp_path / "out")
    assert done.code == 0
    assert "scores on so few held-out documents (1) will be imprecise; raise examples.heldout" in done.err


def test_every_override_path_is_checked(call: Call) -> None:
    done = call("check", RECIPES / "smoke.toml", "train.phases.7.steps=3")
    assert done.code == 2 and "there is no element '7' in a list of 2" in done.err
