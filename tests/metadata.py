"""The metadata services of clouds, on this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.server import Quiet, listening


class Metadata:
    """The metadata services of all three clouds at one address, as they answer where nothing or something comes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.taken: datetime | None = None
        """When the machine goes; None: it stays."""
        self.answer: bytes | None = None
        """In the place of any answer."""
        self.asked: list[str] = []

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(f"{handler.command} {handler.path}")
        status, data = 200, self.answer
        if data is None:
            status, data = self._of(handler)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _of(self, handler: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        told, asked = handler.headers, f"{handler.command} {handler.path}"
        if asked == "GET /metadata/scheduledevents?api-version=2020-07-01" and told["Metadata"] == "true":
            events = [event("Freeze", "f1", datetime.now(UTC))]
            return 200, json.dumps({"DocumentIncarnation": 2, "Events": events + self._events()}).encode()
        if asked == "PUT /latest/api/token" and told["X-aws-ec2-metadata-token-ttl-seconds"] == "60":
            return 200, b"a-token=="
        if asked == "GET /latest/meta-data/spot/instance-action" and told["X-aws-ec2-metadata-token"] == "a-token==":
            action = {"action": "terminate", "time": self.taken and self.taken.strftime("%Y-%m-%dT%H:%M:%SZ")}
            return (200, json.dumps(action).encode()) if self.taken else (404, b"")
        if asked == "GET /computeMetadata/v1/instance/preempted" and told["Metadata-Flavor"] == "Google":
            return 200, b"TRUE" if self.taken else b"FALSE"
        return 400, b""

    def _events(self) -> list[dict[str, Any]]:
        return [event("Preempt", "p1", self.taken)] if self.taken else []


def event(kind: str, name: str, when: datetime) -> dict[str, Any]:
    return {
        "EventId": name,
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": ["worker_0"],
        "EventStatus": "Scheduled",
        "NotBefore": format_datetime(when, usegmt=True),
    }


@contextmanager
def serving_metadata() -> Iterator[Metadata]:
    """Running services, stopped at the end."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            service.reply(self)

        do_PUT = do_GET

    with listening(Handler) as address:
        service = Metadata(address)
        yield service
