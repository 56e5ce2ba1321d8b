"""What the GPU tests train on is what the stages make today, and training on it needs few packages.

`BERTWRIGHT_WRITE_GOLDEN=1 pytest tests/golden/test_prepared.py` writes it anew.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.conftest import Prepared
from tests.rows import each_row

from bertwright.core.artifact import open_artifact

ROOT = Path(__file__).parents[2]
MADE = ROOT / "tests" / "gpu" / "prepared"
TRAINING = {"numpy", "pydantic", "safetensors", "torch", "fsspec"}
"""Training needs these; the last comes with torch."""


@each_row("stage", ["vocab", "examples"])
def test_it_is_what_the_stages_make(stage: str, prepared: Prepared) -> None:
    made = getattr(prepared, stage)
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        shutil.rmtree(MADE / stage, ignore_errors=True)
        shutil.copytree(made.path, MADE / stage)
    kept = open_artifact(MADE / stage, stage)
    kept.verify()
    assert kept.fingerprint == made.fingerprint
    # How a tokenizer is written down hangs on the version of its library, and training does not read it.
    files, expected = ({n: f for n, f in a.manifest["files"].items() if n != "tokenizer.json"} for a in (kept, made))
    assert files == expected


def test_training_on_it_needs_none_of_the_packages_that_the_stages_before_need(tmp_path: Path) -> None:
    """As on a machine with torch, numpy, pydantic and safetensors alone: the others are hidden."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[<>=]", line)[0] for line in needed}
    assert names >= TRAINING
    hidden = sorted((names - TRAINING) | {"transformers", "hypothesis"})
    code = f"""
import sys
sys.modules.update(dict.fromkeys({hidden}))
from pathlib import Path
import tests.gpu.test_optimizers, tests.gpu.test_training, tests.gpu.test_varlen
from bertwright.core.artifact import open_artifact
from tests.gpu.conftest import PREPARED
from tests.golden.training.settings import train
vocab, examples = (open_artifact(PREPARED / stage, stage) for stage in ("vocab", "examples"))
print(train("lamb-sequences", examples, vocab, Path({str(tmp_path / "out")!r})).counts["heldout"])
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0 and "mlm_loss" in ended.stdout, ended.stderr
