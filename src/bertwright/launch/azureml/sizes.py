"""Azure VM sizes: the number of GPUs of each, whether it has InfiniBand, and what replaces retired sizes.

Sources: learn.microsoft.com, azure/virtual-machines/sizes/gpu-accelerated and azure/virtual-machines/sizes/retired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bertwright.core.errors import RecipeError
from bertwright.core.validation_messages import nearest


@dataclass(frozen=True)
class Size:
    """The properties of a virtual machine that matter for ranks."""

    gpus: int
    """Number of GPUs; each gets one rank."""
    infiniband: bool = False
    """Whether InfiniBand connects machines of this size."""


GPU_SIZES = {
    "Standard_NC4as_T4_v3": Size(1),
    "Standard_NC8as_T4_v3": Size(1),
    "Standard_NC16as_T4_v3": Size(1),
    "Standard_NC64as_T4_v3": Size(4),
    "Standard_NV36ads_A10_v5": Size(1),
    "Standard_NV72ads_A10_v5": Size(2),
    "Standard_NC24ads_A100_v4": Size(1),
    "Standard_NC48ads_A100_v4": Size(2),
    "Standard_NC96ads_A100_v4": Size(4),
    "Standard_NC40ads_H100_v5": Size(1),
    "Standard_NC80adis_H100_v5": Size(2),
    "Standard_ND96asr_v4": Size(8, infiniband=True),
    "Standard_ND96amsr_A100_v4": Size(8, infiniband=True),
    "Standard_ND96isr_H100_v5": Size(8, infiniband=True),
    "Standard_ND96isr_H200_v5": Size(8, infiniband=True),
}
RETIRED = {
    "Standard_NC6s_v3": "Standard_NC24ads_A100_v4",
    "Standard_NC12s_v3": "Standard_NC48ads_A100_v4",
    "Standard_NC24s_v3": "Standard_NC96ads_A100_v4",
    "Standard_NC24rs_v3": "Standard_NC96ads_A100_v4",
    "Standard_ND40rs_v2": "Standard_ND96asr_v4",
    "Standard_ND40s_v2": "Standard_ND96asr_v4",
}
"""Sizes that can no longer be rented, each with a current one that has the same number of GPUs."""
_OLD = re.compile(r"Standard_(NC\d+r?|NC\d+r?s_v2|ND\d+r?s|NV\d+)(_Promo)?")
_FORM = re.compile(r"Standard_[A-Z]{1,3}\d+[a-z0-9-]*(_[A-Za-z0-9]+)*")


def check_size(name: str) -> str:
    """Return the size's name as Azure writes it; raise `ValueError` for a retired or malformed one."""
    known = {size.lower(): size for size in (*GPU_SIZES, *RETIRED)}
    size = known.get(name.lower(), name)
    if size in RETIRED:
        raise ValueError(f"{size} is retired; {RETIRED[size]} is a current size with the same number of GPUs")
    if _OLD.fullmatch(size):
        raise ValueError(
            f"{size} is retired; current sizes: Standard_NC24ads_A100_v4 has one GPU, Standard_ND96asr_v4 has eight"
        )
    if size and not _FORM.fullmatch(size):
        hint = nearest(size, list(GPU_SIZES)) or "valid sizes look like Standard_D16s_v5 or Standard_ND96asr_v4"
        raise ValueError(f"{size!r} is not the size of a virtual machine; {hint}")
    return size


def ranks_of(size: str) -> int:
    """Return the number of ranks for a machine of a checked size: its GPUs, or 1; `RecipeError` if they are unknown."""
    # The names of all sizes with GPUs begin with N, and each year there are new ones.
    if size.startswith("Standard_N") and size not in GPU_SIZES:
        hint = nearest(size, list(GPU_SIZES), 0.8)
        more = f"{hint} " if hint else ""
        raise RecipeError(f"vm_size: the number of GPUs of {size} is unknown; {more}Set ranks.")
    return GPU_SIZES[size].gpus if size in GPU_SIZES else 1


def has_infiniband(size: str) -> bool:
    """Whether InfiniBand connects machines of a checked size."""
    return size in GPU_SIZES and GPU_SIZES[size].infiniband


def between_machines(infiniband: bool) -> dict[str, str]:
    """Return the environment variables of machines that train together, connected by InfiniBand or not."""
    # Ranks rendezvous over Ethernet either way; docker0 would lead nowhere.
    socket = "eth0" if infiniband else "^docker0,lo"
    nccl = {"NCCL_SOCKET_IFNAME": socket, "NCCL_IB_DISABLE": "0" if infiniband else "1"}
    # In milliseconds. Each machine mounts the run folder, and would otherwise cache the attributes of a file forever,
    # and not see what another one has written there.
    return {**nccl, "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1000"}
