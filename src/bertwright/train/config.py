"""The recipe section `[train]`: phases, seeds, checkpoints, how it is computed. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bertwright.core.address import check_address
from bertwright.core.artifact import MANIFEST
from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.examples.config import ImportedData
from bertwright.model.config import Kernel
from bertwright.objectives.config import ObjectiveConfig, PreTrainingConfig, texts_of
from bertwright.train.averaging.config import AveragingConfig, EmaConfig, NoAveragingConfig
from bertwright.train.engine.config import AutoConfig, EngineConfig
from bertwright.train.expected_config import ExpectedLoss
from bertwright.train.graph.config import EagerConfig, GraphConfig
from bertwright.train.guard_config import GuardConfig
from bertwright.train.observers.config import ObserverConfig
from bertwright.train.phase_config import PhaseConfig
from bertwright.train.precision.config import Fp32Config, PrecisionConfig
from bertwright.train.spot.config import NoNoticeConfig, SpotNoticeConfig

VERSION = 6
"""Raised when the code of the stage changes its result."""


class TrainConfig(Section):
    """Training: phases one after another, with hand-over of weights and moments."""

    phases: tuple[PhaseConfig, ...] = Field(min_length=1)
    """The phases in order; at a hand-over the optimizer's moments are kept."""
    objective: ObjectiveConfig = PreTrainingConfig()
    """What the network is trained for."""
    init_from: UserPath | None = known_by_content(None)
    """Checkpoint or finished `train` folder to start from; of a checkpoint the optimizer's moments are taken too."""
    init_layers: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """The layers of a deeper network that those of this one start from, counted from 1, such as every second one (Sanh
    et al. 2019). `init_from` is then a finished training as wide, or a folder as transformers writes it. Empty: the
    network in `init_from` is this one."""
    seed: int = 42
    """Seed of the initial weights, the order of the examples, the masks and dropout."""
    heldout_sequences: int = Field(2048, ge=1)
    """Most held-out sequences scored during training, spread evenly over the held-out split."""
    evaluate_every: int = runtime_only(0, ge=0)
    """Optimizer steps between held-out scores; 0 scores ten times in a phase. The end of a phase is always scored."""
    checkpoint_every: int = runtime_only(0, ge=0)
    """Optimizer steps between checkpoints; 0 saves ten times in a phase. The end of a phase is always saved."""
    save_async: Literal["auto"] | bool = runtime_only("auto")
    """Whether training goes on while a checkpoint is written, by a thread, from a copy of weights and moments in the
    processor's memory (12 bytes a parameter more, 4 more for each copy of an average); `auto`: on a GPU, whose memory
    the copy does not take. The first checkpoint, and that of the end of a phase or of a stop, is waited for."""
    shard_above_gb: float = runtime_only(5.0, ge=0)
    """Weights and moments (GB) above which each of several ranks writes whole tensors of its own to files of its own,
    which an index names; below it the first rank writes all of them. All ranks must write to the same folder. A run
    goes on from either with any number of ranks and any engine. 0: always."""
    keep_checkpoints: int = runtime_only(3, ge=1)
    """Newest checkpoints kept, beside the best one and the last one of each phase."""
    mirror: str = runtime_only("")
    """Address to which each finished checkpoint, and in the end the finished model, is copied by a thread, such as
    "s3://bucket/run" or "az://container/run"; empty: none. An address of this run alone: older checkpoints are removed
    there as here, and a start whose folder has none brings them back. Credentials come from the environment."""
    spot_notice: SpotNoticeConfig = runtime_only(NoNoticeConfig())
    """Who is asked, on each machine that trains, whether it is to be taken away: `azure`, `aws`, `gcp`, or `none`. A
    notice leads to a checkpoint after the step that is under way. A name, or a section of its own with its keys."""
    log_every: int = runtime_only(10, ge=1)
    """Optimizer steps per line of metrics."""
    observers: tuple[ObserverConfig, ...] = runtime_only(())
    """Who is shown the rows of metrics, beside metrics.jsonl: `tensorboard`, `mlflow`, `trackio`, `wandb`. Names, or
    sections of their own where they have keys."""
    expected: tuple[ExpectedLoss, ...] = runtime_only(())
    """Bands of the training loss at some steps, as sections {step, low, high}; a loss outside of one is said in the
    log, on the page and at the end. It ends nothing."""
    profile: int = runtime_only(0, ge=0, le=1000)
    """Optimizer steps of this start that are profiled, after two to warm up: their trace and a table of where the time
    goes are written to `profile` in the run's `train`. 0: none. Profiled steps are slower, and the same."""
    device: Literal["auto", "cpu", "cuda"] = runtime_only("auto")
    """Where the model runs; `auto` takes a GPU when torch sees one."""
    cpu_isa: Literal["auto", "avx2", "avx512", "avx512_bf16", "amx"] = runtime_only("auto")
    """The most that torch's libraries may use of a processor's instruction sets; `auto`: all it has, or what the
    environment says. Other instructions have another order of summation, so other bits. Only with device = cpu."""
    deterministic: Literal["auto"] | bool = runtime_only("auto")
    """Whether the same training gives the same bits again, and goes on from a checkpoint as if it had not stopped;
    `auto`: on a CPU, where it costs nothing. Without it a GPU may add in any order, which is faster."""
    timeout: float = runtime_only(600.0, ge=1)
    """Seconds after which a rank that gives no sign of life (stopped, cut off) is lost, and the others end, saying so.
    However long a step, scoring or saving takes is no matter."""
    hang_timeout: float = runtime_only(1800.0, ge=0)
    """Seconds after which a rank that lives, but does not come to the next sum for which the others wait, is lost: its
    disk or network does not answer. Longer than saving a checkpoint takes where `save_async` is off; copying from and
    to `mirror` does not count. 0: never."""
    compare_ranks_every: int = runtime_only(1000, ge=0)
    """Optimizer steps after which the weights of all ranks are compared, by a hash, as they are before each checkpoint;
    0: never. One rank alone has nothing to compare."""
    guard: GuardConfig = GuardConfig()
    """What is done about gradients and losses that are not finite, or far above those before them."""
    precision: PrecisionConfig = runtime_only(Fp32Config())
    """In which numbers the network computes: `fp32`, `tf32` (GPU), `bf32` (a CPU with AMX),
    `bf16` (a GPU, or a CPU with AMX or AVX512-BF16), `fp16` (GPU) or `fp8` (GPU of Ada, Hopper or later). A name, or a
    section of its own where the precision has keys. What the optimizer moves and checkpoints hold is float32."""
    averaging: AveragingConfig = NoAveragingConfig()
    """Which average of the weights is scored and exported at the end: `none`, `ema` or `last`. A name, or a section of
    its own where the average has keys. Training goes on from the weights themselves."""
    engine: EngineConfig = runtime_only(AutoConfig())
    """How ranks hold the weights, and what sums their gradients: `auto` (`single` for one process, `ddp` for several),
    `zero` (the optimizer's state in parts), `fsdp` (everything in parts) or `deepspeed` (the package of that name). A
    name, or a section of its own where the engine has keys. A run may go on with another one."""
    graph: GraphConfig = runtime_only(EagerConfig())
    """How the network's operations are run: `eager` (as they are written), `compiled` (by torch.compile, in fixed
    shapes) or `ortmodule` (by ONNX Runtime, in fixed shapes and an environment of its own). A name, or a section of its
    own where the graph has keys."""
    attention: Literal["auto"] | Kernel = runtime_only("auto")
    """How attention is computed: `sequences` (one call per distinct length; CPU), `padded` (a rectangle), `varlen`
    (FlashAttention over all sequences; GPU, bf16 or fp16), or `auto`: the first on a CPU, the second on a GPU and where
    `graph` is not eager. Changes the speed, the order of summation, and which weights dropout drops."""
    memory_limit_gb: float = runtime_only(0.0, ge=0)
    """Memory (GB) of a rank, where `micro_batch` is auto; 0: that of its GPU, or its part of the machine's."""
    checkpoint_activations: bool = runtime_only(False)
    """Whether each layer keeps its input alone and is computed again on the way back: much less memory, a third more
    time, the same numbers to the bit."""
    threads: Annotated[int, Field(ge=0)] | Literal["auto"] = runtime_only(0)
    """Processor threads of torch; 0 leaves torch's own choice, `auto` takes as many as cores are free at the first
    start. How they wait is measured in any case, unless the environment says it (OMP_WAIT_POLICY)."""

    @model_validator(mode="after")
    def _a_mirror_without_secrets(self) -> TrainConfig:
        if self.mirror:  # of the section: a message about the key alone would repeat the address
            check_address(self.mirror, "mirror")
        return self

    @model_validator(mode="after")
    def _a_limit_that_bounds(self) -> TrainConfig:
        if self.memory_limit_gb and not any(phase.micro_batch == "auto" for phase in self.phases):
            raise ValueError(
                f"memory_limit_gb {self.memory_limit_gb:g} bounds the micro-batches of phases whose micro_batch is "
                "auto, and none is; set phases.0.micro_batch=auto, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _instructions_that_compute(self) -> TrainConfig:
        kind, isa = self.precision.kind, self.cpu_isa
        if isa != "auto" and self.device != "cpu":
            raise ValueError(
                f"cpu_isa {isa} bounds what a processor computes with, and device {self.device} may be a GPU; set "
                "device=cpu, or leave cpu_isa out"
            )
        slow = kind == "bf16" and not getattr(self.precision, "allow_slow", False) and isa in ("avx2", "avx512")
        if slow or (kind == "bf32" and isa in ("avx2", "avx512", "avx512_bf16")):
            needed = "amx" if kind == "bf32" else "avx512_bf16 or amx"
            raise ValueError(
                f"cpu_isa {isa} keeps precision {kind} from the units it multiplies with; set cpu_isa={needed}, or "
                "precision=fp32"
            )
        return self

    @model_validator(mode="after")
    def _a_start_that_is_known(self) -> TrainConfig:
        timed = [index for index, phase in enumerate(self.phases) if phase.hours is not None]
        if isinstance(self.averaging, EmaConfig) and self.averaging.start and timed:
            raise ValueError(
                f"averaging.start {self.averaging.start:g} is a share of the steps of all phases, which "
                f"phases.{timed[0]}.hours leaves open; set averaging.start to 0, or leave hours out"
            )
        return self

    @model_validator(mode="after")
    def _something_to_go_on_from(self) -> TrainConfig:
        if self.init_layers and self.init_from is None:
            raise ValueError(f"init_layers {list(self.init_layers)} are layers of a network: give it as init_from")
        if self.init_layers and not self.phases[0].restart_bias_correction:
            raise ValueError(
                "phases.0.restart_bias_correction false needs moments to go on from, and init_layers takes weights "
                "alone; leave one out"
            )
        if self.init_from is None and not self.phases[0].restart_bias_correction:
            raise ValueError(
                "phases.0.restart_bias_correction false needs updates to go on counting from: give init_from a "
                "checkpoint, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _observers_once(self) -> TrainConfig:
        for observer in self.observers:
            alike = [each for each in self.observers if each.kind == observer.kind]
            # Each run of MLflow has a client of its own; the others would write into the same files or the same run.
            if len(alike) > 1 and (observer.kind != "mlflow" or alike.count(observer) > 1):
                several = ", or give each another tracking_uri or experiment" if observer.kind == "mlflow" else ""
                raise ValueError(f"observers name {observer.kind} {len(alike)} times: name it once{several}")
        return self

    def saves_beside(self, gpu: bool) -> bool:
        """Whether checkpoints are written beside training, from a copy: as `save_async` says, or on a GPU alone."""
        return gpu if self.save_async == "auto" else self.save_async

    def imported_data(self) -> tuple[ImportedData, ...]:
        """The phases whose data is no artifact of ours, but files in a format of the field."""
        return tuple(
            ImportedData(i, p.data, p.length, p.masking, p.quarantine, texts_of(self.objective))
            for i, p in enumerate(self.phases)
            # An examples folder of ours is read as it is; anything else has first to become one.
            if p.data is not None and not (p.data / MANIFEST).is_file()
        )
