"""The rows of metrics as columns, and their reduction to what a screen shows."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.rows import each_row

from bertwright.watch.rows import Rows, View


def write(path: Path, rows: list[Any], mode: str = "w") -> Rows:
    with path.open(mode) as file:
        file.writelines(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    return Rows(path)


def made(count: int, **further: Any) -> list[dict[str, Any]]:
    return [
        {"total_steps": i, "tokens_seen": 10 * i, "seconds": i / 2, "mlm_loss": math.sin(i), **further}
        for i in range(1, count + 1)
    ]


def plain(rows: list[dict[str, Any]], key: str, axis: str, size: float) -> dict[float, tuple[float, float, float]]:
    """The lowest, highest and mean value of every bucket, the simple way."""
    buckets: dict[float, list[float]] = {}
    for row in rows:
        if row.get(key) is not None:
            buckets.setdefault(math.floor(row[axis] / size), []).append(row[key])
    return {bucket: (min(v), max(v), sum(v) / len(v)) for bucket, v in buckets.items()}


@each_row("axis", ["total_steps", "tokens_seen", "seconds"])
def test_each_bucket_has_the_lowest_highest_and_mean_value(axis: str, tmp_path: Path) -> None:
    given = made(5000)
    for row in given[::7]:
        del row["mlm_loss"]
    for row in given[1000:1600]:
        row["mlm_loss"] = None
    rows = write(tmp_path / axis, given)
    while rows.read(10_000):
        pass
    low, high = rows.extent(axis)
    found = rows.reduce(View(axis, low, high, 300, ["mlm_loss", "nothing"]))
    assert rows.count == 5000 and 150 < len(found["x"]) <= 302 and list(found["keys"]) == ["mlm_loss"]
    expected = plain(given, "mlm_loss", axis, found["size"])
    values = found["keys"]["mlm_loss"]
    for i, bucket in enumerate(found["bucket"]):
        three = [values[name][i] for name in ("low", "high", "mean")]
        wanted = expected.get(bucket)
        assert three == [None] * 3 if wanted is None else np.allclose(three, wanted, rtol=1e-4, atol=1e-6), bucket
    assert found["x"] == sorted(found["x"]) and found["x"][-1] == high
    json.dumps(found, allow_nan=False)


def test_rows_that_are_few_are_given_as_they_are(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows", made(20))
    rows.read()
    found = rows.reduce(View("total_steps", 1, 20, 600, ["mlm_loss"]))
    assert found["x"] == list(range(1, 21)) and list(found["keys"]["mlm_loss"]) == ["mean"]
    assert np.allclose(found["keys"]["mlm_loss"]["mean"], [math.sin(i) for i in range(1, 21)], rtol=1e-4)
    near = rows.reduce(View("total_steps", 5, 8, 600, ["mlm_loss"]))
    assert near["x"] == [4, 5, 6, 7, 8, 9], "and a row on each side, where the lines leave the chart"


def test_new_rows_change_the_last_buckets_only(tmp_path: Path) -> None:
    path, given = tmp_path / "rows", made(3000)
    rows = write(path, given[:2900])
    rows.read()
    view = View("total_steps", 0, 3000, 200, ["mlm_loss"])
    first = rows.reduce(view)
    write(path, given[2900:], "a")
    rows.read()
    change = rows.reduce(view._replace(known=(first["generation"], first["rows"], first["size"])))
    whole = rows.reduce(view)
    assert change["from"] > 0 and len(change["x"]) < 20 and whole["from"] == -1
    kept = [i for i, bucket in enumerate(first["bucket"]) if bucket < change["from"]]
    assert [first["x"][i] for i in kept] + change["x"] == whole["x"]
    for name in ("low", "high", "mean"):
        before = [first["keys"]["mlm_loss"][name][i] for i in kept]
        assert before + change["keys"]["mlm_loss"][name] == whole["keys"]["mlm_loss"][name]
    write(path, given[:1000])
    rows.read()
    again = rows.reduce(view._replace(known=(whole["generation"], whole["rows"], whole["size"])))
    assert again["from"] == -1 and rows.count == 1000, "rows were cut: all buckets are given again"


def test_a_resumed_training_has_each_step_once(tmp_path: Path) -> None:
    path, given = tmp_path / "rows", made(500)
    rows = write(path, [*given, '{"total_steps": 501, "ml'])
    rows.read()
    assert rows.count == 500 and rows.version == (0, 500)
    again = [{**row, "mlm_loss": 7.0} for row in given[300:450]]
    write(path, [*given[:300], *again])
    rows.read()
    assert rows.count == 450 and rows.version == (1, 450) and rows.last["mlm_loss"] == 7.0
    shown = rows.reduce(View("total_steps", 290, 310, 600, ["mlm_loss"]))["keys"]["mlm_loss"]["mean"]
    assert shown[-5:] == [7.0] * 5 and shown[0] != 7.0
    path.unlink()
    rows.read()
    assert rows.count == 0 and rows.last == {} and rows.phases() == []
    assert rows.reduce(View("total_steps", 0, 1, 600, ["mlm_loss"]))["x"] == []


DAMAGED = [
    "\n", "null\n", "[]\n", "{\n", "\0\0\0\n", "\ud7ff\n", "[" * 100_000 + "\n", '{"mlm_loss": 1}\n',
    '{"total_steps": "3"}\n', '{"total_steps": true}\n', '{"total_steps": null}\n', '{"total_steps": NaN}\n',
    '{"total_steps": 1e999}\n', '{"total_steps": -5}\n', '{"total_steps": 1' + "0" * 5000 + "}\n",
]  # fmt: skip


def test_damaged_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    given = made(30)
    mixed: list[Any] = []
    for number, row in enumerate(given):
        mixed += [row, *DAMAGED[number % len(DAMAGED) :][:1]]
    rows = write(tmp_path / "rows", mixed)
    rows.read()
    assert (rows.count, rows.damaged) == (30, 30)
    assert rows.reduce(View("total_steps", 0, 30, 600, ["mlm_loss"]))["x"] == list(range(1, 31))
    assert rows.row(rows.at("total_steps", 12.4)) == given[11]


def test_values_of_other_kinds_have_no_point(tmp_path: Path) -> None:
    odd: list[Any] = ["text", [1], {}, True, None, 10**400, 1e300, -1.0]
    rows = write(tmp_path / "rows", [{"total_steps": i, "mlm_loss": value} for i, value in enumerate(odd)])
    rows.read()
    found = rows.reduce(View("total_steps", 0, 8, 600, ["mlm_loss"]))["keys"]["mlm_loss"]["mean"]
    assert found[-1] == -1.0 and found[:3] == [None] * 3 and found[4:7] == [None] * 3
    json.dumps(found, allow_nan=False)


def test_an_axis_that_some_rows_lack_only_grows(tmp_path: Path) -> None:
    given = made(10)
    del given[4]["tokens_seen"], given[5]["seconds"]
    given[6]["tokens_seen"] = 1
    rows = write(tmp_path / "rows", given)
    rows.read()
    for axis in ("tokens_seen", "seconds"):
        found: NDArray[Any] = np.array(rows.reduce(View(axis, 0, 100, 4000, ["mlm_loss"]))["x"])
        assert (np.diff(found) >= 0).all() and rows.extent(axis)[1] == found[-1]


def test_phases_and_what_rows_say_in_words(tmp_path: Path) -> None:
    given = [{"total_steps": i, "phase": int(i > 6)} for i in range(1, 10)]
    given[3] |= {"outside_band": "too high"}  # type: ignore[dict-item]
    stopped = {"total_steps": 9, "stopped": "the loss is not a number"}
    rows = write(tmp_path / "rows", [*given, stopped])
    rows.read()
    assert rows.phases() == [(0, 0.0), (1, 6.0)] and rows.count == 9
    assert [(note.step, note.text) for note in rows.notes] == [(4, "too high"), (9, "the loss is not a number")]
