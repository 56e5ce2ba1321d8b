"""Sentence splitting by an external program of the user's choice, e.g. quntoken or UDPipe: `corpus.split.command`.

The program runs once per batch of paragraphs, without a shell. It reads UTF-8 from standard input until the input ends,
one paragraph per line with a blank line after each; it writes one sentence per line to standard output and exits with
0. Blank lines and spaces in its output are ignored (so the output of a tokenizer works too), because only the ends of
sentences are used: the characters of the output are matched with those of the paragraphs, whose own text is kept. Where
they differ, the run fails, except that U+FFFD matches any one character (quntoken writes it for those it does not
know). The end of a paragraph always ends a sentence, even where the program continues it (quntoken does so after a
quotation). The split of a paragraph must not depend on its neighbours, or the corpus would depend on the batches.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence

from bertwright.core.errors import DataError
from bertwright.core.subprocess_group import output_of, subprocess_group
from bertwright.corpus.config import SplitConfig

# quntoken replaces every character outside its table (soft hyphens, CJK, IPA) with this one.
_UNKNOWN = "\ufffd"


def split_paragraphs(config: SplitConfig, paragraphs: Sequence[str]) -> list[list[str]]:
    """The sentences of each paragraph: none empty, single spaces, no newline. Raises `DataError` on failure."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in paragraphs]
    if not any(paragraphs):
        return [[] for _ in paragraphs]
    answer = _answer(config, "".join(f"{paragraph}\n\n" for paragraph in paragraphs))
    answered = deque(compact for line in answer.split("\n") if (compact := "".join(line.split())))
    sentences = [list(_cut(config.command, paragraph, answered)) for paragraph in paragraphs]
    if answered:
        raise _differs(config.command, "", answered[0])
    return sentences


def _cut(command: Sequence[str], paragraph: str, answered: deque[str]) -> Iterator[str]:
    """Yield the sentences of a paragraph, cut where those in `answered` end.

    The sentences in `answered` have no spaces; those that belong to the paragraph are removed from it.
    """
    # Programs differ in the spaces they write, so only the other characters are matched.
    places = [i for i, character in enumerate(paragraph) if character != " "]
    done = start = 0
    while done < len(places):
        sentence = answered.popleft() if answered else ""
        wanted = "".join(paragraph[i] for i in places[done : done + len(sentence)])
        # quntoken may continue a sentence beyond the paragraph after a quotation; here the paragraph ends it.
        if rest := sentence[len(wanted) :]:
            answered.appendleft(rest)
            sentence = sentence[: len(wanted)]
        if not sentence or not _same(wanted, sentence):
            raise _differs(command, paragraph[places[done] :], sentence)
        done += len(sentence)
        stop = places[done - 1] + 1
        yield paragraph[start:stop].strip()
        start = stop


def _same(wanted: str, answered: str) -> bool:
    return wanted == answered or (
        len(wanted) == len(answered) and all(a == b or b == _UNKNOWN for a, b in zip(wanted, answered, strict=True))
    )


def _answer(config: SplitConfig, question: str) -> str:
    """The output of the program. The program and its children have ended when this returns or raises."""
    name = config.command[0]
    # quntoken writes a line for every character it does not know, so stderr goes to disk to save memory.
    with tempfile.TemporaryFile() as complaints:
        seconds = config.timeout * max(1.0, len(question) / 1e6)
        pipe = subprocess.PIPE
        try:
            with subprocess_group(config.command, 0, stdin=pipe, stdout=pipe, stderr=complaints) as child:
                output = output_of(child, question.encode(), seconds)
        except OSError as error:
            raise DataError(
                f"corpus.split.command: cannot run {name!r}: {error.strerror or error}. Install it, or give its "
                "full path."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise DataError(
                f"corpus.split.command: {name!r} did not split {len(question):,} characters within {seconds:g} "
                "seconds. Raise corpus.split.timeout, or test the program by hand."
            ) from error
        if child.returncode:
            size = complaints.seek(0, os.SEEK_END)
            complaints.seek(max(0, size - 500))
            last = complaints.read().decode(errors="replace").strip() or "no error message"
            raise DataError(
                f"corpus.split.command: {name!r} ended with exit code {child.returncode}: {last}. Test it by hand "
                "with a paragraph on its standard input."
            )
    try:
        return output.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"corpus.split.command: the output of {name!r} is not UTF-8 at byte {error.start:,}. Make it write "
            "UTF-8, e.g. with an argument of the program."
        ) from error


def _differs(command: Sequence[str], wanted: str, answered: str) -> DataError:
    compact = "".join(wanted.split())
    place = next(
        (i for i, (a, b) in enumerate(zip(compact, answered, strict=False)) if a != b and b != _UNKNOWN),
        min(len(compact), len(answered)),
    )
    around = slice(max(0, place - 20), place + 20)
    return DataError(
        f"corpus.split.command: {command[0]!r} wrote {answered[around] or 'nothing'!r} for "
        f"{compact[around] or 'nothing'!r} (without spaces; character {place + 1} of a sentence). A splitter must "
        "not change the text: choose its output mode with one sentence per line, or wrap it in a script."
    )
