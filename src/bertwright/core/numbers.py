"""Numbers for people: every command and page shows the same quantity in the same way."""

from __future__ import annotations

NAN = "NaN"
"""Shown for NaN, which is null in JSON."""


def size_of(size: float) -> str:
    """Bytes in three digits and a decimal unit: 99.5 MB, 1.23 GB, 412 kB."""
    return _in_units(size, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))) or f"{size:.0f} bytes"


def short_count(value: float) -> str:
    """A count in at most four characters and a unit: 12,345,678 as 12.3 M."""
    if short := _in_units(value, ((1e12, "T"), (1e9, "G"), (1e6, "M"))):
        return short
    return f"{value / 1e3:.3g} k" if round(value) >= 10_000 else f"{value:,.0f}"


def pluralize(number: int, noun: str) -> str:
    """A number with its noun: 1 document, 1,801 documents."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def amount(value: float) -> str:
    """A number with three digits, or all digits before the point: 0.0123, 1.2, 3.45, 1,234."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}" if value >= 0.001 or not value else "under 0.001"


def duration(seconds: float) -> str:
    """Seconds as 8.2 s, 3 min 20 s, 5 h 12 min or, from two days on, 8 days 15 h."""
    # Rounded first, otherwise 59.97 s would be 60.0 s, and 119.7 s would be 1 min 60 s.
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days:,} days {hours} h"


def rough_duration(seconds: float) -> str:
    """Seconds in the unit that keeps the number small, such as "2 minutes"."""
    for size, unit in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            amount = seconds / size
            return f"{amount:.1f} {unit}" if amount < 9.95 and unit != "minutes" else f"{amount:.0f} {unit}"
    return f"{seconds:.0f} seconds" if seconds >= 1.5 else "a second"


def step_duration(seconds: float) -> str:
    """Seconds as 0.12 ms, 35 ms, 2.4 s, 1,234 s."""
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def time_left(seconds: float | None) -> str:
    """Seconds as 0:12:30 or, from a day on, 3d 04:05 (hours and minutes)."""
    if seconds is None:
        return NAN
    minutes, rest = divmod(round(seconds), 60)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days:,}d {hours:02}:{minutes % 60:02}"
    return f"{hours}:{minutes % 60:02}:{rest:02}"


def percent(share: float | None, digits: int | None = None) -> str:
    """0.1234 as 12.3 %, with a non-breaking space; None as NaN. By default one digit, none for whole percentages."""
    if share is None:
        return NAN
    if digits is None:
        digits = 0 if round(share * 100, 1) == round(share * 100) else 1
    return f"{share * 100:.{digits}f}\u00a0%"


def number(value: float) -> str:
    """A number with thousands separators; integers without a fraction, others with about four digits."""
    # JSON may have 1.0 for a setting written as 1.
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def operations(tera: float) -> str:
    """Tera-operations (10^12) in the unit that keeps the number small: 45,600 as 45.6 PFLOP."""
    units = ((1e9, "ZFLOP"), (1e6, "EFLOP"), (1e3, "PFLOP"), (1.0, "TFLOP"), (1e-3, "GFLOP"))
    size, unit = next(((size, unit) for size, unit in units if tera >= size), (1e-6, "MFLOP"))
    return f"{tera / size:,.3g} {unit}"


def _in_units(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """`value` in the largest of `units` of which there is at least one; "" if there is none."""
    for size, unit in units:
        # Rounded first, otherwise 999,999 would be 1e+03 k.
        if (rounded := float(f"{value / size:.3g}")) >= 1:
            return f"{rounded:.3g} {unit}" if rounded < 1000 else f"{value / size:,.0f} {unit}"
    return ""
