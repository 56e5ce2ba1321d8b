"""From a dump to a model on several processes throughout, with the commands of docs/how-to/scale.md: corpus and
examples on a Dask cluster of two workers, training on two ranks, all in one shared folder."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, ROOT
from tests.pipeline.test_lost_ranks import free_port
from tests.unit.cluster import cluster

from bertwright.core.artifact import open_artifact

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'bertwright[dask]'")
GUIDE = (ROOT / "docs" / "how-to" / "scale.md").read_text(encoding="utf-8")


def printed(beginning: str) -> list[str]:
    """The arguments of the guide's only command that begins like this."""
    (line,) = re.findall(rf"^{re.escape(beginning)}.*$", GUIDE, re.MULTILINE)
    return shlex.split(line)[1:]


def done(words: Sequence[object]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    ended = subprocess.run([*map(str, words)], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.slow
def test_a_dump_becomes_a_model_by_one_command_a_stage(small_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "run"
    shared = {"recipes/hu-mini.toml": small_recipe, "recipes/smoke.toml": small_recipe, "/shared/runs/hu": folder}
    with cluster(1, 1) as address:
        places = {**shared, "tcp://10.0.0.1:8786": address}
        for stage in ("corpus", "vocab", "examples"):
            words = printed(f"bertwright {stage} recipes/hu-mini.toml --out /shared")
            done([sys.executable, "-m", "bertwright.cli", *(places.get(word, word) for word in words)])
    words = printed("torchrun --nproc-per-node 2 -m bertwright.cli train recipes/smoke.toml train.engine=zero")
    command = ({**shared, "runs/zero": folder}.get(word, word) for word in words)
    done([sys.executable, "-m", "torch.distributed.run", "--master-port", free_port(), *command])
    counts = open_artifact(folder / "train", "train").counts
    assert counts["ranks"] == 2 and [start["engine"] for start in counts["sessions"]] == ["zero"]
    assert json.loads((folder / "examples" / "manifest.json").read_text())["stage"] == "examples"
