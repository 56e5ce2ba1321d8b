"""OpenVINO reads every family and head as transformers computes it, from files that optimum-intel would find."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtimes.test_onnx import CLASSES, TEXTS, expected, published
from tests.unit.export.tiny import publish

from bertwright.core.files import make_folder
from bertwright.export.runtimes.openvino import OpenVino
from bertwright.export.runtimes.runtime import Published

openvino = pytest.importorskip("openvino", reason="openvino is not installed")

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-openvino.md"


def written(model: Published) -> Path:
    out, runtime = make_folder(model.folder / "openvino"), OpenVino()
    assert runtime.missing() == "" and runtime.refusal(model) == ""
    runtime.write(model, out)
    assert sorted(path.name for path in out.iterdir()) == ["openvino_model.bin", "openvino_model.xml"]
    return out


@pytest.mark.parametrize("name", CLASSES)
def test_every_head_has_the_numbers_of_transformers(tmp_path: Path, name: str) -> None:
    model, network = published(tmp_path, name)
    with OpenVino().open(model, written(model), 1) as reader:
        for text in TEXTS:
            ids, outputs = reader.ids(text), reader.run(text)
            for ours, theirs in expected(network, model.head, ids, outputs):
                assert ours.shape == theirs.shape and ours.dtype == np.float32
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_each_output_has_one_name(tmp_path: Path) -> None:
    model, _ = published(tmp_path, "BertForPreTraining")
    network = openvino.Core().read_model(written(model) / "openvino_model.xml")
    names = [{"logits"}, {"last_hidden_state"}, {"seq_relationship_logits"}]
    assert [output.names for output in network.outputs] == names


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = publish(make_folder(tmp_path / "wiki"), "bert")
    written(model)
    (code,) = re.findall(r"```python\n(.*?)\n```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {}
    exec(code, values)
    assert capsys.readouterr().out.startswith("(1, 32)")
    with OpenVino().open(model, tmp_path / "wiki" / "openvino", 1) as reader:
        assert values["ids"][0].tolist() == reader.ids("The mill by the river.")
        theirs = reader.run("The mill by the river.")["hidden"]
        # Where the processor has instructions for bfloat16, the page computes in it.
        np.testing.assert_allclose(values["found"]["last_hidden_state"][0], theirs, atol=0.1)
