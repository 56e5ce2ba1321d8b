"""Recipe settings for the cloud to query for preemption notices. Does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bertwright.core.config import Section, by_kind

Address = Annotated[str, Field(pattern=r"^http://[A-Za-z0-9.\[\]:-]+$")]
Seconds = Annotated[float, Field(gt=0)]


class NoNoticeConfig(Section):
    """No cloud is queried."""

    kind: Literal["none"] = "none"
    """Selects this choice."""


class _AskedConfig(Section):
    """Settings common to all clouds."""

    every: Seconds = 5.0
    """Seconds between two queries."""
    ends: bool = False
    """Whether training exits with code 75 once it has saved, for a scheduler that restarts it after that code. If
    false, it continues until the machine is gone: not every notice comes true, and the scheduler may count such an exit
    as a failure."""


class AzureNoticeConfig(_AskedConfig):
    """Azure's Scheduled Events: `Preempt` arrives 30 seconds or more before the machine is taken away, and may be
    withdrawn; `Terminate` arrives if the scale set announces termination."""

    kind: Literal["azure"] = "azure"
    """Selects this cloud."""
    address: Address = "http://169.254.169.254"
    """Address of its metadata service, which a machine queries about itself."""


class AwsNoticeConfig(_AskedConfig):
    """AWS's spot instance action, which arrives two minutes before a spot instance is taken away (IMDSv2)."""

    kind: Literal["aws"] = "aws"
    """Selects this cloud."""
    address: Address = "http://169.254.169.254"
    """Address of its metadata service, which a machine queries about itself."""


class GcpNoticeConfig(_AskedConfig):
    """Google Compute Engine's preemption notice, which arrives 30 seconds before the machine is taken away."""

    kind: Literal["gcp"] = "gcp"
    """Selects this cloud."""
    address: Address = "http://metadata.google.internal"
    """Address of its metadata service, which a machine queries about itself."""


SpotNoticeConfig = Annotated[
    NoNoticeConfig | AzureNoticeConfig | AwsNoticeConfig | GcpNoticeConfig,
    Field(discriminator="kind"),
    BeforeValidator(by_kind),
]
"""Which cloud to query for preemption notices."""
