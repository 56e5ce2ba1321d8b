"""The recipe section `[[train.phases]]`: length, batch, rates and data of one phase. Knows no torch."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from bertwright.core.config import Section, UserPath, extendable, known_by_content, runtime_only
from bertwright.examples.config import DocumentRange, Length, MicroBatching
from bertwright.examples.masking_config import MaskingConfig
from bertwright.optim.config import ScheduleConfig
from bertwright.optim.schedule import LinearSchedule, PolyNvidiaSchedule
from bertwright.optim.wsd import WsdSchedule

LENGTHS = ("steps", "epochs", "samples", "tokens")
ONE_PASS: dict[str, Any] = {"micro_batch": 0, "micro_tokens": 0, "packing": False}
"""The keys that say how large a forward pass is, where a rank's whole share is one, whatever else the recipe says."""


def _share_or_steps(value: Any, number: ValidatorFunctionWrapHandler) -> float:
    """A share below 1 as a float, steps as an int: 1 is one step, and 1.5 is neither."""
    given: float = value if type(value) is int and value >= 1 else number(value)
    if isinstance(given, float) and given >= 1:
        whole = f": write {given:.0f} for steps" if given.is_integer() and not isinstance(value, bool) else ""
        raise ValueError(f"is neither a share below 1 nor a whole number of steps{whole}")
    return given


_KEPT_WHOLE = PlainSerializer(lambda value: value, when_used="json")
"""Else a number of steps would be written into recipe.toml as a float, which is neither a share nor such a number."""


class PhaseConfig(Section):
    """One phase: sequences of one length, one batch size, one learning-rate schedule, one budget."""

    length: Length
    """Longest sequence with [CLS] and [SEP], in tokens."""
    batch: int = Field(ge=1)
    """Global batch: sequences per optimizer step over all ranks and micro-batches."""
    batch_warmup: tuple[tuple[int, int], ...] = ()
    """How the global batch grows to `batch`: pairs [step, sequences], from that step of the phase on, the first of step
    0. Empty: it does not."""
    micro_batch: Annotated[int, Field(ge=0)] | Literal["auto"] = runtime_only(0)
    """Sequences (with `packing`, rows) per forward pass on a rank; 0 takes its whole share, `auto` what fits in memory
    (`train.memory_limit_gb`), half of it where a GPU says it does not. Changes the order of summation, and which
    elements dropout drops, as the two keys below do; a run that goes on keeps the size that `auto` found."""
    micro_tokens: int = runtime_only(0, ge=0)
    """Tokens per forward pass on a rank, in place of `micro_batch`: as many sequences as fit; 0: that counts."""
    packing: bool = runtime_only(False)
    """Whether sequences are packed into rows of `length` tokens, each seeing itself alone; otherwise sequences of
    similar length meet."""
    learning_rate: float = Field(gt=0)
    """Peak learning rate."""
    warmup: Annotated[float, Field(ge=0), WrapValidator(_share_or_steps), _KEPT_WHOLE] = 0.1
    """Share of the phase's steps (below 1), or number of steps (1 or more), in which the rate rises from zero to the
    peak."""
    schedule: ScheduleConfig = LinearSchedule()
    """After the warm-up: straight down (`linear`), as a root (`poly`; `poly_nvidia` has a jump), as half a cosine
    (`cosine`), at the peak and down at the end (`wsd`), or `constant`. A name, or a section of its own where the
    schedule has keys."""
    restart_bias_correction: bool = True
    """Whether the number of updates that the optimizer's bias correction knows starts anew with the phase, as NVIDIA's
    does, while the moments stay; AdamW's updates are then up to 6 times smaller for some hundred steps. A phase that is
    only the decay of the one before goes on counting: false."""
    steps: int | None = extendable(None, ge=1)
    """Length of the phase in optimizer steps. Give exactly one of steps, epochs, samples, tokens."""
    epochs: float | None = extendable(None, gt=0)
    """Length of the phase in passes over its examples."""
    samples: int | None = extendable(None, ge=1)
    """Length of the phase in sequences."""
    tokens: int | None = extendable(None, ge=1)
    """Length of the phase in real (not padding) tokens, reckoned with the mean length of the phase's examples."""
    end_after: int | None = extendable(None, ge=1)
    """Optimizer step after which the phase ends although its length is greater; the rate follows the whole length all
    the same. May be set, moved and taken out while the phase is under way: the run goes on with the next phase."""
    hours: float | None = Field(None, gt=0)
    """Training time after which the phase ends, in hours over all starts, without scoring and saving; its length is
    then the most that it may have. The rate follows time in place of updates, so no two runs have the same rates."""
    target_accuracy: float | None = extendable(None, gt=0, lt=1)
    """Held-out accuracy of masked tokens (a share) at which the phase ends, looked at with each score
    (`train.evaluate_every`); its length is then the most that it may have, and its rates follow that length."""
    masking: MaskingConfig = MaskingConfig()
    """Which tokens are predicted."""
    document_range: DocumentRange = (0.0, 1.0)
    """Share of the training documents to read, as a range of their text hash: [0, 0.9], [0.9, 1] are disjoint."""
    data: UserPath | None = known_by_content(None)
    """Data of its own instead of the run's: an `examples` folder, or files of NVIDIA, MLCommons, LDDL, Hugging Face
    datasets or Megatron, made with the same vocabulary; with `train.objective` classification a folder of labelled
    texts."""
    quarantine: bool = known_by_content(False)
    """Whether damaged files of `data` are left out and listed instead of being an error."""

    @model_validator(mode="after")
    def _one_length(self) -> PhaseConfig:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(LENGTHS)}; here: {', '.join(given) or 'none'}")
        if self.steps is not None and self.end_after is not None and self.end_after > self.steps:
            raise ValueError(f"end_after {self.end_after} lies beyond the phase's {self.steps} steps")
        if self.quarantine and self.data is None:
            raise ValueError("quarantine is about files named by data: give data, or leave quarantine out")
        if self.batch_warmup and (wrong := self._wrong_growth()):
            raise ValueError(f"batch_warmup {[list(pair) for pair in self.batch_warmup]} {wrong}")
        if self.micro_batch != "auto" and self.micro_batch > self.batch:
            raise ValueError(f"micro_batch {self.micro_batch} is larger than the global batch {self.batch}")
        # Each alone says how large a forward pass is: two of them could contradict each other.
        if self.micro_tokens and (self.micro_batch or self.packing):
            raise ValueError("micro_tokens says how large a forward pass is: leave micro_batch and packing out")
        if 0 < self.micro_tokens < self.length:
            raise ValueError(f"micro_tokens {self.micro_tokens} has no room for one sequence of length {self.length}")
        if self.hours is not None and self.warmup >= 1:
            raise ValueError(f"warmup {self.warmup} counts steps, and with hours the rate follows time: give a share")
        # A share says of any length what it says of one step.
        known = self.steps or (1 if self.warmup < 1 else 0)
        if known and (wrong := self.wrong_warmup(known)):
            raise ValueError(wrong)
        return self

    def _wrong_growth(self) -> str:
        """Why pairs [step, sequences] are no growth from step 0 to the batch; "" if they are one."""
        steps, sizes = zip(*self.batch_warmup, strict=True)
        if steps[0] != 0:
            return f"begins at step {steps[0]}; give the size of step 0 first"
        if sizes[0] < 1 or any(a >= b for pairs in (steps, sizes) for a, b in pairwise(pairs)):
            return "does not grow; every pair has a later step and a larger size than the one before it"
        if sizes[-1] != self.batch:
            return f"ends with {sizes[-1]}, and batch is {self.batch}; end it with [STEP, {self.batch}]"
        return ""

    def warmup_steps(self, steps: int) -> float:
        """The warm-up of a phase of so many steps, in steps; fractional where it is a share."""
        return self.warmup if self.warmup >= 1 else self.warmup * steps

    def wrong_warmup(self, steps: int) -> str:
        """Why a phase of so many steps has no room for its warm-up; "" if it has."""
        warmup = self.warmup_steps(steps)
        if warmup > steps:
            return f"warmup {warmup:,} is more than the phase's {steps:,} steps; shorten it, or give a share below 1"
        if before := self.schedule.warmup_before if isinstance(self.schedule, PolyNvidiaSchedule) else 0:
            if self.warmup < 1:
                return (
                    f"schedule.warmup_before {before:,} counts steps of a warm-up: give warmup in steps, not as a share"
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
        """How a rank's sequences become forward passes."""
        # What `auto` is follows from the machine: until training starts it stands for the whole batch.
        size = self.batch if self.micro_batch in (0, "auto") else int(self.micro_batch)
        return MicroBatching(size, self.length if self.packing else 0, self.micro_tokens)
