"""The schemes in which tags of words mark entities, and their conversion.

    words    Ada    Lovelace  met  Babbage
    iob2     B-PER  I-PER     O    B-PER      the first word of every entity is B
    iob1     I-PER  I-PER     O    I-PER      B only where an entity directly follows one of its type (CoNLL-2003)
    bioes    B-PER  E-PER     O    S-PER      the last word is E, an entity of one word is S

BILOU and BMES are `bioes` with other letters: L for E, U or W for S, M for I.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

EntityScheme = Literal["iob2", "iob1", "bioes"]
"""How tags mark entities."""
LearnedScheme = Literal["iob2", "bioes"]
"""The schemes that a model learns: those that mark each entity by itself."""
OUTSIDE = "O"
"""The tag of a word outside of all entities."""
_MARKS = {"B": "B", "I": "I", "E": "E", "S": "S", "M": "I", "L": "E", "U": "S", "W": "S"}


class Entity(NamedTuple):
    """The words `begin` to `end` (exclusive) of a sentence."""

    begin: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str] | None:
    """The mark of an entity tag in the letters of `bioes`, and the type ("B", "PER"); ("O", "") for a word outside of
    entities; None if it is no entity tag."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    mark, _, kind = tag.partition("-")
    return (_MARKS[mark], kind) if kind and mark in _MARKS else None


def find_scheme(sentences: Iterable[Sequence[str]]) -> EntityScheme | None:
    """The scheme of the tags of sentences; None if fewer than 99 in 100 are entity tags, such as parts of speech.

    Tags that are no entity tags are ignored. I tags that follow no word of their type are errors in IOB2 and the rule
    in IOB1, which has B tags only after such a word; whichever of the two has fewer violations is the scheme.
    """
    letters, number, entity_tags, not_iob1, not_iob2 = set[str](), 0, 0, 0, 0
    for tags in sentences:
        before = ""
        for tag in tags:
            parts = split_tag(tag)
            number += 1
            if parts is None:
                before = ""
                continue
            entity_tags += 1
            mark, kind = parts
            letters.add(mark)
            not_iob1 += mark == "B" and kind != before
            not_iob2 += mark == "I" and kind != before
            before = kind
    if not number or entity_tags < 0.99 * number or letters <= {OUTSIDE}:
        return None
    if letters & {"E", "S"}:
        return "bioes"
    return "iob1" if not_iob1 < not_iob2 else "iob2"


def read_entities(tags: Sequence[str], scheme: EntityScheme) -> tuple[list[Entity], list[int]]:
    """The entities of a sentence, and the indices of the words whose tags break the scheme.

    A broken tag is repaired as the program `conlleval` reads it: a word of another type than the one before begins an
    entity, whatever its mark. Tags that are no entity tags count as outside.
    """
    entities: list[Entity] = []
    broken: list[int] = []
    begin, kind, last = 0, "", OUTSIDE
    for i, tag in enumerate([*tags, OUTSIDE]):
        mark, new = split_tag(tag) or (OUTSIDE, "")
        continues = bool(kind) and new == kind and mark in "IE" and last in "BI"
        # A word that must follow another of its entity, and does not; or one that must be followed, and is not.
        unbegun = mark in ("E", "I") and not continues and not (scheme == "iob1" and mark == "I")
        if scheme == "bioes" and last in ("B", "I") and not continues:
            broken.append(i - 1)
        if unbegun:
            broken.append(i)
        if scheme == "iob1" and mark == "B" and new != kind:
            broken.append(i)
        if not continues:
            if kind:
                entities.append(Entity(begin, i, kind))
            begin, kind = i, new
        last = mark
    return entities, sorted(set(broken))


def write_tags(entities: Iterable[Entity], words: int, scheme: EntityScheme) -> list[str]:
    """The tags of a sentence of `words` words with these entities."""
    tags = [OUTSIDE] * words
    ended: dict[int, str] = {}
    for begin, end, kind in sorted(entities):
        inner = [f"I-{kind}"] * (end - begin)
        if scheme == "iob2" or (scheme == "iob1" and ended.get(begin) == kind):
            inner[0] = f"B-{kind}"
        elif scheme == "bioes":
            inner[0] = f"B-{kind}"
            inner[-1] = f"E-{kind}" if end - begin > 1 else f"S-{kind}"
        tags[begin:end] = inner
        ended[end] = kind
    return tags


def all_tags(types: Sequence[str], scheme: LearnedScheme) -> tuple[str, ...]:
    """Every tag of the entity types: O, then those of each type."""
    marks = "BIES" if scheme == "bioes" else "BI"
    return (OUTSIDE, *(f"{mark}-{kind}" for kind in types for mark in marks))


def strict_entities(tags: Sequence[str], scheme: LearnedScheme) -> list[Entity]:
    """The entities of a sentence that are marked without a violation of the scheme; what breaks it marks none."""
    entities, broken = read_entities(tags, scheme)
    return [each for each in entities if not any(each.begin <= i < each.end for i in broken)]
