"""Makes a certificate: writes what runtimes read, answers the same lines in each, and compares the answers."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertwright.core import __version__
from bertwright.core.errors import ArtifactError, BertwrightError, DataError, MissingExtraError
from bertwright.core.files import make_folder, sha256, sha256_of
from bertwright.core.log import SILENT, Log
from bertwright.core.resources import default_workers
from bertwright.export.certify.compare import Texts, compare_ids, difference, differing_ids, same_first
from bertwright.export.certify.lines import NASTY, Lines, with_mask
from bertwright.export.certify.measure import Job, load_answers, run_job
from bertwright.export.certify.shapes import Certificate, Difference, Row, Status
from bertwright.export.runtimes.members import RUNTIMES, runtime_named
from bertwright.export.runtimes.rules import Loading, loadings
from bertwright.export.runtimes.runtime import Published, Runtime
from bertwright.model.importers.safetensors_files import weight_files
from bertwright.model.text_encoder import load_tokenizer
from bertwright.vocab.entries import CLS, SEP
from bertwright.vocab.tokenizer import Tokenizer

REFERENCE = "transformers"
TOLERANCE = 1e-4
"""Of numbers that no runtime rounds by intent."""
COSINE, SAME_FIRST = 0.999, 0.98
"""Of a runtime that rounds: its cosine with the reference, and its share of the same best answers, at least."""


@dataclass(frozen=True)
class _Answers:
    facts: dict[str, Any]
    outputs: dict[str, list[Any]]


def certify(folder: Path, lines: Lines, runtimes: Sequence[str] = (), log: Log = SILENT) -> Certificate:
    """The certificate of a published folder, on the machine at hand.

    `runtimes` are names of `RUNTIMES`; by default, all whose package is installed, and of one that lacks another part
    the row says what. Of those that are named nothing may be missing: raises `MissingExtraError` before any work.
    Without names there are also rows of the servers whose loading rules are known (`loadings`), which are not run.
    Files that a runtime reads and that the folder does not have are written to a temporary folder.
    """
    model, named = Published(folder), [runtime_named(name) for name in runtimes]
    for runtime in [runtime_named(REFERENCE), *named]:
        status, why = _untried(runtime, model)
        if status == "missing":
            raise MissingExtraError(why)
    chosen = named or [each for each in RUNTIMES if each.version()]
    if why := runtime_named(REFERENCE).refusal(model):
        raise ArtifactError(f"{folder} cannot be certified: {why}.")
    texts, others, replaced = lines.compared, lines.others, list[str]()
    if model.head == "masked":
        masked = [with_mask(text, model.positions, model.mask) for text in texts]
        texts, replaced = [text for text, _ in masked], [word for _, word in masked]
    with TemporaryDirectory(prefix="bertwright-certify-") as scratch:
        comparing = _Comparing(model, texts, others, Path(scratch), log)
        rows = [comparing.reference_row(replaced[len(NASTY) :])]
        rows += [comparing.row(runtime) for runtime in chosen if runtime.name != REFERENCE]
    if not runtimes:
        rows += [_by_rules(each) for each in loadings(model)]
    return {
        "architecture": model.architecture,
        "weights": sha256_of({path.name: sha256(path) for path in weight_files(folder)}),
        "lines": f"{len(texts) + len(others):,}: {lines.source}, and made to be hard",
        "machine": machine_name(),
        "rows": rows,
        "made": __version__,
    }


class _Comparing:
    """The texts, and the answers of the reference, which others are compared with."""

    def __init__(self, model: Published, texts: Sequence[str], others: Sequence[str], scratch: Path, log: Log) -> None:
        self.model, self.texts, self.others = model, list(texts), list(others)
        self.scratch, self.log = scratch, log
        self.reference = self._answers(runtime_named(REFERENCE))
        self.ids, self.entries = self.reference.facts["ids"], list[str]()
        self.words = dict[int, int]()

    def reference_row(self, replaced: Sequence[str]) -> Row:
        """The row of the reference, whose ids are compared with those that the model was trained on; `replaced` are the
        words behind the [MASK] of the lines that are no hard ones."""
        runtime = runtime_named(REFERENCE)
        row = self._new_row(runtime, self.reference, "reference")
        try:
            tokenizer = load_tokenizer(self.model.folder)
        except BertwrightError as error:
            # Another kind of vocabulary than ours: what the reference makes of a text is all there is to compare with.
            return {**row, "why": f"its ids are taken as right: {error}"}
        self.entries = tokenizer.vocabulary
        for number, word in enumerate(replaced, len(NASTY)):
            ids = tokenizer.encode_texts([word])[0].tolist()
            if len(ids) == 1:  # a word of several entries is not what one [MASK] stands for
                self.words[number] = ids[0]
        self.ids = _own_ids(tokenizer, [*self.texts, *self.others], self.model.positions)
        return self._with_ids(row, runtime, self.reference)

    def row(self, runtime: Runtime) -> Row:
        """What one runtime answers; never an error, because others are still to be asked."""
        try:
            status, why = _untried(runtime, self.model)
            if status:
                return {**self._new_row(runtime, None, status), "why": why}
            answers = self._answers(runtime)
            row = self._with_ids(self._new_row(runtime, answers, "agrees"), runtime, answers)
            row = self._compared(row, runtime, answers)
        except (BertwrightError, OSError) as error:
            row = {**self._new_row(runtime, None, "failed"), "why": str(error)}
        self.log.say(f"certify: {row['title']} {row['version']}: {row['status']}")
        return row

    def _answers(self, runtime: Runtime) -> _Answers:
        """Answer all texts in a child process."""
        self.log.say(f"certify: {runtime.title} answers {len(self.texts):,} lines")
        out, written = make_folder(self.scratch / runtime.name), self._written(runtime)
        place = "" if written is None else str(written)
        job = Job(runtime.name, str(self.model.folder), place, str(out), self.texts, self.others)
        run_job(job, runtime.title, lambda done: self._show(runtime, done))
        facts, outputs = load_answers(out)
        shutil.rmtree(out)
        return _Answers(facts, outputs)

    def _show(self, runtime: Runtime, done: int) -> None:
        self.log.progress("certify", done, len(self.texts), "lines")

    def _written(self, runtime: Runtime) -> Path | None:
        """The folder of what the runtime reads: that of the published folder, or one that is written now."""
        if not runtime.reads:
            return None
        writer = runtime_named(runtime.reads)
        if _has_files_of(writer, self.model):
            return self.model.folder / writer.folder
        path = self.scratch / "written" / writer.name
        if not path.exists():
            run_job(Job(writer.name, str(self.model.folder), str(path)), writer.title)
        return path

    def _new_row(self, runtime: Runtime, answers: _Answers | None, status: Status) -> Row:
        row: Row = {"runtime": runtime.name, "title": runtime.title, "version": "", "status": status, "why": ""}
        if answers is None:
            return {**row, "version": runtime.version()}
        facts = answers.facts
        return {
            **row,
            "version": facts["version"],
            "milliseconds": facts["milliseconds"],
            "memory_bytes": facts["memory_bytes"],
        }

    def _with_ids(self, row: Row, runtime: Runtime, answers: _Answers) -> Row:
        """The row with what is said of its ids, and of the words that it guesses."""
        texts = Texts(self.model, [*self.texts, *self.others], self.ids, self.entries)
        row = compare_ids(row, runtime, texts, answers.facts["ids"])
        if self.words and (logits := answers.outputs.get("logits")):
            right = sum(int(logits[number].argmax()) == word for number, word in self.words.items())
            row = {**row, "right": right / len(self.words), "guessed": len(self.words)}
        return row

    def _compared(self, row: Row, runtime: Runtime, answers: _Answers) -> Row:
        """The row with what is said of its outputs, for the texts that it read as the reference did."""
        own, their = self.reference, answers
        other = set(differing_ids(own.facts["ids"], their.facts["ids"]))
        same = [number for number in range(len(self.texts)) if number not in other]
        names = [name for name in their.outputs if name in own.outputs]
        if not names and "own" not in their.outputs:
            raise DataError(f"it gives {', '.join(their.outputs)}, the reference {', '.join(own.outputs)}")
        here, there = ({name: [each[i] for i in same] for name, each in of.outputs.items()} for of in (own, their))
        outputs = {name: difference(here[name], there[name]) for name in names} if same else {}
        first = same_first(self.model.head, here, there) if same else None
        row = {**row, "outputs": {**outputs}, "compared": len(same), "same_first": first}
        if faults := [*_faults(runtime, outputs, first)]:
            row = {**row, "status": "differs", "why": "; ".join([*([row["why"]] if row["why"] else []), *faults])}
        return row


def _untried(runtime: Runtime, model: Published) -> tuple[Status | None, str]:
    """Why a runtime cannot be asked: "missing" or "refused" with the reason; None and "" if it can."""
    if missing := runtime.missing():
        return "missing", missing
    if refused := runtime.refusal(model):
        return "refused", refused
    writer = runtime_named(runtime.reads or runtime.name)
    if runtime.reads and not _has_files_of(writer, model) and (missing := writer.missing_to_write()):
        return "missing", missing
    return None, ""


def _has_files_of(writer: Runtime, model: Published) -> bool:
    return (model.folder / writer.folder / writer.file).is_file()


def _by_rules(loading: Loading) -> Row:
    """The row of a server that cannot be run here."""
    status: Status = "loads" if loading.loads else "refused"
    why = f"not run; by the rules in its sources: {loading.sentence}"
    title, version = loading.program, loading.version
    return {"runtime": title, "title": title, "version": version, "status": status, "why": why}


def _faults(runtime: Runtime, outputs: Mapping[str, Difference], first: float | None) -> Iterator[str]:
    """What of a runtime's outputs is worse than it may be."""
    for name, found in outputs.items():
        if runtime.rounds:
            if found["cosine"] < COSINE:
                yield f"{name} have a cosine of {found['cosine']:.4f} with the reference, below {COSINE}"
        elif not found["largest"] <= TOLERANCE:
            yield f"{name} differ by {found['largest']:.1e}, more than {TOLERANCE:g}"
    if outputs and first is not None and first < SAME_FIRST:
        yield f"{100 * first:.1f} % of the best answers are the same, fewer than {100 * SAME_FIRST:g} %"


def _own_ids(tokenizer: Tokenizer, texts: Sequence[str], positions: int) -> list[list[int]]:
    flat, lengths = tokenizer.encode_texts(texts)
    first, last, ids, begin = tokenizer.ids(CLS), tokenizer.ids(SEP), list[list[int]](), 0
    for length in lengths.tolist():
        ids.append([first, *flat[begin : begin + min(length, positions - 2)].tolist(), last])
        begin += length
    return ids


def machine_name() -> str:
    """The processor, and how many the process may use."""
    names = re.findall(r"^model name\s*:\s*(.*)$", _cpuinfo(), re.MULTILINE)
    return f"{names[0] if names else platform.machine()}, {default_workers()} processors, one thread a runtime"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
