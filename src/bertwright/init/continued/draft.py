"""Draft the recipe of a continued training as sections of keys, each with its value and the reason for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertwright.check.recipe.advice import WORTHWHILE
from bertwright.core.numbers import pluralize
from bertwright.core.toml_values import value_text
from bertwright.corpus.characters import spaced
from bertwright.corpus.wikis import wikis
from bertwright.estimate.machine import Machine
from bertwright.init.continued.network import Start
from bertwright.init.continued.settings import (
    OWN_SHARE,
    SHARE,
    WARMUP,
    Known,
    Settings,
    general_weight,
    settings_for,
)
from bertwright.init.draft import Line, Section, filter_lines, source_lines
from bertwright.init.texts import CutTexts


@dataclass(frozen=True)
class Continued:
    """Everything that the recipe is drafted from."""

    start: Start
    own: CutTexts
    general: CutTexts | None
    language: str
    machine: Machine
    here: bool
    """Whether the machine is this one."""
    hours: float | None
    out: Path
    limited: bool = False
    """Whether the hours end the training before its epochs."""

    @property
    def known(self) -> Known:
        """What the settings follow from."""
        network = self.start.given.network
        return Known(
            self.own.tokens,
            self.own.documents,
            self.own.typical,
            network.hidden_size,
            network.max_position_embeddings,
            self.machine.ranks,
            self.start.peak,
        )

    @property
    def weight(self) -> tuple[float, float]:
        """The weight of the general text, and the share of all text that it then has; zeros without it."""
        return general_weight(self.own.bytes, self.general.bytes) if self.general else (0.0, 0.0)

    @property
    def settings(self) -> Settings:
        """The settings that follow."""
        return settings_for(self.known, self.weight[1])

    def within(self, hours: float) -> Continued:
        """The same, ended after these hours of training."""
        return replace(self, hours=hours, limited=True)


def sections(request: Continued) -> list[Section]:
    """The sections of the recipe."""
    return [
        ("[corpus]", list(_corpus(request))),
        *(("[[corpus.source]]", source_lines(source, "what the network learns")) for source in request.own.sources),
        *_general_sources(request),
        ("[vocab]", list(_vocab(request))),
        ("[examples]", list(_examples(request))),
        ("[model]", list(_model(request))),
        ("[optim]", list(_optimizer(request))),
        ("[train]", list(_train(request))),
        ("[[train.phases]]", list(_phase(request))),
        ("[evaluate]", list(_evaluate(request))),
    ]


def _corpus(request: Continued) -> Iterator[Line]:
    yield _line("language", request.language, wikis().get(request.language, "the language of the text"))
    other = request.general.language if request.general else request.language
    if other != request.language and not request.own.filter_is_off:
        yield _line("filter.languages", [request.language, other], "the general text is in another language")
    yield from filter_lines(request.own)


def _general_sources(request: Continued) -> Iterator[Section]:
    if request.general is None:
        return
    weight, share = request.weight
    # One weight for all files, so that they are drawn from in proportion to their size.
    enough = f"{share:.1%} of what is read" + ("" if share > 0.9 * SHARE else "; all of it, more would be better")
    for source in request.general.sources:
        about = f"share of its documents: {enough}"
        why = "a little of such text as it was trained on, against forgetting (Ibrahim et al. 2024)"
        line = _line("weight", weight, about)
        yield "[[corpus.source]]", [*source_lines(source, why), *([line] if weight != 1.0 else [])]


def _vocab(request: Continued) -> Iterator[Line]:
    start, cut = request.start, request.own.cut
    yield _line(
        "file", str(start.given.entries_file), f"the network's own: {cut.fertility:.2f} tokens per word of the text"
    )
    stated = "guessed from its entries" if start.guessed else "as it was made"
    yield _line("lower_case", start.settings.lower_case, stated)
    yield from (_line(name, value, "") for name, value in start.settings.stated.items() if name != "lower_case")


def _examples(request: Continued) -> Iterator[Line]:
    why = "no pairs: masked words alone teach as much (Liu et al. 2019)"
    if request.start.pairs:
        why += "; its next-sentence head and pooler are left out. To train them on, leave this key out"
    yield _line("plan", "full-sentences", why)
    passes = min(request.settings.epochs, WORTHWHILE)
    yield _line("passes", passes, "the text is cut anew in each epoch" if passes > 1 else "it is read once")
    share = request.settings.heldout
    held = pluralize(max(1, round(share * request.own.documents)), "document")
    yield _line("heldout", share, f"about {held} of the own text, to score")


def _model(request: Continued) -> Iterator[Line]:
    for key, value in request.start.model.items():
        yield _line(key, value, "the network as it is" if key in ("config", "size") else "")


def _optimizer(request: Continued) -> Iterator[Line]:
    own = request.start.trained is not None
    yield _line(
        "kind", request.start.optimizer, "as the network was trained" if own else "as published networks were trained"
    )


def _train(request: Continued) -> Iterator[Line]:
    yield _line("init_from", str(request.start.folder), "the weights; its optimizer starts anew")
    # With the seed of its own training, dropout and order would repeat.
    yield _line(
        "seed", int((request.start.trained or {}).get("train", {}).get("seed", 42)) + 1, "another than its training had"
    )
    yield _line("heldout_sequences", 1024, "scored ten times")
    if not request.here and not request.machine.device.gpu:
        yield _line("device", "cpu", "")


def _phase(request: Continued) -> Iterator[Line]:
    known, found = request.known, request.settings
    yield _line("length", found.length, _why_length(request))
    tokens = found.batch * found.length
    yield _line("batch", found.batch, f"sequences per update, {tokens:,} tokens; about {found.updates:,} updates")
    if request.machine.device.gpu:
        yield _line("micro_batch", "auto", "as many sequences at once as fit in memory")
    else:
        yield _line("micro_batch", min(found.batch, max(1, 4096 // found.length)), "sequences at once")
    if known.peak is not None:
        why = f"{OWN_SHARE:g} times the peak of its training: higher learns more and forgets more (Gupta et al. 2023)"
    else:
        why = (
            "for this batch and width (Gururangan et al. 2020); higher learns more and forgets more (Gupta et al. 2023)"
        )
    yield _line("learning_rate", found.rate, why)
    yield _line(
        "warmup", WARMUP, "from zero again (Gururangan et al. 2020); its length matters little (Gupta et al. 2023)"
    )
    yield from _masking(request)
    yield _line("epochs", found.epochs, _why_epochs(request))
    if request.limited and request.hours is not None:
        yield _line("hours", float(f"{request.hours:.3g}"), "ends it before that; the learning rate follows the time")


def _why_length(request: Continued) -> str:
    length, typical = request.settings.length, request.own.typical
    if length >= typical:
        return f"half of the text is in documents of at most {typical:,} tokens"
    if length == request.known.positions:
        return f"as much as the network reads; half of the text is in documents of more than {typical:,} tokens"
    return f"half of the text is in documents of more than {typical:,} tokens, and longer sequences cost more"


def _why_epochs(request: Continued) -> str:
    epochs = request.settings.epochs
    if epochs > WORTHWHILE:
        return f"the text is very small: read more than {WORTHWHILE} times, it is worth less each time"
    if epochs == WORTHWHILE:
        return "so often, repeated text is worth nearly as much as new text (Muennighoff et al. 2023)"
    return "more is hardly needed of this much text"


def _masking(request: Continued) -> Iterator[Line]:
    phase = request.start.phase
    if phase:
        masking = phase["masking"]
        if masking["rate"] != 0.15:
            yield _line("masking.rate", masking["rate"], "as in its training")
        if masking["unit"] == "words":
            yield _line("masking.unit", "words", "as in its training")
        return
    if request.start.given.network.family == "modern":
        yield _line("masking.rate", 0.3, "as ModernBERT was trained (Warner et al. 2024)")
    if spaced(request.language):
        why = "whole words, so that the rest of a word does not reveal the answer"
        yield _line("masking.unit", "words", why)


def _evaluate(request: Continued) -> Iterator[Line]:
    yield _line("max_sequences", 2048, "enough held-out sequences for two digits of the loss")
    if request.general is not None:
        sources = request.general.sources
        values: Any = [
            {"path": source.path, **({"lines": source.lines} if source.lines != "paragraphs" else {})}
            for source in sources
        ]
        simple = values[0]["path"] if len(values) == 1 and len(values[0]) == 1 else values
        yield _line("general", simple, "what training did not read of it shows what is forgotten")


def _line(key: str, value: Any, why: str) -> Line:
    text = f"{value:.0e}".replace("e-0", "e-") if key == "learning_rate" else value_text(value)
    return key, text, why
