"""Reads preemption notices from a cloud's metadata service, using the standard library.

Azure: Scheduled Events, api-version 2020-07-01. AWS: `spot/instance-action` with an IMDSv2 token. Google:
`instance/preempted`. No response contains a secret, and nothing is sent but the request.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bertwright.core.json_values import parse_json
from bertwright.train.spot.config import AwsNoticeConfig, AzureNoticeConfig, GcpNoticeConfig

PATIENCE = 10.0
"""Timeout of a request, in seconds."""
_LONGEST = 2**20
"""Maximum size of a response, in bytes."""
_TAKEN = ("Preempt", "Terminate")
"""Azure events after which the machine is gone."""
# A proxy from the environment cannot reach this machine's metadata.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Notices = dict[str, datetime | None]
"""Announced events, named as in log messages, with their time (UTC) if known."""
Config = AzureNoticeConfig | AwsNoticeConfig | GcpNoticeConfig


def notices(config: Config) -> Notices:
    """Return the notices currently in force for this machine.

    Raises `OSError` if there is no response, `ValueError` if the response cannot be parsed.
    """
    match config:
        case AzureNoticeConfig():
            return _of_azure(config.address)
        case AwsNoticeConfig():
            return _of_aws(config.address)
        case GcpNoticeConfig():
            return _of_google(config.address)


def _of_azure(address: str) -> Notices:
    answer = _ask(f"{address}/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"})
    events = _member(parse_json(answer), "Events")
    found = Notices()
    # Includes events of other machines of the scale set: a training with ranks there is stopped with them, and for one
    # without, an extra checkpoint does no harm.
    for event in events if isinstance(events, list) else []:
        if (kind := _member(event, "EventType")) in _TAKEN:
            when = _member(event, "NotBefore")  # "Mon, 19 Sep 2016 18:29:47 GMT"; empty once it has begun
            moment = parsedate_to_datetime(str(when)) if when else None
            found[f"{kind} {_member(event, 'EventId')}"] = moment
    return found


def _of_aws(address: str) -> Notices:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _ask(f"{address}/latest/api/token", lifetime, "PUT").decode("ascii")
    try:
        answer = _ask(f"{address}/latest/meta-data/spot/instance-action", {"X-aws-ec2-metadata-token": token})
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:  # nothing is announced
            return {}
        raise
    action = parse_json(answer)
    when = datetime.fromisoformat(str(_member(action, "time")))
    return {str(_member(action, "action")): when}


def _of_google(address: str) -> Notices:
    answer = _ask(f"{address}/computeMetadata/v1/instance/preempted", {"Metadata-Flavor": "Google"})
    return {"preempted": None} if answer.strip() == b"TRUE" else {}


def seconds_left(moment: datetime) -> float:
    """Return the seconds until `moment`, which is taken as UTC if it has no time zone."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()


def _ask(url: str, headers: Mapping[str, str], method: str = "GET") -> bytes:
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    with _DIRECT.open(request, timeout=PATIENCE) as answer:
        data: bytes = answer.read(_LONGEST)
        return data


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise ValueError(f"the answer has no {name}")
    return value[name]
