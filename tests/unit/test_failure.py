"""What a process that failed is said to have failed by."""

import pytest

from bertwright.pipeline.failure import why_failed


@pytest.mark.parametrize(
    ("out", "log", "code", "says"),
    [
        (b'x\n{"error": {"message": "no disk"}}\n', b"else\n", 1, "no disk"),
        (b'{"stages": []}', b"first\nlast \xff\n\n", 2, "last \ufffd"),
        (b"", b"", 3, "exit code 3"),
        (b"", b" \n", 3, "exit code 3"),
        (b"", b"some line", -9, "ended by SIGKILL; it probably ran out of memory"),
        (b"", b"", -15, "ended by SIGTERM"),
    ],
)
def test_why_a_process_failed(out: bytes, log: bytes, code: int, says: str) -> None:
    assert why_failed(out, log, code) == says
