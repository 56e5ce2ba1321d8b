"""The splitter of the user's choice, played by small Python programs."""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.corpus.config import SplitConfig
from bertwright.corpus.program import split_paragraphs
from bertwright.corpus.split import splitter

pytestmark = pytest.mark.heavy

PARAGRAPHS = ["It was cold. The lake froze!", "A heading", "  One.\u00a0 Two\tmore.  ", "", "Őszi szél. 𝔘tána tél."]
SENTENCES = [
    ["It was cold.", "The lake froze!"],
    ["A heading"],
    ["One.", "Two more."],
    [],
    ["Őszi szél.", "𝔘tána tél."],
]
SPLIT = "import re, sys\nfor line in sys.stdin:\n    print(re.sub(r'(?<=[.!?]) ', '\\n', line), end='')\n"
ALL_AT_ONCE = "import re, sys\nprint(re.sub(r'(?<=[.!?]) ', '\\n', sys.stdin.read()), end='')\n"
TOKENS = "import re, sys\nprint(re.sub(r'\\s*([.!?]) ?', r'  \\1\\r\\n\\n', sys.stdin.read()))\n"
UNKNOWN = SPLIT.replace("print(", "print(''.join(c if c < chr(0x10000) else chr(0xFFFD) for c in ").replace(
    ", end", "), end"
)


def program(source: str, **settings: float) -> SplitConfig:
    return SplitConfig(command=(sys.executable, "-X", "utf8", "-c", source), **settings)


@each_row("source", [SPLIT, ALL_AT_ONCE, TOKENS, UNKNOWN])
def test_the_ends_of_sentences_are_taken_and_the_text_is_kept(source: str) -> None:
    assert split_paragraphs(program(source), PARAGRAPHS) == SENTENCES


def test_paragraph_end_always_ends_a_sentence() -> None:
    joining = "import sys\nprint(sys.stdin.read().replace('\\n', ' ').replace('cold. ', 'cold.\\n'))\n"
    expected = [["It was cold.", "The lake froze!"], ["A heading"], ["One. Two more."], [], ["Őszi szél. 𝔘tána tél."]]
    assert split_paragraphs(program(joining), PARAGRAPHS) == expected


def test_program_with_the_same_rules_gives_the_same_sentences() -> None:
    ours = splitter("en")
    source = (
        "import sys\nfrom bertwright.corpus.split import splitter\nsplit = splitter('en')\n"
        "for line in sys.stdin: print(*split(line), sep='\\n')\n"
    )
    texts = ["Dr. Smith came. He left at 5 p.m. sharp.", 'She said "Go. Now." and went. Why?']
    assert split_paragraphs(program(source), texts) == [ours(text) for text in texts]


def test_more_text_than_a_pipe_holds() -> None:
    texts = [f"Sentence {i} is here. It is long enough." for i in range(20_000)]
    found = split_paragraphs(program(SPLIT), texts)
    assert found[-1] == ["Sentence 19999 is here.", "It is long enough."]
    assert len(found) == len(texts)


def test_program_is_not_started_for_empty_text(tmp_path: Path) -> None:
    never = SplitConfig(command=(str(tmp_path / "missing"),))
    assert split_paragraphs(never, []) == []
    assert split_paragraphs(never, ["", " \t"]) == [[], []]


@each_row(
    ("source", "message"),
    [
        (SPLIT.replace("print(", "print('x' + "), "wrote 'xItwascold.' for 'Itwascold.Thelake"),
        (SPLIT.replace("line)", "line.upper())"), "wrote 'ITWASCOLD.'.*character 2 of a sentence"),
        (SPLIT.replace("line)", "line.replace('lake', ''))"), "wrote 'Thefroze!' for 'Thelakefroze!'"),
        ("import sys\nprint(sys.stdin.readline())\n", "wrote 'nothing' for 'Aheading'"),
        (SPLIT + "print('more')\n", "wrote 'more' for 'nothing'"),
        ("pass", "wrote 'nothing'"),
    ],
)
def test_a_program_that_changes_the_text_is_refused(source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        split_paragraphs(program(source), PARAGRAPHS)


def test_a_program_that_fails_is_quoted() -> None:
    source = "import sys\nprint('half', flush=True)\nsys.exit('no model for hu')\n"
    with pytest.raises(DataError, match="exit code 1: no model for hu"):
        split_paragraphs(program(source), PARAGRAPHS)
    with pytest.raises(DataError, match="exit code 3: no error message"):
        split_paragraphs(program("raise SystemExit(3)"), PARAGRAPHS * 10_000)


def test_a_program_that_is_missing_or_not_to_be_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a program")
    for name, problem in (("missing", "No such file"), ("text", "Permission denied")):
        with pytest.raises(DataError, match=rf"cannot run .*{name}.*{problem}.*Install it, or give its full path"):
            split_paragraphs(SplitConfig(command=(str(tmp_path / name),)), PARAGRAPHS)


def test_an_answer_in_another_encoding_is_refused() -> None:
    source = "import sys\nsys.stdout.buffer.write(sys.stdin.read().encode('latin-1', 'replace'))\n"
    with pytest.raises(DataError, match="is not UTF-8 at byte 0"):
        split_paragraphs(program(source), ["Áz."])


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """The child keeps the pipe open and would wait for an hour, as would its parent."""
    numbers = tmp_path / "numbers"
    source = (
        "import os, pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        f"pathlib.Path({str(numbers)!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(3600)\n"
    )
    for seconds in (2, 20, 200):  # a busy machine may take longer to start them
        said = rf"did not split 7 characters within {seconds} seconds.*corpus\.split\.timeout"
        with pytest.raises(DataError, match=said):
            split_paragraphs(program(source, timeout=seconds), ["Hello"])
        if numbers.exists():
            break
    for number in map(int, numbers.read_text().split()):
        for _ in range(200):  # the kernel buries it when it has time
            if alive(number):
                time.sleep(0.05)
        assert not alive(number)


def alive(number: int) -> bool:
    """Whether a process runs under this number and is not just waiting to be buried."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat")
    return state.is_file() and state.read_text().rpartition(")")[2].split()[0] != "Z"
