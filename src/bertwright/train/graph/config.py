"""The recipe's choice of how the network's operations are run. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind


class EagerConfig(Section):
    """Operations are run one after another, as they are written."""

    kind: Literal["eager"] = "eager"
    """Names this way."""


class CompiledConfig(Section):
    """The network is compiled by torch.compile, for batches of fixed shape: every row is filled up to the phase's
    length, so packing is worth its while. Needs a C++ compiler on a CPU (where little is gained), Triton on a GPU."""

    kind: Literal["compiled"] = "compiled"
    """Names this way."""
    cuda_graphs: bool = True
    """Whether a GPU replays each pass as one recorded graph in place of launching its kernels one by one; a CPU has
    none."""


class OrtModuleConfig(Section):
    """The network is exported, and ONNX Runtime runs it forward and backward, for batches of fixed shape as with
    `compiled`. Its training has ended: the last release needs an environment of its own (`make ort-env`)."""

    kind: Literal["ortmodule"] = "ortmodule"
    """Names this way."""


GraphConfig = Annotated[
    EagerConfig | CompiledConfig | OrtModuleConfig, Field(discriminator="kind"), BeforeValidator(by_kind)
]
"""How the network's operations are run."""
