"""The recipe section `[train]`: phases, seeds, checkpoints, and how to compute. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.addresses import check_address
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import Section, UserPath, known_by_content, runtime_only
from bertwright.examples.config import ImportedData
from bertwright.model.config import Kernel, LayerKernels
from bertwright.tasks.config import TaskConfig
from bertwright.tasks.pretraining.config import PreTrainingConfig
from bertwright.train.averaging.config import AveragingConfig, EmaConfig, NoAveragingConfig
from bertwright.train.engine.config import NO_ROWS, AutoConfig, DeepSpeedConfig, EngineConfig
from bertwright.train.graph.config import AutoGraphConfig, GraphConfig, OrtModuleConfig
from bertwright.train.machine.config import NoNoticeConfig, SpotNoticeConfig
from bertwright.train.monitor.observers.config import Observers
from bertwright.train.precision.config import AutoPrecisionConfig, PrecisionConfig
from bertwright.train.settings.phase_config import PhaseConfig

VERSION = 10
"""Increased when a code change alters the result of the stage."""


class GuardConfig(Section):
    """Handling of bad updates. Updates whose gradient or loss is not finite are always dropped."""

    spike: float = Field(0.0, ge=0)
    """Also drop an update whose gradient norm exceeds this multiple of the median of earlier norms; 0: no limit. 10 is
    far above what a healthy training shows."""
    loss_spike: float = Field(0.0, ge=0)
    """Also drop an update whose loss exceeds this multiple of the median of earlier losses; greater than 1, or 0: no
    limit. Losses vary far less than norms: 1.5 is above what a healthy training shows once it learns."""
    window: int = Field(100, ge=10)
    """Number of applied updates over which the medians are taken; no update is judged before that many were applied."""
    patience: int = Field(20, ge=1)
    """Dropped updates in a row after which training goes back to a checkpoint, or stops. Overflows that lower the loss
    scale of fp16 do not count."""
    returns: int = Field(0, ge=0)
    """How often per phase training may go back to the newest checkpoint before the dropped updates and leave out the
    batches since then; 0: it stops at once."""

    @model_validator(mode="after")
    def _a_loss_that_may_pass(self) -> GuardConfig:
        if 0 < self.loss_spike <= 1:
            raise ValueError(
                f"loss_spike {self.loss_spike:g} would drop every update with a loss that is not below the median; "
                "set it above 1, or to 0 to drop none"
            )
        if self.window != type(self).model_fields["window"].default and not (self.spike or self.loss_spike):
            raise ValueError(
                f"window {self.window} is for spike and loss_spike, which are both 0: set one of them, or leave it out"
            )
        return self


class ExpectedLoss(Section):
    """Expected band of the training loss at one step."""

    step: int = Field(ge=1)
    """The step, counted over all phases; the first metrics row at or after it is checked."""
    low: float = Field(0.0, ge=0)
    """Lowest expected loss, summed over all terms (nats)."""
    high: float = Field(gt=0)
    """Highest expected loss, summed over all terms (nats)."""

    @model_validator(mode="after")
    def _a_band(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} is not below high {self.high:g}; exchange the two, or widen the band")
        return self


class TrainConfig(Section):
    """Training: one or more phases in order, with weights and moments handed over between them."""

    phases: tuple[PhaseConfig, ...] = Field(min_length=1)
    """The phases, in order. The optimizer's moments are kept from one phase to the next."""
    objective: TaskConfig = PreTrainingConfig()
    """The training objective."""
    init_from: UserPath | None = known_by_content(None)
    """The network to start from, with the same vocabulary unless `init_embeddings` makes rows for another one: a
    finished `train` or `export` folder, a folder that transformers saved (config.json, model.safetensors, and vocab.txt
    or tokenizer.json), or a checkpoint, from which the optimizer's moments are loaded too. Heads that it does not have
    get random weights."""
    init_layers: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Layers of a deeper network to start from, numbered from 1, for example every second one (Sanh et al. 2019).
    The network in `init_from` must then have the same width, and each layer the same kind of attention. Empty: the
    network in `init_from` has the same layers as this one."""
    init_tiled: bool = False
    """Whether the network in `init_from` is smaller in width, depth, inner size or heads, and its weights are repeated
    to fill this one, which at first computes nearly the same. Attention heads must have the same width; layers are
    repeated evenly, or as `init_layers` says."""
    init_embeddings: Literal["random", "pieces", "text"] = "random"
    """Initial token embeddings. Without `init_from`: `random`, drawn like all other weights; or `text`, computed from
    which entries are neighbours in the text of the first phase, so that entries used alike start with similar vectors;
    this takes seconds, which count as training but not in `hours` of a phase, and 20 kB of memory per entry. With
    `init_from`: `random` requires the vocabulary of that network. With another one, entries of both keep their rows,
    and new entries get the mean of the rows of the older pieces that their text is split into (`pieces`), or the mean
    of that and of a row from the text, mapped to the older ones by the entries of both (`text`)."""
    seed: int = Field(42, ge=0, le=2**63 - 1)
    """Seed for the initial weights, the order of examples, the masks and dropout."""
    heldout_sequences: int = Field(2048, ge=1)
    """Maximum number of held-out sequences scored during training, spread evenly over the held-out split."""
    evaluate_every: Annotated[int, Field(ge=0)] | Literal["epoch"] = runtime_only(0)
    """Optimizer steps between held-out scores; 0: ten times per phase; "epoch": after the last step of each epoch. The
    end of a phase is always scored."""
    checkpoint_every: Annotated[int, Field(ge=0)] | Literal["epoch"] = runtime_only(0)
    """Optimizer steps between checkpoints; 0: ten times per phase; "epoch": after the last step of each epoch. The end
    of a phase is always saved."""
    save_async: Literal["auto"] | bool = runtime_only("auto")
    """Whether a thread writes checkpoints while training continues, from a copy of weights and moments in host memory
    (12 bytes per parameter, plus 4 for each copy that an average keeps). `auto`: only on a GPU, whose memory the copy
    does not use. Training always waits for the first checkpoint, and for those at the end of a phase or before a
    stop."""
    shard_above_gb: float = runtime_only(5.0, ge=0)
    """Size of weights and moments (GB) above which each of several ranks writes complete tensors of its own to separate
    files, listed in an index; at or below it, rank 0 writes everything. All ranks must write to the same folder. Either
    form can be resumed with any number of ranks and any engine. 0: always."""
    keep_checkpoints: int = runtime_only(3, ge=1)
    """Number of newest checkpoints to keep, in addition to the best one and the last one of each phase."""
    mirror: str = runtime_only("")
    """Address to which a thread copies each finished checkpoint and, at the end, the finished model, such as
    "s3://bucket/run" or "az://container/run"; empty: none. Use a separate address for each run: older checkpoints are
    also removed there, and a start without local checkpoints restores them from there. Credentials come from the
    environment."""
    spot_notice: SpotNoticeConfig = runtime_only(NoNoticeConfig())
    """Cloud that each training machine queries about being taken away: `azure`, `aws`, `gcp`, or `none`. A notice
    triggers a checkpoint after the current step. Give a name, or a section with its keys."""
    log_every: Annotated[int, Field(ge=1)] | Literal["epoch"] = runtime_only(10)
    """Optimizer steps per row of metrics; "epoch": one row for each epoch. Steps that are scored or saved always have
    one."""
    observers: Observers = runtime_only(())
    """Programs that receive the metrics rows, in addition to metrics.jsonl: `tensorboard`, `mlflow`, `trackio`,
    `wandb`. Give names, or sections for those that have keys."""
    expected: tuple[ExpectedLoss, ...] = runtime_only(())
    """Expected bands of the training loss at given steps, as sections {step, low, high}. A loss outside its band is
    reported in the log, on the run's page and at the end; it does not stop training."""
    profile: int = runtime_only(0, ge=0, le=1000)
    """Number of optimizer steps to profile in this start, after two warm-up steps. Writes a trace and a table of where
    the time goes to `profile` in the run's `train` folder. 0: none. Profiled steps are slower, but train the same."""
    device: Literal["auto", "cpu", "cuda"] = runtime_only("auto")
    """Device to train on; `auto`: a GPU if torch sees one, else the CPU."""
    cpu_isa: Literal["auto", "avx2", "avx512", "avx512_bf16", "amx"] = runtime_only("auto")
    """Highest CPU instruction set that torch's libraries may use; `auto`: all that the processor has, or what the
    environment sets. Another instruction set changes the order of summation, so results are not bit-identical. Only
    with device = cpu."""
    deterministic: Literal["auto"] | bool = runtime_only("auto")
    """Whether the same training gives bit-identical results, also when resumed from a checkpoint; `auto`: only on a
    CPU, where it costs nothing. If false, a GPU may sum in any order, which is faster."""
    timeout: float = runtime_only(8.0, ge=1)
    """Seconds without a heartbeat after which a rank counts as lost (stopped or disconnected), and the other ranks exit
    with an error that names it. They do not depend on what a rank does: a step, compiling, scoring or saving may
    take any time. Raise it for virtual machines that are suspended for longer, for example to be moved."""
    start_timeout: float = runtime_only(600.0, ge=1)
    """Seconds within which all ranks must have connected at the start; machines of a job need not start together."""
    hang_timeout: float = runtime_only(1800.0, ge=0)
    """Seconds after which a rank that is alive, but does not reach the all-reduce or broadcast that the others wait in,
    counts as lost, for example because its disk or network hangs; and after which all ranks exit if none gets on with
    its GPU. Must exceed the time to save a checkpoint if `save_async` is off; copying to and from `mirror` does not
    count. 0: never."""
    compare_ranks_every: int = runtime_only(1000, ge=0)
    """Optimizer steps between comparisons of the weights of all ranks, by hash; they are also compared before each
    checkpoint. 0: never. There is nothing to compare with a single rank, or with `fsdp` and `deepspeed`, with which
    each rank holds other parts of the weights."""
    guard: GuardConfig = GuardConfig()
    """How to handle gradients and losses that are not finite, or far above earlier ones."""
    precision: PrecisionConfig = runtime_only(AutoPrecisionConfig())
    """Numeric precision of the network: `fp32`, `tf32` (GPU), `bf32` (CPU with AMX), `bf16` (GPU, or CPU with AMX or
    AVX512-BF16), `fp16` (GPU), or `auto`: on a GPU `bf16` where it has units for it, else `fp16`; on a CPU `bf16` if
    that is measured to be at least 1.2 times as fast as `fp32`. Give a name, or a section if the precision has keys.
    The weights that the optimizer updates, and checkpoints, are float32."""
    averaging: AveragingConfig = NoAveragingConfig()
    """Average of the weights that is compared with the last weights at the end: `none`, `ema` or `last`; by default the
    better of the two becomes the finished model (`keep`). Give a name, or a section if the average has keys. Training
    itself continues from the unaveraged weights."""
    engine: EngineConfig = runtime_only(AutoConfig())
    """How ranks hold the weights and sum their gradients: `auto` (`single` for one process, `ddp` for several), `zero`
    (optimizer state sharded), `fsdp` (everything sharded) or `deepspeed` (the DeepSpeed package). Give a name, or a
    section if the engine has keys. A run may resume with another engine."""
    graph: GraphConfig = runtime_only(AutoGraphConfig())
    """How the network's operations are executed: `eager` (as written), `compiled` (torch.compile, fixed shapes),
    `ortmodule` (ONNX Runtime, fixed shapes, in a separate environment), or `auto`: on a GPU `compiled` if that is
    possible and training takes minutes, else `eager`. A resumed run keeps the choice. Give a name, or a section if the
    graph has keys."""
    attention: Literal["auto"] | Kernel = runtime_only("auto")
    """Attention kernel: `sequences` (one call per distinct length; CPU), `padded` (one padded rectangle), `varlen`
    (FlashAttention over all sequences; GPU, bf16 or fp16), `triton` (a kernel of our own over all sequences, also with
    dropout of attention weights; GPU), or `auto`: on a GPU the fastest that supports the network and its
    precision, timed there at the first start and kept on resume; on a CPU `sequences`, or `padded` whenever `graph` is
    not eager. Changes the speed, the order of summation, and which weights dropout drops."""
    kernels: LayerKernels = runtime_only("torch")
    """What computes GELU, dropout, residuals and layer norms of BERT and DistilBERT: `torch`, whose compiler fuses them
    (`graph`), or `triton` (kernels of our own; GPU). Changes the speed, the order of summation, and what dropout
    drops."""
    memory_limit_gb: float = runtime_only(0.0, ge=0)
    """Memory (GB) that a rank may use, if `micro_batch` is auto; 0: that of its GPU, or its share of the machine's."""
    checkpoint_activations: bool = runtime_only(False)
    """Whether each layer keeps only its input and recomputes the rest in the backward pass: much less memory, a third
    more computation, bit-identical results. On a CPU, freed memory also returns to the system, which takes time."""
    threads: Annotated[int, Field(ge=0)] | Literal["auto"] = runtime_only(0)
    """CPU threads for torch; 0: torch's own choice; `auto`: as many as there are free cores at the first start. Several
    ranks all use the smallest of their numbers. How threads wait is chosen by measurement in any case, unless the
    environment sets it (OMP_WAIT_POLICY)."""

    @model_validator(mode="after")
    def _a_mirror_without_secrets(self) -> TrainConfig:
        if self.mirror:  # raised for the section: a message about the key alone would repeat the address
            check_address(self.mirror, "mirror")
        return self

    @model_validator(mode="after")
    def _a_limit_that_bounds(self) -> TrainConfig:
        if self.memory_limit_gb and not any(phase.micro_batch == "auto" for phase in self.phases):
            raise ValueError(
                f"memory_limit_gb {self.memory_limit_gb:g} limits the micro-batches of phases with micro_batch=auto, "
                "but no phase has that; set phases.0.micro_batch=auto, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _instructions_that_compute(self) -> TrainConfig:
        kind, isa = self.precision.kind, self.cpu_isa
        if isa != "auto" and self.device != "cpu":
            raise ValueError(
                f"cpu_isa {isa} limits the instructions of a CPU, but device {self.device} may be a GPU; set "
                "device=cpu, or leave cpu_isa out"
            )
        slow = kind == "bf16" and not getattr(self.precision, "allow_slow", False) and isa in ("avx2", "avx512")
        if slow or (kind == "bf32" and isa in ("avx2", "avx512", "avx512_bf16")):
            needed = "amx" if kind == "bf32" else "avx512_bf16 or amx"
            raise ValueError(
                f"cpu_isa {isa} disables the hardware units that precision {kind} needs; set cpu_isa={needed}, or "
                "precision=fp32"
            )
        return self

    @model_validator(mode="after")
    def _a_start_that_is_known(self) -> TrainConfig:
        timed = [index for index, phase in enumerate(self.phases) if phase.hours is not None]
        if isinstance(self.averaging, EmaConfig) and self.averaging.start and timed:
            raise ValueError(
                f"averaging.start {self.averaging.start:g} is a share of the steps of all phases, but "
                f"phases.{timed[0]}.hours leaves their number open; set averaging.start to 0, or leave hours out"
            )
        return self

    @model_validator(mode="after")
    def _something_to_go_on_from(self) -> TrainConfig:
        if self.init_tiled and self.init_from is None:
            raise ValueError("init_tiled repeats the weights of another network: set init_from to that network")
        if self.init_layers and self.init_from is None:
            raise ValueError(
                f"init_layers {list(self.init_layers)} are the layers of another network: set init_from to that network"
            )
        if self.init_layers and not self.phases[0].restart_bias_correction:
            raise ValueError(
                "phases.0.restart_bias_correction false needs optimizer moments to continue from, but init_layers "
                "reads only weights; leave one out"
            )
        if self.init_from is None and not self.phases[0].restart_bias_correction:
            raise ValueError(
                "phases.0.restart_bias_correction false needs a number of updates to continue from: set init_from to "
                "a checkpoint, or leave it out"
            )
        return self

    @model_validator(mode="after")
    def _rows_that_are_new(self) -> TrainConfig:
        if self.init_embeddings == "pieces" and self.init_from is None:
            raise ValueError(
                "init_embeddings pieces makes rows from those of another network: set init_from to that network, or "
                "init_embeddings to random or text"
            )
        only_new = [index for index, phase in enumerate(self.phases) if phase.trains == "new-rows"]
        if not only_new:
            return self
        where = f"phases.{only_new[0]}.trains new-rows"
        if self.init_from is None or self.init_embeddings == "random":
            raise ValueError(
                f"{where} trains the rows of entries that the network in init_from does not have: set init_from to a "
                "network with another vocabulary and init_embeddings to pieces or text, or leave it out"
            )
        if isinstance(self.engine, DeepSpeedConfig):
            raise ValueError(NO_ROWS.removeprefix("train."))
        if isinstance(self.graph, OrtModuleConfig):
            raise ValueError(
                f"{where} is not possible with graph = ortmodule, whose gradients are fixed; set graph=auto"
            )
        for index in only_new:
            after = self.phases[index + 1 : index + 2]
            if any(phase.trains == "all" and not phase.restart_bias_correction for phase in after):
                raise ValueError(
                    f"phases.{index + 1}.restart_bias_correction false continues the moments of the phase before, but "
                    f"phases.{index} trains only new rows, so that all other weights have none; leave it out"
                )
        return self

    def init_checkpoint(self) -> Artifact | None:
        """Return the checkpoint in `init_from`, whose moments are read too; None if it is a network without moments.
        Raises `ArtifactError` if its manifest is damaged."""
        if self.init_from is None or self.init_layers or self.init_tiled or not (self.init_from / MANIFEST).is_file():
            return None
        given = open_artifact(self.init_from)
        return given if given.manifest["stage"] == "checkpoint" else None

    def saves_beside(self, gpu: bool) -> bool:
        """Whether a thread writes checkpoints from a copy while training continues: as `save_async` says; `auto`: on a
        GPU."""
        return gpu if self.save_async == "auto" else self.save_async

    def imported_data(self) -> tuple[ImportedData, ...]:
        """Return the phases whose data is not an examples folder of this project but files in a common format."""
        return tuple(
            ImportedData(i, p.data, p.length, p.masking, p.quarantine, self.objective.files)
            for i, p in enumerate(self.phases)
            # An examples folder of this project is read unchanged; anything else must be imported first.
            if p.data is not None and not (p.data / MANIFEST).is_file()
        )
