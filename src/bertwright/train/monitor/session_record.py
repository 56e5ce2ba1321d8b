"""What training records about itself: one entry per start of the program, and the manifest's counts."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bertwright.core.artifact import Artifact
from bertwright.model.config import Kernel, NetworkConfig
from bertwright.model.family import to_json
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import resolve_engine
from bertwright.train.machine.cpu_isa import in_use
from bertwright.train.machine.thread_policy import POLICY, free_cores
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.phases import Phase
from bertwright.train.shapes import NETWORK
from bertwright.train.state import State


def session_record(
    state: State, device: torch.device, kernel: Kernel, ranks: Ranks, config: TrainConfig, phases: Sequence[Phase]
) -> dict[str, Any]:
    """Describe this start of the program: its first step, and everything bit-identity depends on besides the
    settings."""
    return {
        "from_step": state.total_steps,
        "ranks": ranks.world,
        # Threads, micro-batches, kernel, device and torch change the order of summation, so they bound bit-identity.
        "threads": torch.get_num_threads(),
        # What `auto` was chosen by; later starts keep the number of threads.
        **({"free_cores": round(free_cores(), 2)} if config.threads == "auto" and not state.sessions else {}),
        "waiting": os.environ.get(POLICY, "default").lower(),
        "micro_batches": [micro_batching_of(phase) for phase in phases],
        "attention": kernel,
        "engine": resolve_engine(config.engine, ranks.world).kind,
        "graph": config.graph.kind,
        "precision": config.precision.kind,
        "weights": getattr(config.precision, "weights", "fp32"),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "device": str(device) if device.type == "cpu" else f"{device} {torch.cuda.get_device_name(device)}",
        # Not reproducible by a second run: learning rates that follow the time steps took.
        **({"hours": [phase.hours for phase in config.phases]} if any(phase.hours for phase in config.phases) else {}),
        "isa": in_use(),
        "machine": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "torch": str(torch.__version__),
    }


def micro_batching_of(phase: Phase) -> dict[str, Any]:
    """Describe how a phase's steps are divided into micro-batches; `found` marks an automatic size."""
    return {**asdict(phase.loader.settings.micro_batching), **({"found": True} if phase.finds_micro_batch else {})}


def training_summary(state: State) -> str:
    """Say what training took over all starts: sequences, seconds and their rate, as other programs print them."""
    rate, seconds = state.sequences_seen / max(state.seconds, 1e-9), state.seconds
    return (
        f"{state.sequences_seen:,} sequences in {seconds:,.1f} s of training ({rate:,.1f} sequences/s, "
        f"{state.total_steps / max(seconds, 1e-9):,.2f} steps/s), without scoring and saving"
    )


def counts(
    state: State, network: NetworkConfig, vocab: Artifact, weights: str, init: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the manifest's counts. `weights` is the hash over the files of the finished model; `init` has `folder` and
    `fingerprint` of what training started from, with `folder` None for random weights."""
    return {
        "parameters": network.parameters,
        # The names that all families share, in addition to the family's own.
        "network": {**to_json(network), **{name: getattr(network, name) for name in NETWORK}},
        "init": _init(state, init) if init["folder"] is not None else None,
        "steps": state.total_steps,
        "sequences_seen": state.sequences_seen,
        "tokens_seen": state.tokens_seen,
        "tflops_done": round(state.flops / 1e12, 6),
        "hours": round(state.hours, 6),
        "train_seconds": round(state.seconds, 3),
        "tokens_per_second": round(state.tokens_seen / max(state.seconds, 1e-9), 1),
        "heldout": dict(state.heldout),
        "extensions": [dict(extension) for extension in state.extensions],
        "left_out": [dict(entry) for entry in state.left_out],
        "phase_steps": list(state.phase_steps),
        "phase_ends": list(state.ends),
        "sessions": [dict(entry) for entry in state.sessions],
        "vocabulary": vocab.counts["vocabulary"],
        "weights": weights,
        "peak_memory_bytes": peak_memory(),
        **{key: state.sessions[-1][key] for key in ("device", "ranks", "threads", "torch")},
    }


def _init(state: State, init: Mapping[str, Any]) -> dict[str, str]:
    """Describe what training started from, with the parts that were drawn or unused at its first start."""
    parts = state.sessions[0].get("init", {}) if state.sessions else {}
    return {**{name: str(value) for name, value in init.items()}, **parts}


def peak_memory() -> int:
    """Return the peak resident set size of this process, in bytes.

    Linux reports it for the process's own memory; elsewhere the number may include the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.is_file() and (match := re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)):
        return int(match[1]) * 1024
    # macOS counts in bytes, other systems in kilobytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
