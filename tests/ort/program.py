"""Two phases of twenty steps on what was prepared elsewhere, for one rank or several: OUT GRAPH [ENGINE [DROPOUT]]."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.stage_context import StageContext
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import LambConfig
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings

PREPARED = Path(__file__).parents[1] / "gpu" / "prepared"
PHASES = [
    {"length": 16, "batch": 16, "micro_batch": 4, "learning_rate": 1e-2, "steps": 20},
    {"length": 32, "batch": 8, "micro_batch": 2, "learning_rate": 5e-3, "steps": 20},
]
SETTINGS = {"heldout_sequences": 32, "checkpoint_every": 8, "evaluate_every": 10, "log_every": 1, "device": "cpu"}


def train(
    out: Path,
    graph: str,
    engine: str = "auto",
    dropout: str = "0",
    saved: Callable[[Path], None] = lambda _: None,
    **more: Any,
) -> Artifact:
    values = {"phases": PHASES, "attention": "padded", "graph": graph, "engine": engine, **SETTINGS, **more}
    model = BertModelConfig(size="tiny", max_positions=32, dropout=float(dropout), attention_dropout=float(dropout))
    inputs = Inputs(*(open_artifact(PREPARED / stage, stage) for stage in ("examples", "vocab")))
    settings = Settings(TrainConfig.model_validate(values), model, LambConfig())
    return run(settings, inputs, StageContext(out), saved=saved)


def rows(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    train(Path(sys.argv[1]), *sys.argv[2:])
