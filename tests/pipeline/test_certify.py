"""An export with other formats and a certificate; `bertwright certify`, and `bertwright convert` of a model."""

import json
import shutil
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright.export.runtimes.members import runtime_named

pytestmark = pytest.mark.heavy
NAMES = ("onnx", "static")
MISSING = [why for name in NAMES if (why := runtime_named(name).missing())]
FAULTLESS = ("reference", "agrees", "known", "refused")


@pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING))
def test_an_export_with_formats_and_a_certificate(
    finished: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each runtime that is installed would be asked; tests/runtimes and tests/unit/export ask all of them.
    few = tuple(map(runtime_named, ("transformers", *NAMES)))
    monkeypatch.setattr("bertwright.export.certify.run.RUNTIMES", few)
    monkeypatch.setattr("bertwright.export.certify.lines.LINES", 60)
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    done = call("export", run, 'export.formats=["onnx", "static"]', "export.certify=true")
    assert done.code == 0, done.err
    hf = run / "export" / "hf"
    manifest = json.loads((run / "export" / "manifest.json").read_text())
    assert {"hf/onnx/model.onnx", "hf/static/model.safetensors", "hf/certificate.json"} <= manifest["files"].keys()
    certificate = json.loads((hf / "certificate.json").read_text())
    rows = {row["runtime"]: row for row in certificate["rows"]}
    assert {"transformers", *NAMES} <= rows.keys() and "held-out sentences" in certificate["lines"]
    assert all(rows[name]["status"] in FAULTLESS for name in ("transformers", *NAMES)), rows
    card = (hf / "README.md").read_text(encoding="utf-8")
    assert "## In other programs" in card and "ONNX Runtime" in card
    assert call("report", run).code == 0
    assert "In other programs" in (run / "report.html").read_text(encoding="utf-8")
    # Made again from what the folder has; kept beside the sealed stages.
    done = call("certify", run, "--runtimes", "onnx", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) == json.loads((run / "certificate.json").read_text())
    assert call("inspect", run, "--verify").code == 0


@pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING))
def test_a_model_is_converted(finished: Path, call: Call, tmp_path: Path) -> None:
    hf = finished / "export" / "hf"
    done = call("convert", hf, tmp_path / "onnx", "--to", "onnx")
    assert done.code == 0, done.err
    assert [file.name for file in (tmp_path / "onnx").iterdir()] == ["model.onnx"]
    lines = tmp_path / "lines.txt"
    lines.write_text("A river flows.\n")
    for arguments, code, message in (
        (("convert", hf, tmp_path / "onnx", "--to", "onnx"), 2, "already exists"),
        (("convert", hf, tmp_path / "new", "--to", "transformers"), 2, "the published folder itself"),
        (("convert", hf, tmp_path / "new", "--to", "transformers.js"), 2, "--to onnx"),
        (("convert", hf, tmp_path / "new", "--to", "spacy"), 2, "tagger"),
        (("convert", hf, tmp_path / "new", "--to", "onnx", "--gzip"), 2, "--gzip"),
        (("convert", hf, tmp_path / "new", "--to", "abacus"), 2, "onnx-int8"),
        (("certify", hf, "--runtimes", "abacus"), 2, "no runtime 'abacus'"),
        (("certify", hf, "--lines", tmp_path / "none.txt"), 3, "none.txt"),
        (("certify", hf, "--lines", lines, "--out", lines), 2, "lines.txt is the file that is read"),
        (("certify", tmp_path), 2, "config.json"),
    ):
        done = call(*arguments)
        assert done.code == code and message in done.err, (arguments, done)
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob(".*"))
    assert lines.read_text() == "A river flows.\n"


def test_a_format_that_cannot_hold_the_network_is_refused_before_anything_starts(
    small_recipe: Path, call: Call, tmp_path: Path
) -> None:
    done = call("run", small_recipe, "--out", tmp_path / "run", 'export.formats=["spacy"]')
    assert done.code == 2 and "export.formats" in done.err and "spacy is for taggers of words" in done.err
    assert not (tmp_path / "run" / "corpus").exists()
