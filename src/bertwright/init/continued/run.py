"""Write the recipe of a continued training: `init --from FOLDER --source TEXTS`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.files import make_folder, write_atomic
from bertwright.forecast_shapes import Plan
from bertwright.init.answers import parse_hardware, parse_hours, parse_language, parse_machine, parse_out
from bertwright.init.choose import recipe_of, text_of
from bertwright.init.continued.draft import Continued, sections
from bertwright.init.continued.head import head
from bertwright.init.continued.network import Start, read_start
from bertwright.init.texts import CutTexts, NoLanguageError, cut_own_texts, cut_texts, language_of
from bertwright.plan.plan import make_plan


@dataclass(frozen=True)
class Asked:
    """What the user gave; "" for what was left out."""

    start: str
    source: Sequence[str]
    general: Sequence[str] = ()
    language: str = ""
    machine: str = ""
    hours: str = ""
    out: str = ""


def draft_continued(asked: Asked) -> tuple[Continued, Plan]:
    """Write the recipe that `asked` describes; returns what it was drafted from, and its forecast.

    Everything is read and judged before the file is written. Raises `RecipeError`, `ArtifactError` or `DataError` for
    a network or a text that cannot be used.
    """
    out = parse_out(asked.out or "continued.toml")
    machine_word = asked.machine or "here"
    machine = parse_machine(machine_word)
    hours = parse_hours(asked.hours) if asked.hours else None
    start = read_start(Path(asked.start).expanduser())
    language = parse_language(asked.language) if asked.language else language_of(asked.source)
    own = cut_own_texts(asked.source, language, start.entries, start.settings)
    general = _general(asked, own, start, language) if asked.general else None
    here = parse_hardware(machine_word) is None
    request = Continued(start, own, general, language, machine, here, hours, out)
    plan = make_plan(recipe_of(sections(request)), {}, machine)
    training = sum(phase["hours"] or 0.0 for phase in plan["phases"])
    if hours is not None and training > hours:
        request = request.within(hours)
        plan = make_plan(recipe_of(sections(request)), {}, machine)
    make_folder(out.parent)
    write_atomic(out, f"{head(request, plan)}\n{text_of(sections(request))}".encode())
    return request, plan


def _general(asked: Asked, own: CutTexts, start: Start, language: str) -> CutTexts:
    """What is known of the general text, which may be in another language than the own one."""
    with suppress(NoLanguageError):  # then it is taken for that of the own text
        language = language_of(asked.general, "--general")
    filtered = not own.filter_is_off
    return cut_texts(asked.general, "general", language, start.entries, start.settings, filtered)
