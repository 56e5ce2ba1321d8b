"""What a run shows: rows under their header, plain lines, a bar with rates."""

import io
import re
from typing import Any

import pytest
import rich.console
from tests.rows import each_row

from bertwright.cli import terminal as terminal_module
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import HEADER, progress_words, row_line

ROW = {
    "phase": 1,
    "step": 30,
    "steps": 40,
    "total_steps": 130,
    "mlm_loss": 2.5,
    "learning_rate": 1e-3,
    "tokens_per_second": 1234.5,
    "data_wait_share": 0.01,
    "remaining_seconds": 61.4,
}
SCORES = {"heldout_mlm_loss": 2.25, "heldout_mlm_accuracy": 0.5, "heldout_nsp_accuracy": 0.75}


def test_every_row_moves_the_bar_also_one_with_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, moved, said = Terminal(), [], list[str]()
    monkeypatch.setattr(terminal, "show", lambda *step: moved.append(step))
    monkeypatch.setattr(terminal, "say", said.append)
    for row in (ROW, {**ROW, **SCORES, "step": 40}, {**ROW, **SCORES}):
        terminal.record(row)
    assert [step[:3] for step in moved] == [("phase 1", 30, 40), ("phase 1", 40, 40), ("phase 1", 30, 40)]
    assert moved[0][3] == "steps, 0:01:01 left, loss 2.500, 1,234 tokens/s"
    assert said[0] == HEADER and len(said) == 3


def test_every_step_moves_the_bar_and_keeps_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, moved = Terminal(), []
    monkeypatch.setattr(terminal, "show", lambda *step: moved.append(step))
    terminal.progress("phase 1", 29, 40, "steps")
    terminal.record(ROW)
    terminal.progress("phase 1", 31, 40, "steps")
    assert moved[0] == ("phase 1", 29, 40, "steps")
    assert moved[2] == ("phase 1", 31, 40, moved[1][3])


def test_the_next_training_begins_without_the_numbers_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, clock = shown(monkeypatch)
    terminal.record({**ROW, "step": 40})
    terminal.progress("phase 1", 40, 40, "steps")
    clock[0] += 60
    terminal.progress("phase 1", 0, 40, "steps")
    assert printed.getvalue().splitlines() == ["phase 1: 0 of 40 steps"]


def test_the_words_of_a_row() -> None:
    more = {"mlm_accuracy": 0.256, "remaining_low_seconds": 58.0, "remaining_high_seconds": 75.0}
    assert progress_words({**ROW, **more, "tflops_per_second": 0.04321}) == (
        "0:01:01 left (0:00:58 to 0:01:15), loss 2.500, 25.6% right, 1,234 tokens/s, 0.0432 TFLOP/s"
    )
    assert progress_words({**ROW, **more, "tflops_per_second": 0.0001}).endswith("1,234 tokens/s")


def shown(monkeypatch: pytest.MonkeyPatch, **console: Any) -> tuple[Terminal, io.StringIO, list[float]]:
    """A terminal that prints into a buffer, and the clock it goes by."""
    printed, clock = io.StringIO(), [100.0]
    make = rich.console.Console
    monkeypatch.setattr("rich.console.Console", lambda **_: make(file=printed, highlight=False, **console))
    monkeypatch.setattr(terminal_module.time, "monotonic", lambda: clock[0])
    return Terminal(), printed, clock


def test_elsewhere_progress_is_a_plain_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, clock = shown(monkeypatch)
    with terminal:
        for second in range(25):
            clock[0] = 100 + second
            terminal.progress("corpus", 5.25 * second, 4500, "MB", documents=1210 * second)
    assert printed.getvalue().splitlines() == [
        "corpus: 58 of 4,500 MB, 0:14:06 left, 5.2 MB/s, 1,210 documents/s",
        "corpus: 116 of 4,500 MB, 0:13:55 left, 5.2 MB/s, 1,210 documents/s",
    ]


def test_a_terminal_has_a_bar_with_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, clock = shown(monkeypatch, force_terminal=True, width=110)
    with terminal:
        for second in (0, 10):
            clock[0] = 100 + second
            terminal.progress("corpus", 3 * second, 60, "MB", documents=40 * second)
        terminal._bars.refresh()
        terminal.say("corpus: a remark")
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.getvalue())
        terminal.progress("corpus", 60, 60, "MB", documents=800)
    assert re.search(r"   corpus [━╸╺]+ +30 of 60 MB, 0:00:10 left, 3\.0 MB/s, 40\.0 documents/s", text)
    assert "corpus: a remark\n" in text


@each_row("step", [3, 1_234_567])
def test_a_bar_fits_in_80_columns_with_step_time_left_and_loss(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, _ = shown(monkeypatch, force_terminal=True, width=80)
    more = {"mlm_accuracy": 0.25, "remaining_low_seconds": 58.0, "remaining_high_seconds": 90061.0}
    with terminal:
        terminal.record({**ROW, **more, "step": step, "steps": 2_345_678, "remaining_seconds": 1_051_500})
        terminal._bars.refresh()
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.getvalue()).replace("\r", "\n").splitlines()
    bars = [line for line in lines if "phase 1" in line and "steps" in line]
    assert bars and all(len(line) <= 80 and "…" not in line for line in bars)
    assert re.match(
        rf"  phase 1 [━╸╺]+ {step:,} of 2,345,678 steps, 12d 04:05 left, loss 2\.500(,.*tokens/s)?$", bars[-1]
    )


def test_a_name_in_brackets_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, _ = shown(monkeypatch, force_terminal=True, width=80)
    with terminal:
        terminal.progress("corpus", 3, 60, "parts of [bold]dump[/bold] [/x]")
        terminal._bars.refresh()
        terminal.say("read [hardware] and [/x]")
    assert "3 of 60 parts of [bold]dump[/bold] [/x]" in printed.getvalue()
    assert "read [hardware] and [/x]" in printed.getvalue()


def test_sentences_wrap_between_words_and_addresses_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, printed, _ = shown(monkeypatch, force_terminal=True, width=40)
    address = "https://ml.azure.com/runs/calm_sea?wsid=/subscriptions/1/workspaces/berts"
    terminal.say("corpus: a remark of some more words than there is place for")
    terminal.say(f"pipeline: job calm_sea, {address}")
    assert printed.getvalue().splitlines() == [
        "corpus: a remark of some more words than",
        "there is place for",
        f"pipeline: job calm_sea, {address}",
    ]


def test_a_row_stands_under_its_header() -> None:
    line = row_line({**ROW, **SCORES})
    assert len(line) == len(HEADER) == 79
    assert line.split() == ["1", "30", "2.500", "2.250", "50.0%", "75.0%", "1.0e-03", "1,234", "1%", "0:01:01"]
    without = row_line({key: value for key, value in {**ROW, **SCORES}.items() if key != "heldout_nsp_accuracy"})
    assert without.split()[5] == "–" and len(without) == len(HEADER)
    large = {"phase": 11, "step": 1_234_567, "tokens_per_second": 5_123_456.7, "remaining_seconds": 1_051_500}
    assert len(wide := row_line({**ROW, **SCORES, **large})) == 79
    assert wide.split()[-2:] == ["12d", "04:05"] and wide.split()[:2] == ["11", "1,234,567"]


def test_what_is_no_number_is_shown_as_such() -> None:
    line = row_line({**ROW, **SCORES, "mlm_loss": None, "heldout_mlm_loss": None})
    assert line.split()[2:5] == ["NaN", "NaN", "50.0%"]
