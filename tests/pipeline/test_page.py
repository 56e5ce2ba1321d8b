"""A model as a page: `bertwright convert --to page` and `bertwright export --page`."""

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Call

pytestmark = pytest.mark.heavy
pytest.importorskip("onnx", reason="pip install 'bertwright[onnx]'")


def about(page: Path) -> Any:
    """What a page knows of its model."""
    (part,) = re.findall(r'id="about">(.*?)</script>', page.read_text(encoding="utf-8"))
    return json.loads(gzip.decompress(base64.b64decode(part)))


def test_a_run_is_converted_and_exported_as_a_page(finished: Path, call: Call, tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "wiki.html"
    shutil.copytree(finished, run)
    done = call("convert", run, page, "--to", "page", "--json")
    assert done.code == 0, done.err
    note = json.loads(done.out)
    assert note == {"to": "page", "architecture": "BertForMaskedLM", "bytes": page.stat().st_size}
    assert re.search(r"page: .*wiki\.html has \d\.\d+ MB and runs in any browser, without a network", done.err)
    row = about(page)["row"]
    assert row["language"] == "hu" and row["title"] == "run" and row["examples"] == []

    for _ in range(2):  # the second one takes the place of the first
        done = call("export", run, "--page", "--json")
        assert done.code == 0, done.err
        written = json.loads(done.out)
        assert written["page"] == str(run / "page.html") and written["bytes"] == (run / "page.html").stat().st_size
    assert about(run / "page.html") == about(page)
    assert call("export", run, "--page").out.strip().endswith("page.html")
    assert call("inspect", run, "--verify").code == 0


def test_a_folder_is_converted_to_a_page(finished: Path, call: Call, tmp_path: Path) -> None:
    hf = Path(shutil.copytree(finished / "export" / "hf", tmp_path / "wiki"))
    assert call("convert", hf, tmp_path / "wiki.html", "--to", "page").code == 0
    assert about(tmp_path / "wiki.html")["row"]["title"] == "wiki"
    for arguments, code, message in (
        ((hf, tmp_path / "wiki.html", "--to", "page"), 2, "already exists"),
        ((hf, tmp_path / "wiki", "--to", "page"), 2, "by which a browser knows a page. Give wiki.html"),
        ((hf, tmp_path / "new.html", "--to", "page", "--gzip"), 2, "--gzip"),
        ((hf, tmp_path / "new.html", "--to", "abacus"), 2, "spacy, page"),
        ((tmp_path / "none", tmp_path / "new.html", "--to", "page"), 2, "not a folder"),
        ((hf, tmp_path / "no folder" / "new.html", "--to", "page"), 3, "no folder"),
    ):
        done = call("convert", *arguments)
        assert done.code == code and message in done.err, (arguments, done)
    assert not (tmp_path / "new.html").exists()
