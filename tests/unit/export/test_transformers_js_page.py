"""The page of the guide runs in a browser, with a model and programs of its own folder."""

import json
import os
import queue
import re
import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.processes import PATIENCE
from tests.server import listening
from tests.unit.export.test_transformers_js import MODULES, ROOT, write
from tests.unit.export.tiny import publish

from bertwright.core.subprocess_group import subprocess_group

pytestmark = pytest.mark.heavy
pytest.importorskip("onnx", reason="pip install 'bertwright[onnx]'")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
FILES = (
    "@huggingface/transformers/dist/transformers.min.js",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm",
)
REPORT = """<script>
const send = (text) => fetch("/done", { method: "POST", body: text });
addEventListener("error", (event) => send("error: " + event.message));
addEventListener("unhandledrejection", (event) => send("error: " + event.reason));
new MutationObserver(() => document.scripts.length || send(document.body.textContent))
  .observe(document, { childList: true, subtree: true });
</script>
"""
"""Sends what the page shows."""


class Folder(SimpleHTTPRequestHandler):
    """Serves a folder as `python -m http.server` does, and keeps what is sent to it."""

    def __init__(self, sent: queue.Queue[str], *args: Any, **more: Any) -> None:
        self.sent = sent
        super().__init__(*args, **more)

    def do_POST(self) -> None:
        self.sent.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@pytest.mark.skipif(not MODULES.is_dir(), reason="transformers.js is not installed: make setup does")
def test_the_page_shows_what_transformers_computes(tmp_path: Path) -> None:
    assert BROWSER
    model = publish(tmp_path / "site" / "wiki", "bert", "ForMaskedLM")
    write(model)
    site = tmp_path / "site"
    for file in FILES:
        os.symlink(MODULES / file, site / Path(file).name)
    guide = (ROOT / "docs" / "how-to" / "run-in-transformers-js.md").read_text(encoding="utf-8")
    (page,) = re.findall(r"```html\n(.*?)```", guide, re.DOTALL)
    (site / "index.html").write_text(page.replace("<body>", f"<body>{REPORT}"), encoding="utf-8")
    sent = queue.Queue[str]()
    with (
        listening(partial(Folder, sent, directory=str(site))) as address,
        subprocess_group(
            [BROWSER, *QUIET, f"--user-data-dir={tmp_path / 'user'}", f"{address}/index.html"],
            0,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ),
    ):
        shown = sent.get(timeout=PATIENCE)
    assert not shown.startswith("error"), shown
    filled, (vector,) = json.loads(shown)
    best = transformers.pipeline("fill-mask", str(model.folder))("The [MASK] by the river.")
    assert [each["token"] for each in filled] == [each["token"] for each in best]
    np.testing.assert_allclose([each["score"] for each in filled], [each["score"] for each in best], atol=1e-5)
    network = transformers.AutoModelForMaskedLM.from_pretrained(model.folder).eval()
    ids = transformers.AutoTokenizer.from_pretrained(model.folder)("The mill.", return_tensors="pt").input_ids
    with torch.inference_mode():
        hidden_TH = network(ids, output_hidden_states=True).hidden_states[-1][0]
    np.testing.assert_allclose(vector, hidden_TH.mean(0), atol=1e-4)
