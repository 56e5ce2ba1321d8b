"""The built-in sample: a small bilingual wiki made by this project, as a MediaWiki export in multistream bzip2.

Hand-written Hungarian and English pages carry the markup of real dumps; generated ones follow rules a small model
can be seen to learn (agreement, vowel harmony, facts of a made-up world). `bertwright.sample.build` makes the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).parent / "wiki.xml.bz2"
"""The full export: about 1400 pages, 2 MB of plain text, three fifths of it Hungarian."""

SMALL = Path(__file__).parent / "small.xml.bz2"
"""The hand-written pages and every fourteenth generated one, for tests of the whole road."""


@dataclass(frozen=True)
class Cloze:
    """A fill-mask line: a sentence the wiki does not contain, whose missing word follows from what it does contain."""

    text: str
    expected: tuple[str, ...]
    rule: str


CLOZES = (
    Cloze("Este [MASK] asztalos hazamegy.", ("az",), "az before a vowel"),
    Cloze("Este [MASK] kovács hazamegy.", ("a",), "a before a consonant"),
    Cloze("A rókák este az [MASK] pihennek.", ("erdőben",), "front vowels take -ben; where foxes live"),
    Cloze("A medve egész télen a [MASK] pihen.", ("barlangban",), "back vowels take -ban; where bears live"),
    Cloze("A juhászok ma is bottal [MASK].", ("dolgoznak",), "plural subject, plural verb"),
    Cloze("A juhász ma is bottal [MASK].", ("dolgozik",), "singular subject, singular verb"),
    Cloze("A takács este [MASK] a vetélőt.", ("megtisztítja",), "definite object, definite conjugation"),
    Cloze("Éjszaka a bagoly többnyire [MASK] eszik.", ("egeret",), "what owls eat, in the accusative"),
    Cloze("A pék holnap is [MASK] készít.", ("kenyeret",), "what a baker makes, in the accusative"),
    Cloze("A cseresznye [MASK] érik meg a kertekben.", ("nyáron",), "when cherries ripen"),
    Cloze("The bakers of the town [MASK] with a shovel.", ("work",), "plural subject, plural verb"),
    Cloze("The baker of the town [MASK] with a shovel.", ("works",), "singular subject, verb in -s"),
    Cloze("One day they met [MASK] owl near the river.", ("an",), "an before a vowel"),
    Cloze("One day they met [MASK] fox near the river.", ("a",), "a before a consonant"),
    Cloze("At night the owl looks for [MASK].", ("mice",), "what owls eat"),
    Cloze("In the forge the smith makes a [MASK].", ("horseshoe",), "what a smith makes"),
    Cloze("A cherry ripens in [MASK].", ("summer",), "when cherries ripen"),
)
"""Lines for the demo's report, a person's check that something was learned."""
