"""From a dump to training data: the original recipe's steps compared with ours on one core, and ours on two.

    python benchmarks/corpus.py DUMP LANGUAGE [--nvidia PATH] [--peers FOLDER | --ours]

The original recipe: wikiextractor 3.1.0, one article per line, quntoken 3.3.2 (a regular expression if it cannot be
installed), the TurkuNLP filter with langdetect, a SentencePiece vocabulary, and NVIDIA's create_pretraining_data.py at
the path given by `--nvidia` (with `tokenization.py` and `file_utils.py` in the same folder). Without `--nvidia` the
table says that this step is missing. The peers are installed into a virtual environment, a temporary one unless
`--peers` names it; some are under the GPL and AGPL and are only run as programs. Both sides train a vocabulary of
32,000 and make 5 passes of examples of 128 and of 512 tokens, as the two phases need; ours are pair plans over a token
store, whose masks are drawn during training. A sample of a few megabytes has too few tasks for two cores: use a
hundred for that figure. A dump in another packaging is first converted to multistream bz2 like Wikimedia's, with a
hundred pages per stream.
"""

import argparse
import bz2
import lzma
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.artifact import open_artifact
from bertwright.corpus.characters import letters
from cost import Cost, adopt_orphans, measured

ROOT = Path(__file__).parents[1]
ORIGINAL = str(Path(__file__).with_name("original.py"))
PEERS = ["wikiextractor==3.1.0", "langdetect==1.0.9", "sentencepiece", "h5py", "tqdm", "six", "requests", "boto3"]
SPLITTER = "quntoken==3.3.2"
WORDS, PASSES = 32_000, 5
LENGTHS = {128: 20, 512: 80}
"""Tokens per example, and the most predictions in one, of the two training phases."""
TARGET_RATIO, TARGET_SPEED, TARGET_CORES = 5.0, 2.1, 1.8
PAGES_PER_STREAM = 100
STREAM = b"BZh91AY&SY"
"""The first bytes of a bz2 stream."""
NVIDIA = "NVIDIA create_pretraining_data"
RECIPE = """
[corpus]
source = "{dump}"
language = "{language}"
workers = {workers}
[vocab]
size = {words}
[examples]
passes = {passes}
heldout = 0.05
workers = {workers}
[model]
size = "mini"
[[train.phases]]
length = 128
batch = 16
learning_rate = 1e-3
steps = 900
[[train.phases]]
length = 512
batch = 16
learning_rate = 1e-3
steps = 100
"""


@dataclass(frozen=True)
class Run:
    """One run of ours: from the dump to the token store and plans in one command."""

    cost: Cost
    megabytes: float
    """Size of the XML."""
    seconds: dict[str, float]
    """Wall-clock seconds by stage."""

    @property
    def given(self) -> float:
        """Wall-clock seconds without the vocabulary."""
        return self.seconds["corpus"] + self.seconds["examples"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("language")
    parser.add_argument("--nvidia", type=Path, help="path of create_pretraining_data.py")
    parser.add_argument("--peers", type=Path, help="virtual environment of the peers, made if it is not there")
    parser.add_argument("--ours", action="store_true", help="leave the original out: for large dumps")
    asked = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump = as_bz2(asked.dump, folder)
        theirs: dict[str, Cost] = {}
        if not asked.ours:
            python = peers(asked.peers or folder / "peers")
            theirs = original(dump, asked.language, folder, python, asked.nvidia)
        one, two = (ours(dump, asked.language, folder / f"cores-{cores}", cores) for cores in (1, 2))
    print(report(asked.dump.name, theirs, one, two))


def as_bz2(dump: Path, folder: Path) -> Path:
    """The dump as multistream bz2; returned unchanged if it already is."""
    if dump.read_bytes().count(STREAM) > 1:
        return dump
    with {".xz": lzma.open, ".bz2": bz2.open}.get(dump.suffix, open)(dump, "rb") as handle:
        data = handle.read()
    head, *pages = data.split(b"  <page>\n")
    pages = [b"  <page>\n" + page for page in pages]
    groups = [b"".join(pages[i : i + PAGES_PER_STREAM]) for i in range(0, len(pages), PAGES_PER_STREAM)]
    packed = folder / f"{dump.name.partition('.')[0]}.xml.bz2"
    packed.write_bytes(b"".join(bz2.compress(group) for group in [head, *groups]))
    return packed


def peers(folder: Path) -> Path:
    """The Python executable of the peers' environment, which is created if missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", SPLITTER], check=False)
    return python


def original(dump: Path, language: str, folder: Path, python: Path, nvidia: Path | None) -> dict[str, Cost]:
    """The cost of each step of the original recipe, by name."""

    def at(name: str) -> str:
        return str(folder / name)

    own = [str(python), ORIGINAL]
    quntoken = python.with_name("quntoken")
    steps: dict[str, list[str]] = {
        "wikiextractor 3.1.0": [str(python.with_name("wikiextractor")), "-q", "-o", at("wiki"), str(dump)],
        "one article a line": [*own, "format", at("wiki"), at("articles.txt")],
        "sentences (regular expression)": [*own, "sentences", at("articles.txt"), at("sentences.txt")],
        "TurkuNLP filter, langdetect": [
            *own,
            "filter",
            at("sentences.txt"),
            at("kept.txt"),
            language,
            letters(language),
        ],
        "SentencePiece vocabulary": [*own, "vocabulary", at("kept.txt"), at("vocabulary"), str(WORDS)],
    }
    if quntoken.exists():
        split = [str(quntoken), "-f", "spl", "-m", "sentence", "-i", at("articles.txt"), "-o", at("sentences.txt")]
        steps = {(name if name[:9] != "sentences" else SPLITTER): step for name, step in steps.items()}
        steps[SPLITTER] = split
    if nvidia:
        for length, predictions in LENGTHS.items():
            files = ["--vocab_file", at("vocabulary.txt"), "--input_file", at("kept.txt"), "--output_file", at("hdf5")]
            sizes = ["--max_seq_length", length, "--max_predictions_per_seq", predictions, "--dupe_factor", PASSES]
            steps[f"{NVIDIA}, {length} tokens"] = [str(python), str(nvidia.resolve()), *files, *map(str, sizes)]
    return {name: measured(step, cores=1) for name, step in steps.items()}


def ours(dump: Path, language: str, out: Path, cores: int) -> Run:
    """Run `bertwright run --until examples` on `cores` cores with as many workers."""
    recipe = out.with_suffix(".toml")
    recipe.write_text(RECIPE.format(dump=dump, language=language, words=WORDS, passes=PASSES, workers=cores))
    command = [sys.executable, "-m", "bertwright.cli", "run", str(recipe), "--until", "examples", "--out", str(out)]
    cost = measured(command, cores)
    made = [open_artifact(out / stage) for stage in ("corpus", "vocab", "examples")]
    seconds = {stage.path.name: stage.manifest["seconds"] for stage in made}
    return Run(cost, made[0].counts["source_bytes"] / 1e6, seconds)


def report(name: str, original: dict[str, Cost], one: Run, two: Run) -> str:
    """The measurements as Markdown."""
    lengths = " and ".join(map(str, LENGTHS))
    lines = [
        f"### {name}: {one.megabytes:.1f} MB of XML, {WORDS:,} entries, {PASSES} passes of {lengths} tokens",
        "",
        "| step | CPU s | wall s |",
        "|---|---|---|",
        *(f"| original: {step} | {cost.cpu:.1f} | {cost.wall:.1f} |" for step, cost in original.items()),
    ]
    for cores, run in (("one core", one), ("two cores", two)):
        shares = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in run.seconds.items())
        lines.append(f"| **bertwright, {cores}** ({shares}) | **{run.cost.cpu:.1f}** | {run.cost.wall:.1f} |")
    lines.append("")
    if original:
        theirs = sum(cost.cpu for cost in original.values())
        ran = any(step.startswith(NVIDIA) for step in original)
        took = f"{theirs:.1f} s" if ran else f"{theirs:.1f} s, without {NVIDIA}, which did not run (--nvidia)"
        lines.append(f"- the original takes {took}: {theirs / one.cost.cpu:.1f} times ours (target {TARGET_RATIO})")
    return "\n".join([
        *lines,
        f"- vocabulary given: {one.megabytes / one.given:.2f} MB of XML a second on one core (target {TARGET_SPEED})",
        f"- two cores, vocabulary given: {one.given / two.given:.2f} times the speed of one (target {TARGET_CORES})",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
