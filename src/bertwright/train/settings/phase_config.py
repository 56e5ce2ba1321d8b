"""The recipe section `[[train.phases]]`: length, batch, rates and data of one phase. Does not import torch."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from bertwright.core.config import Section, UserPath, extendable, known_by_content, runtime_only
from bertwright.examples.config import DocumentRange, Length, MaskingConfig, MicroBatching
from bertwright.examples.labelled.config import glue_folder
from bertwright.examples.sequences import BatchSizes
from bertwright.optim.config import ScheduleConfig
from bertwright.optim.schedule import LinearSchedule, PolyNvidiaSchedule, WsdSchedule

LENGTHS = ("steps", "epochs", "samples", "tokens")
ONE_PASS: dict[str, Any] = {"micro_batch": 0, "micro_tokens": 0, "packing": False}
"""The keys that set the size of a forward pass, with the values that make a rank's entire share one pass."""


def _share_or_steps(value: Any, number: ValidatorFunctionWrapHandler) -> float:
    """Validate a share below 1 as a float, or a number of steps as an int: 1 is one step, and 1.5 is invalid."""
    given: float = value if type(value) is int and value >= 1 else number(value)
    if isinstance(given, float) and given >= 1:
        whole = f": write {given:.0f} for steps" if given.is_integer() and not isinstance(value, bool) else ""
        raise ValueError(f"is neither a share below 1 nor a whole number of steps{whole}")
    return given


_KEPT_WHOLE = PlainSerializer(lambda value: value, when_used="json")
"""Otherwise recipe.toml would hold a number of steps as a float, which is neither a share nor a number of steps."""


class PhaseConfig(Section):
    """One phase: maximum sequence length, batch size, learning-rate schedule and duration."""

    length: Length
    """Maximum sequence length in tokens, including [CLS] and [SEP]."""
    batch: int = Field(ge=1)
    """Global batch: sequences per optimizer step over all ranks and micro-batches."""
    batch_warmup: tuple[tuple[int, int], ...] = ()
    """How the global batch grows to `batch`: pairs [step, sequences], each applied from that step of the phase on; the
    first pair is for step 0. Empty: constant."""
    micro_batch: Annotated[int, Field(ge=0)] | Literal["auto"] = runtime_only(0)
    """Sequences (with `packing`, rows) per forward pass on a rank; 0: the rank's entire share; `auto`: as many as fit
    in memory (`train.memory_limit_gb`), halved if a GPU runs out of memory. Changes the order of summation, and which
    elements dropout drops, as do the two keys below. A resumed run keeps the size that `auto` found."""
    micro_tokens: int = runtime_only(0, ge=0)
    """Tokens per forward pass on a rank, instead of `micro_batch`: as many sequences as fit; 0: `micro_batch`
    applies."""
    packing: bool = runtime_only(False)
    """Whether to pack sequences into rows of `length` tokens, each attending only to itself; if false, sequences of
    similar length share a micro-batch."""
    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup: Annotated[float, Field(ge=0), WrapValidator(_share_or_steps), _KEPT_WHOLE] = 0.1
    """Warm-up, in which the rate rises from zero to the peak: a share of the phase's steps (below 1), or a number of
    steps (1 or more)."""
    schedule: ScheduleConfig = LinearSchedule()
    """Learning-rate schedule after the warm-up: linear decay (`linear`), a power of it, by default the square root
    (`poly`; `poly_nvidia` has a jump), half a cosine (`cosine`), constant with a decay at the end (`wsd`), or
    `constant`. Give a name, or a section if the schedule has keys."""
    restart_bias_correction: bool = True
    """Whether the optimizer's update count for bias correction restarts at 0 with this phase, as NVIDIA's does, while
    the moments are kept; AdamW's updates are then up to 6 times smaller for some hundred steps. Set it to false for a
    phase that is only the decay of the previous one."""
    trains: Literal["all", "new-rows"] = "all"
    """What the phase trains: all weights; or `new-rows`, the token embeddings of entries whose rows were not copied
    (`train.init_embeddings`), and their biases in the decoder, while all other weights stay as they are, to the bit.
    Steps are then faster, because only these rows need gradients."""
    steps: int | None = extendable(None, ge=1)
    """Length of the phase in optimizer steps. Give exactly one of steps, epochs, samples, tokens."""
    epochs: float | None = extendable(None, gt=0)
    """Length of the phase in passes over its examples."""
    samples: int | None = extendable(None, ge=1)
    """Length of the phase in sequences."""
    tokens: int | None = extendable(None, ge=1)
    """Length of the phase in real (not padding) tokens, converted with the mean length of the phase's examples."""
    end_after: int | None = extendable(None, ge=1)
    """Optimizer step after which the phase ends early; the learning rate still follows the phase's full length. May be
    set, moved or removed while the phase is running; the run then continues with the next phase."""
    hours: float | None = Field(None, gt=0)
    """Training time (hours, over all starts, without scoring and saving) after which the phase ends; its length is then
    only an upper limit. The learning rate follows time instead of updates, so no two runs have the same rates."""
    target_accuracy: float | None = extendable(None, gt=0, lt=1)
    """Held-out accuracy of masked tokens (a share) at which the phase ends, checked at each score
    (`train.evaluate_every`). The phase's length is then only an upper limit, but its learning rate follows that
    length."""
    masking: MaskingConfig = MaskingConfig()
    """Which tokens are masked and predicted."""
    document_range: DocumentRange = (0.0, 1.0)
    """Share of the training documents to read, as a range of their text hash; [0, 0.9] and [0.9, 1] are disjoint."""
    data: Annotated[UserPath, AfterValidator(glue_folder)] | None = known_by_content(None)
    """Separate data for this phase instead of the run's: an `examples` folder, or files in the formats of NVIDIA,
    MLCommons, LDDL, Hugging Face datasets or Megatron, made with the same vocabulary; if `train.objective` is
    classification, a folder of labelled texts, or a task of GLUE by name (`glue/sst2`), which is looked for in GLUE_DIR
    and in the caches of Hugging Face."""
    quarantine: bool = known_by_content(False)
    """Whether to leave out and list damaged files of `data` instead of raising an error."""

    @model_validator(mode="after")
    def _one_length(self) -> PhaseConfig:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(LENGTHS)}; given: {', '.join(given) or 'none'}")
        if self.steps is not None and (wrong := self.wrong_end(self.steps)):
            raise ValueError(wrong)
        if self.quarantine and self.data is None:
            raise ValueError("quarantine applies to the files of data: set data, or leave quarantine out")
        if self.batch_warmup and (wrong := self._wrong_growth()):
            raise ValueError(f"batch_warmup {[list(pair) for pair in self.batch_warmup]} {wrong}")
        if self.micro_batch != "auto" and self.micro_batch > self.batch:
            raise ValueError(f"micro_batch {self.micro_batch} is larger than the global batch {self.batch}")
        # Each of them sets the size of a forward pass: two could contradict each other.
        if self.micro_tokens and (self.micro_batch or self.packing):
            raise ValueError("micro_tokens already sets the size of a forward pass: leave micro_batch and packing out")
        if 0 < self.micro_tokens < self.length:
            raise ValueError(f"micro_tokens {self.micro_tokens} is too small for one sequence of length {self.length}")
        if self.hours is not None and self.warmup >= 1:
            raise ValueError(
                f"warmup {self.warmup} is a number of steps, but with hours the learning rate follows time: give a "
                "share"
            )
        # A share can be checked for any number of steps, so 1 is enough.
        known = self.steps or (1 if self.warmup < 1 else 0)
        if known and (wrong := self.wrong_warmup(known)):
            raise ValueError(wrong)
        return self

    def _wrong_growth(self) -> str:
        """Return why the pairs [step, sequences] do not grow from step 0 to the batch; "" if they do."""
        steps, sizes = zip(*self.batch_warmup, strict=True)
        if steps[0] != 0:
            return f"starts at step {steps[0]}; give the size at step 0 first"
        if sizes[0] < 1 or any(a >= b for pairs in (steps, sizes) for a, b in pairwise(pairs)):
            return "does not grow; every pair must have a later step and a larger size than the previous pair"
        if sizes[-1] != self.batch:
            return f"ends with {sizes[-1]}, but batch is {self.batch}; end it with [STEP, {self.batch}]"
        return ""

    def wrong_end(self, steps: int) -> str:
        """Return why a phase of `steps` steps cannot end where `end_after` says; "" if it can."""
        if self.end_after is None or self.end_after <= steps:
            return ""
        return f"end_after {self.end_after:,} is more than the phase's {steps:,} steps; lower it, or leave it out"

    def known_steps(self) -> int | None:
        """Return the phase's length in optimizer steps; None if it depends on its examples."""
        return BatchSizes(self.batch, self.batch_warmup).steps_of(self.samples) if self.samples else self.steps

    def warmup_steps(self, steps: int) -> float:
        """Return the warm-up of a phase of `steps` steps, in steps; fractional if it is a share."""
        return self.warmup if self.warmup >= 1 else self.warmup * steps

    def wrong_warmup(self, steps: int) -> str:
        """Return why a phase of `steps` steps has no room for its warm-up; "" if it has."""
        warmup = self.warmup_steps(steps)
        if warmup > steps:
            return f"warmup {warmup:,} is more than the phase's {steps:,} steps; shorten it, or give a share below 1"
        if before := self.schedule.warmup_before if isinstance(self.schedule, PolyNvidiaSchedule) else 0:
            if self.warmup < 1:
                return (
                    f"schedule.warmup_before {before:,} is a number of warm-up steps: give warmup in steps, not as a "
                    "share"
                )
            if before >= warmup:
                return (
                    f"schedule.warmup_before {before:,} leaves nothing of warmup {warmup:,}; lower it, or leave it out"
                )
        decay = self.schedule.decay if isinstance(self.schedule, WsdSchedule) else 0.0
        if warmup + decay * steps > steps * (1 + 1e-9):
            return f"warmup {self.warmup:g} and schedule.decay {decay:g} are more than the phase together; shorten one"
        return ""

    @property
    def micro_batching(self) -> MicroBatching:
        """How a rank's sequences are divided into forward passes."""
        # `auto` depends on the machine: until training starts it stands for the entire batch.
        size = self.batch if self.micro_batch in (0, "auto") else int(self.micro_batch)
        return MicroBatching(size, self.length if self.packing else 0, self.micro_tokens)
