"""Sampled template calls of real pages and what our text has in their place, to be read and judged by eye.

    python benchmarks/sampled_calls.py DATA_FOLDER --peers DIR [--wiki NAME ...] [--calls 100] [--seed 0]

DATA_FOLDER and DIR are those of quality.py; mwparserfromhell finds the calls. For each dump, calls are drawn at random
from the lines that have five words or more outside their calls, list items included, except calls of templates that are
rightly silent (cleaners/silent.py). Each is printed as the markup with its surroundings, and as our text of the same
place ("-": the line is not in our text). What to look for is whether the sentence says something else than the page.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cleaners.holes import IGNORED, Piece, squeeze
from cleaners.leftovers import WORD
from cleaners.pages import Wiki, our_text, read_wiki
from cleaners.peers import Peers
from cleaners.silent import is_silent

WORDS, AROUND, REACH, SHORTEST, LONGEST = 5, 30, 20, 8, 100


@dataclass(frozen=True)
class Sample:
    """A call, and the text of its line before and after it."""

    call: str
    before: str
    after: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", type=Path, required=True, metavar="DIR")
    parser.add_argument("--wiki", nargs="*", default=[""], help="dumps whose names begin so; all unless given")
    parser.add_argument("--calls", type=int, default=100, help="of each dump (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    peers = Peers(options.peers.resolve())
    for path in sorted((options.data / "wiki").glob("*.xml.*")):
        if path.name.startswith(tuple(options.wiki)) and (wiki := read_wiki(path, None)).site.namespaces:
            report(wiki, peers, options.calls, random.Random(options.seed))


def report(wiki: Wiki, peers: Peers, number: int, draw: random.Random) -> None:
    """Print a sample of a dump's calls."""
    markup = peers.markup(wiki)
    found = [(page, sample) for page in wiki.articles for line in markup[page.id]["lines"] for sample in samples(line)]
    print(f"\n## {wiki.name}: {min(number, len(found))} of {len(found)} calls")
    texts: dict[int, str] = {}
    for page, sample in draw.sample(found, min(number, len(found))):
        if page.id not in texts:
            texts[page.id] = our_text(page, wiki)
        print(f"{flat(sample.before)[-AROUND:]}{flat(sample.call)[:LONGEST]}{flat(sample.after)[:AROUND]}")
        print(f"    {shown(sample, texts[page.id]) or '-'}")


def samples(line: list[Piece]) -> Iterator[Sample]:
    """The calls of a line that are not silent, if the line has words."""
    if sum(len(WORD.findall(piece)) for piece in line if isinstance(piece, str)) < WORDS:
        return
    for place, piece in enumerate(line):
        if isinstance(piece, list) and not is_silent(*piece[:2]):
            yield Sample(piece[2], raw(line[:place]), raw(line[place + 1 :]))


def raw(pieces: list[Piece]) -> str:
    return "".join(piece[2] if isinstance(piece, list) else piece or "" for piece in pieces)


def flat(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def shown(sample: Sample, text: str) -> str:
    """Our text around the place of the call: where the characters before and after it are nearest to each other."""
    before, after = ends(sample.before), ends(sample.after)
    places = [place for place, character in enumerate(text) if not IGNORED.fullmatch(character)]
    squeezed = "".join(text[place] for place in places)
    first, last = squeeze(before[-1])[-REACH:], squeeze(after[0])[:REACH]
    best = None
    there = squeezed.find(last) if len(first) + len(last) >= SHORTEST else -1
    while there >= 0:
        here = squeezed.rfind(first, max(0, there - 3000), there)
        if here >= 0 and (best is None or there - here < best[1] - best[0]):
            best = here, there
        there = squeezed.find(last, there + 1) if last else -1
    if best:
        begin, end = places[max(0, best[0] + len(first) - 1)], places[min(best[1], len(places) - 1)]
        begin = begin if first else text.rfind("\n", 0, end) + 1
        end = end if last else (text + "\n").find("\n", begin)
        return flat(
            f"{text[max(0, begin - AROUND // 2) : begin + 1]}⟦{text[begin + 1 : end]}⟧{text[end : end + AROUND // 2]}"
        )
    longest = squeeze(max([*before, *after], key=len))[: 2 * REACH]
    there = squeezed.find(longest)
    return "? " + flat(text[max(0, places[there] - 4 * AROUND) : places[there] + 6 * AROUND]) if there >= 0 else ""


def ends(text: str) -> list[str]:
    """The parts of a line's markup between its calls."""
    parts, depth, begin = [], 0, 0
    for place in range(len(text)):
        if text.startswith("{{", place):
            if not depth:
                parts.append(text[begin:place])
            depth += 1
        elif text.startswith("}}", place - 1) and place and depth:
            depth -= 1
            if not depth:
                begin = place + 1
    return [*parts, text[begin:]]


if __name__ == "__main__":
    main()
