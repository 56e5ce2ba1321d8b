"""The comment above a drafted recipe of a continued training, its warnings, and the commands to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from bertwright.check.recipe.advice import WORTHWHILE
from bertwright.core.numbers import duration, pluralize, short_count, size_of
from bertwright.core.toml_values import value_text
from bertwright.corpus.wikis import wikis
from bertwright.forecast_shapes import Plan
from bertwright.init.continued.draft import Continued
from bertwright.init.head import CHANGE, run_commands

_PIECES = 2.0
"""Tokens per word from which a text has many words that the vocabulary does not."""
_MORE_PIECES = 1.4
"""Times the tokens per word of general text from which that is so, too."""
_UNKNOWN = 0.001
_FEW_DOCUMENTS = 50
_LITTLE = 1e6
"""Tokens below which little is learned."""


def warnings(request: Continued) -> list[str]:
    """What may go wrong with this text and this network, each with what to do."""
    return [*_of_network(request), *_of_forgetting(request), *_of_amount(request), *_of_words(request)]


def _of_network(request: Continued) -> Iterator[str]:
    start = request.start
    if start.given.lacks_head:
        yield (
            f"{start.folder} has no head for masked tokens: it gets random weights, whose first updates teach the "
            "encoder little, and there is no loss before training to compare with. Take a folder with that head if "
            "there is one"
        )
    if start.guessed:
        said = str(start.settings)
        yield f"the folder does not say how its tokenizer treats case and accents: {said} was guessed from its entries"


def _of_forgetting(request: Continued) -> Iterator[str]:
    if request.general is None:
        yield (
            "no general text: the network forgets some of what it knew, and nothing measures how much. Give such text "
            "as it was trained on, of which 5 % is mixed in: --general TEXTS. To only measure it: evaluate.general"
        )


def _of_amount(request: Continued) -> Iterator[str]:
    own, epochs = request.own, request.settings.epochs
    if own.documents < _FEW_DOCUMENTS:
        held = max(1, round(request.settings.heldout * own.documents))
        yield (
            f"only {pluralize(own.documents, 'document')}: {held} held out, so that the loss is imprecise. In plain "
            "text, blank lines separate documents"
        )
    if epochs > WORTHWHILE:
        yield (
            f"each text is read {epochs} times, and after {WORTHWHILE} times it is worth less each time (Muennighoff "
            "et al. 2023). Watch the loss of the own text, or add text"
        )
    if own.tokens < _LITTLE:
        yield f"only {short_count(own.tokens)} tokens: expect little more than the text's own words and style"


def _of_words(request: Continued) -> Iterator[str]:
    cut, general = request.own.cut, request.general
    compared = f" (general text {general.cut.fertility:.2f})" if general else ""
    many = cut.fertility > _PIECES or (general and cut.fertility > _MORE_PIECES * general.cut.fertility)
    page = "docs/how-to/new-vocabulary.md"
    if many:
        yield (
            f"{cut.fertility:.2f} tokens per word{compared}, {cut.single:.0%} of them single characters: many words of "
            f"this text are not in the vocabulary. A new one, or an extended one, would serve it better: {page}"
        )
    if cut.unknown > _UNKNOWN:
        yield f"{cut.unknown:.2%} of the words become [UNK], which cannot be learned. Extend the vocabulary: {page}"


def head(request: Continued, plan: Plan) -> str:
    """Return the comment above the first section."""
    lines = [
        *_facts(request, plan),
        "",
        *(line for warning in warnings(request) for line in _wrapped(f"NOTE {warning}.")),
        "",
        *(f"  {line}" for line in commands(request)),
        "",
        *CHANGE,
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def commands(request: Continued) -> list[str]:
    """Return the commands to type, in order."""
    recipe = shlex.quote(str(request.out))
    before = [f"bertwright check {recipe}", f"bertwright plan {recipe}"]
    return [*before, *run_commands(request.out, request.machine.ranks)]


def facts(request: Continued, plan: Plan) -> list[str]:
    """Return what is known of network and text, and the forecast, a line each."""
    start, own, found = request.start, request.own, request.settings
    network = start.given.network
    language = wikis().get(request.language, request.language)
    size = f"{network.title}, {plan['parameters'] / 1e6:,.1f} million weights"
    lines = [
        f"network    {size}, from {value_text(str(start.folder))}",
        f"text       {_amount(own.bytes, own.documents, own.tokens)}, in {language}",
        f"words      {_words(request)}",
    ]
    if request.general is not None:
        weight, share = request.weight
        general = request.general
        lines.append(f"general    {size_of(general.bytes)}, of which {weight:.2g} is used: {share:.1%} of what is read")
    lines.append(f"training   {pluralize(found.epochs, 'epoch')}, about {found.updates:,} updates; {_time(plan)}")
    return lines


def _facts(request: Continued, plan: Plan) -> Iterator[str]:
    yield "A training that continues a network on other text."
    yield ""
    yield from (f"  {line}" for line in facts(request, plan))


def _amount(size: float, documents: int, tokens: float) -> str:
    return f"about {size_of(size)} in {pluralize(documents, 'document')}, {short_count(tokens)} tokens"


def _words(request: Continued) -> str:
    cut, general = request.own.cut, request.general
    compared = f" (general text {general.cut.fertility:.2f})" if general else ""
    return f"{cut.fertility:.2f} tokens per word{compared}, {cut.unknown:.2%} of the words unknown"


def _time(plan: Plan) -> str:
    hours = sum(phase["hours"] or 0.0 for phase in plan["phases"])
    return f"about {duration(3600 * hours)} by a forecast that may be off by a factor of two"


def _wrapped(text: str, width: int = 116) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = "     "
        line = f"{line} {word}" if line.strip() else f"{line}{word}"
    yield line
