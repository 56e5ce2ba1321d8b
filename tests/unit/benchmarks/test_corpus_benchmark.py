"""The corpus benchmark's own parts: the plain steps of the original recipe, the grown dump, and the table."""

import bz2
import re
import sys
from pathlib import Path

import pytest

from bertwright.sample import SMALL

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import synthetic
from corpus import NVIDIA, Run, as_bz2, report
from cost import Cost, measured
from original import one_line_each, sentences

pytestmark = pytest.mark.heavy


def test_a_grown_dump_is_new_text_of_the_size_asked_for_every_time_the_same(tmp_path: Path) -> None:
    for name in ("a.xml", "b.xml.bz2"):
        synthetic.main(str(SMALL), str(tmp_path / name), "2")
    data = (tmp_path / "a.xml").read_bytes()
    assert bz2.decompress((tmp_path / "b.xml.bz2").read_bytes()) == data
    assert 2e6 < len(data) < 2.5e6 and data.endswith(b"</page>\n</mediawiki>\n")
    pages = re.findall(r"<page>.*?</page>", data.decode(), re.DOTALL)
    ids = [re.search(r"<id>(\d+)</id>", page)[1] for page in pages]  # type: ignore[index]
    original = len(re.findall(b"<page>", bz2.decompress(SMALL.read_bytes())))
    assert len(pages) >= 2 * original and len(set(ids)) == len(pages)
    long = [page.partition("<text")[2] for page in pages if len(page) > 3000]
    assert len(set(long)) == len(long) and pages[0] in bz2.decompress(SMALL.read_bytes()).decode()


def test_a_dump_is_packed_as_multistream_bz2(tmp_path: Path) -> None:
    data = bz2.decompress(SMALL.read_bytes())
    (tmp_path / "a.xml").write_bytes(data)
    packed = as_bz2(tmp_path / "a.xml", tmp_path)
    assert bz2.decompress(packed.read_bytes()) == data and packed.read_bytes().count(b"BZh91AY&SY") >= 2
    assert as_bz2(packed, tmp_path) == packed


def test_the_extractors_output_becomes_one_article_a_line_and_then_sentences(tmp_path: Path) -> None:
    (tmp_path / "wiki" / "AA").mkdir(parents=True)
    (tmp_path / "wiki" / "AA" / "wiki_00").write_text(
        '<doc id="1" url="u" title="One">\nOne\n\nFirst. Second one.\n\nThird.\n\n</doc>\n'
        '<doc id="2" url="u" title="Empty">\nEmpty\n\n</doc>\n'
    )
    one_line_each(str(tmp_path / "wiki"), str(tmp_path / "articles"))
    assert (tmp_path / "articles").read_text() == "First. Second one. Third.\n"
    sentences(str(tmp_path / "articles"), str(tmp_path / "sentences"))
    assert (tmp_path / "sentences").read_text() == "First.\nSecond one.\nThird.\n\n"


def test_the_cost_of_a_program_counts_its_children_and_a_failure_stops() -> None:
    work = "sum(range(30_000_000))"
    alone = measured([sys.executable, "-c", work], cores=1)
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}], check=True)"
    assert measured([sys.executable, "-c", child], cores=1).cpu > 0.5 * alone.cpu > 0
    with pytest.raises(SystemExit, match="no good"):
        measured([sys.executable, "-c", "raise SystemExit('no good')"], cores=1)


def test_the_table_says_what_is_missing() -> None:
    one = Run(Cost(2, 3), 10.0, {"corpus": 2.0, "vocab": 1.0, "examples": 0.5})
    two = Run(Cost(2.1, 1.9), 10.0, {"corpus": 1.0, "vocab": 1.0, "examples": 0.3})
    said = report("d", {"a": Cost(8, 9)}, one, two)
    assert f"takes 8.0 s, without {NVIDIA}, which did not run (--nvidia): 4.0 times ours" in said
    assert "4.00 MB of XML a second" in said and "1.92 times the speed of one" in said
    said = report("d", {"a": Cost(8, 9), f"{NVIDIA}, 128 tokens": Cost(4, 4)}, one, two)
    assert "takes 12.0 s: 6.0 times ours" in said
    assert "original" not in report("d", {}, one, two)
