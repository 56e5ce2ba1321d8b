"""Sets up a start of training: torch settings, the ranks, the output folder, and signal handling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch

from bertwright.core.distributed import rank_here
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.core.files import make_folder
from bertwright.core.log import Log
from bertwright.model.device import Products, resolve_device, torch_settings
from bertwright.train.checkpoints import checkpoint as checkpoints
from bertwright.train.config import TrainConfig
from bertwright.train.graph.config import AutoGraphConfig, EagerConfig
from bertwright.train.machine.stop_requests import StopRequests, watch_stop_requests
from bertwright.train.precision.config import AutoPrecisionConfig
from bertwright.train.ranks.agreement import assert_same_training
from bertwright.train.ranks.process_group import process_group
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.settings.identity import refuse_other_settings
from bertwright.train.setup.job import TrainJob
from bertwright.transfer.parts import CHECKPOINTS


@contextmanager
def training_environment(job: TrainJob, log: Log) -> Iterator[tuple[TrainJob, Ranks, StopRequests]]:
    """Yield the job with its precision and graph resolved, the ranks of this start and the external requests to it, for
    the duration of the block.

    Raises `ArtifactError` if the folder has checkpoints of other settings or other ranks train something else, and
    `Interrupted` if a signal arrived so late that training is finished.
    """
    config, out = job.config, job.out
    gpus = resolve_device(config.device).type == "cuda"
    with (
        process_group(config.start_timeout, config.timeout, config.hang_timeout, gpus) as ranks,
        watch_stop_requests(config.spot_notice, log) as requests,
    ):
        refuse_other_settings(out, job.checkpoint)
        if ranks.first:
            # Only rank 0 writes checkpoints, so only it cleans up.
            checkpoints.remove_partial(make_folder(out / CHECKPOINTS))
            if config.mirror:
                from bertwright.transfer.restore import restore

                with ranks.busy():  # the others wait in the all-reduce below, for hours if the network is slow
                    restore(job.mirrored_training(prune=False), log)
        # Ranks on machines with other files or recipes would draw other batches, and nothing later would notice.
        assert_same_training(ranks, job)
        if isinstance(config.precision, AutoPrecisionConfig):
            from bertwright.train.setup.choose_precision import resolve_precision

            job = resolve_precision(job, training_device(config.device), ranks, log)
        if isinstance(config.graph, AutoGraphConfig):
            job = _with_graph(job, gpus, ranks, log)
        # Not before the precision is known: in a process, oneDNN decides only once whether it keeps kernels.
        with torch_set_for(job.config):
            yield job, ranks, requests
        if ranks.any(requests.to_stop()):
            raise Interrupted("training is finished and saved. Run the same command again for the stages that follow.")


def _with_graph(job: TrainJob, gpu: bool, ranks: Ranks, log: Log) -> TrainJob:
    """Return the job with a graph in place of `auto`."""
    if not gpu:
        return replace(job, config=job.config.model_copy(update={"graph": EagerConfig()}))
    from bertwright.train.setup.choose_graph import resolve_graph

    return resolve_graph(job, ranks, log)


def training_device(wanted: Any) -> torch.device:
    """Return the device to train on, with a separate GPU for each rank of a machine; raise `RecipeError` if there are
    too few."""
    device = resolve_device(wanted)
    if device.type == "cpu":
        return device
    place, gpus = rank_here(), torch.cuda.device_count()
    if place >= gpus:
        raise RecipeError(
            f"rank {place + 1} of this machine has no GPU: torch finds {gpus}, but each rank needs its own. Start "
            f"{gpus} here (--nproc-per-node {gpus}), or set train.device=cpu."
        )
    torch.cuda.set_device(place)
    return torch.device("cuda", place)


def is_deterministic(config: TrainConfig) -> bool:
    """Whether results must be bit-reproducible: as the recipe says; `auto`: only on a CPU."""
    wanted = config.deterministic
    return resolve_device(config.device).type == "cpu" if wanted == "auto" else wanted


_PRODUCTS: Mapping[str, Products] = {"tf32": "high", "bf32": "medium"}
"""Precisions that round the factors of float32 matrix products."""


def torch_set_for(config: TrainConfig) -> AbstractContextManager[None]:
    """Return a context with the torch settings that a training needs."""
    # In low precision, batches are rounded up to a few shapes, so kernels that oneDNN compiles for a shape are reused.
    return torch_settings(
        0 if config.threads == "auto" else config.threads,
        keep_kernels=config.precision.kind not in ("fp32", "tf32"),
        deterministic=is_deterministic(config),
        products=_PRODUCTS.get(config.precision.kind, "highest"),
        spare_memory=config.checkpoint_activations,
    )
