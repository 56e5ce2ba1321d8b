"""Tests that walk a table: one case for the whole table, whose failure names every row that fails.

`pytest.mark.parametrize` is for cases that are slow, that are selected by their ids, or that skip by themselves.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]
_NAMED = type(pytest.param())


def each_row(names: str | Sequence[str], table: Iterable[Any]) -> Callable[[Test], Test]:
    """Runs the test for each row of a table, all rows even if some fail, and fails with the errors of those that did.

    `names` and `table` are those of `pytest.mark.parametrize`: a row is one value for a single name, else as many
    values as there are names; `pytest.param(..., id=...)` names a row. Each row has a `tmp_path` and a `monkeypatch` of
    its own, and starts with nothing in `capsys` and `caplog`; other fixtures are shared by the rows, which therefore
    must not change them.
    """
    single = isinstance(names, str) and "," not in names
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [row if isinstance(row, _NAMED) else pytest.param(*((row,) if single else row), id=None) for row in table]

    def walk(test: Test) -> Test:
        signature = inspect.signature(test)
        if not rows or any(row.marks for row in rows):
            raise ValueError(f"the table of {test.__name__} needs rows, and rows without marks")

        @wraps(test)
        def every_row(**fixtures: Any) -> None:
            errors: list[BaseException] = []
            failed: list[str] = []
            for number, row in enumerate(rows):
                try:
                    _run_row(test, dict(zip(columns, row.values, strict=True)), fixtures, number)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failed.append(str(row.id or _shown(row.values)))
                    error.add_note(f"row {number}: {failed[-1]}")
                    errors.append(error)
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(rows)} rows fail: {'; '.join(failed)}", errors)

        shared = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        every_row.__signature__ = signature.replace(parameters=shared)  # type: ignore[attr-defined]
        return every_row

    return walk


def _run_row(test: Test, row: dict[str, Any], fixtures: dict[str, Any], number: int) -> None:
    fixtures = dict(fixtures)
    if "tmp_path" in fixtures:
        folder: Path = fixtures["tmp_path"] / f"row{number}"
        folder.mkdir()
        fixtures["tmp_path"] = folder
    if "capsys" in fixtures:
        fixtures["capsys"].readouterr()
    if "caplog" in fixtures:
        fixtures["caplog"].clear()
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "monkeypatch" in fixtures:
            fixtures["monkeypatch"] = monkeypatch
        test(**row, **fixtures)


def _shown(row: tuple[Any, ...], longest: int = 160) -> str:
    text = ", ".join(map(repr, row))
    return text if len(text) <= longest else text[: longest - 1] + "…"
