"""The recipe's choice of the cloud that is asked whether the machine is to be taken away. Knows no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind

Address = Annotated[str, Field(pattern=r"^http://[A-Za-z0-9.\[\]:-]+$")]
Seconds = Annotated[float, Field(gt=0)]


class NoNoticeConfig(Section):
    """Nobody is asked."""

    kind: Literal["none"] = "none"
    """Names this choice."""


class _AskedConfig(Section):
    """What all clouds that are asked have in common."""

    every: Seconds = 5.0
    """Seconds between two questions."""
    ends: bool = False
    """Whether training ends with exit code 75 once it has saved, for a scheduler that starts it anew after that. Else
    it goes on until the machine is gone: not every notice comes true, and such an end may count as a failure there."""


class AzureNoticeConfig(_AskedConfig):
    """Azure's Scheduled Events: `Preempt` comes 30 seconds or more before the machine goes, and may be withdrawn;
    `Terminate` where the scale set announces that."""

    kind: Literal["azure"] = "azure"
    """Names this cloud."""
    address: Address = "http://169.254.169.254"
    """Where its machines ask about themselves."""


class AwsNoticeConfig(_AskedConfig):
    """The instance action of AWS, which comes two minutes before a spot instance goes (IMDSv2)."""

    kind: Literal["aws"] = "aws"
    """Names this cloud."""
    address: Address = "http://169.254.169.254"
    """Where its machines ask about themselves."""


class GcpNoticeConfig(_AskedConfig):
    """The pre-emption of Google Compute Engine, which comes 30 seconds before the machine goes."""

    kind: Literal["gcp"] = "gcp"
    """Names this cloud."""
    address: Address = "http://metadata.google.internal"
    """Where its machines ask about themselves."""


SpotNoticeConfig = Annotated[
    NoNoticeConfig | AzureNoticeConfig | AwsNoticeConfig | GcpNoticeConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""Who is asked whether the machine is to be taken away."""
