"""What a process that failed is said to have failed by."""

from tests.rows import each_row

from bertwright.trial.child import why_failed


@each_row(
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


def test_ranks_that_print_at_once_may_share_a_line() -> None:
    line = b'{"error": {"code": 3, "message": "the batch is too large", "hint": ""}}'
    for out in (line + line + b"\n\n", b"\n" + line + b"\n", line + b'{"error": {"co', b'{"error": {"co' + line):
        assert why_failed(out, b"", 3) == "the batch is too large"
    stopped = line.replace(b"3", b"75").replace(b"the batch is too large", b"stopped")
    assert why_failed(line + stopped, b"", 3) == "the batch is too large"
