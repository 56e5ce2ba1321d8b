"""Recipe settings for how the network's operations are executed. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind


class AutoGraphConfig(Section):
    """On a GPU `compiled`, if a compiler is installed, the recipe has nothing that compiled networks do not support,
    and training is long enough to gain what compiling takes; otherwise, and on a CPU, `eager`. Compiled phases are
    trained in full rows, of several sequences if these are shorter."""

    kind: Literal["auto"] = "auto"
    """Selects this mode."""


class EagerConfig(Section):
    """Operations are executed one after another, as written."""

    kind: Literal["eager"] = "eager"
    """Selects this mode."""


class CompiledConfig(Section):
    """The network is compiled by torch.compile, for batches of fixed shape: every row is padded to the phase's length,
    so packing pays off. Needs a C++ compiler on a CPU (where it gains little), Triton and a C compiler on a GPU, and
    Python's header files."""

    kind: Literal["compiled"] = "compiled"
    """Selects this mode."""
    cuda_graphs: bool = True
    """Whether a GPU replays the forward and backward pass of each micro-batch as one recorded CUDA graph, instead of
    launching its kernels one by one. Each training compares the first replay with the pass itself. No effect on a CPU,
    with several ranks, or with `checkpoint_activations`."""


class OrtModuleConfig(Section):
    """The network is exported, and ONNX Runtime runs its forward and backward passes, for batches of fixed shape as
    with `compiled`. ONNX Runtime's training package is discontinued: its last release needs a separate environment
    (`make ort-env`)."""

    kind: Literal["ortmodule"] = "ortmodule"
    """Selects this mode."""


ChosenGraph = EagerConfig | CompiledConfig | OrtModuleConfig
"""How operations are executed, once that is known."""
GraphConfig = Annotated[
    AutoGraphConfig | EagerConfig | CompiledConfig | OrtModuleConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""How the network's operations are executed."""
