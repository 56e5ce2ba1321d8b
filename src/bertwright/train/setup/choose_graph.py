"""Resolves `train.graph = auto` at a start of training on a GPU, the same on all ranks.

A resumed run keeps the graph of its last start on the same kind of device: another one would add in another order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertwright.core.log import Log
from bertwright.train.checkpoints.checkpoint import newest_state
from bertwright.train.graph.config import CompiledConfig, EagerConfig
from bertwright.train.graph.packages import WORTH, missing_compiler, unsupported_when_compiled
from bertwright.train.ranks.agreement import text_of
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.job import TrainJob
from bertwright.train.state import State
from bertwright.transfer.parts import CHECKPOINTS

_HOURS = 0.1
"""Hours of a phase from which compiling pays off."""


def resolve_graph(job: TrainJob, ranks: Ranks, log: Log) -> TrainJob:
    """Return the job with a graph for a GPU in place of `auto`, and log which and why. All ranks must call this
    together."""
    own = missing_compiler("cuda")
    missing = own or ("a compiler on every machine" if ranks.any(bool(own)) else "")
    text = ""
    if ranks.first:
        kind, reason = _choose(job, missing)
        log.say(f"train: graph {kind}: {reason}")
        text = json.dumps([kind, reason])
    kind, reason = json.loads(text_of(ranks, text))
    graph = CompiledConfig() if kind == "compiled" else EagerConfig()
    return replace(
        job,
        config=job.config.model_copy(update={"graph": graph}),
        choices={**job.choices, "graph_reason": reason},
        fills_rows=True,
    )


def _choose(job: TrainJob, missing: str) -> tuple[str, str]:
    """Return the graph and the reason for it; `missing`: what compiling needs and is not installed."""
    state = newest_state(job.out / CHECKPOINTS) or State()
    if state.sessions and (kept := _kept(state.sessions[-1])):
        return kept, "as at the last start"
    if reason := unsupported_when_compiled(job.config):
        return "eager", reason
    if any(phase.loader.examples.most_sequences > 1 for phase in job.phases):
        return "eager", "an example of this task is several sequences"
    if missing:
        return "eager", f"compiling needs {missing}, which would make training faster"
    phases = job.phases[state.phase :]
    if not any(phase.budget >= 3600 * _HOURS for phase in phases) and sum(map(job.flops_of, phases)) < WORTH:
        return "eager", "training is too short to gain what compiling takes (train.graph=compiled)"
    return "compiled", "in full rows, layer by layer (train.graph=eager to run the network as it is written)"


def _kept(last: Mapping[str, Any]) -> str:
    """Return the graph of the last start; "" if that was on a CPU, or by ONNX Runtime."""
    graph = str(last.get("graph", ""))
    return graph if graph in ("eager", "compiled") and not last["device"].startswith("cpu") else ""
