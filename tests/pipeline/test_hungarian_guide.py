"""The Hungarian guide from dump to model: its commands and programs work one after another, in one folder, on a small
dump and with small data in the layouts that it names; and what it says of machines is what `init` drafts."""

import hashlib
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.pipeline.command import ENVIRONMENT, PROGRAM, ROOT
from tests.pipeline.conftest import Call
from tests.processes import PATIENCE
from tests.rows import each_row
from tests.server import serving
from tests.unit.finetune.test_draft import data_of

from bertwright import Recipe
from bertwright.export.runtimes.members import runtime_named
from bertwright.finetune.suites import SUITES
from bertwright.sample import SMALL as SAMPLE

GUIDE = ROOT / "docs" / "hu"
PAGES = ("index", "szoveg", "tanitas", "meres", "hasznalat")
NERKOR = """# global.columns = FORM LEMMA UPOS XPOS FEATS CONLL:NER EMMORPH:LEMMA
Kovács\tKovács\tPROPN\t[/N]\tCase=Nom\tB-PER\tKovács
Pál\tPál\tPROPN\t[/N][Nom]\tCase=Nom\tI-PER\tPál
Győrben\tGyőr\tPROPN\t[/N][Ine]\tCase=Ine\tB-LOC\tGyőr
él\tél\tVERB\t[/V]\tMood=Ind\tO\tél
.\t.\tPUNCT\t[Punct]\t_\tO\t.

"""
HUSST = [
    {"Sent_id": f"{name}_{number}", "Sent": text, "Label": label}
    for number in range(8)
    for name, text, label in (
        ("a", "Remek film.", "positive"),
        ("b", "Unalmas.", "negative"),
        ("c", "Film.", "neutral"),
    )
]
"""Records with the keys of HuSST."""


def page(name: str) -> str:
    return (GUIDE / f"{name}.md").read_text(encoding="utf-8")


def blocks() -> Iterator[tuple[str, str]]:
    """The commands and programs in the order of the pages, each with its language; what needs a run follows it."""
    found = [
        (language, line)
        for name in PAGES
        for language, block in re.findall(r"^```(sh|python)\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)
        for line in ([block] if language == "python" else block.splitlines())
    ]
    trains = next(place for place, (_, line) in enumerate(found) if line.endswith("--out runs/hu"))
    early = [each for each in found[:trains] if "runs/hu" in each[1] or each[0] == "python"]
    yield from (each for each in found[: trains + 1] if each not in early)
    yield from [*early, *found[trains + 1 :]]


def clone(name: str, folder: Path) -> None:
    """What `git clone` would bring, with a few records."""
    if name == "NYTK-NerKor":
        for part in ("train", "devel"):
            for file in ("web/w1.conllup", "news/n1.conllup"):
                path = folder / "data" / part / file
                path.parent.mkdir(parents=True)
                path.write_text(NERKOR * 4, encoding="utf-8")
    elif name == "HuSST":
        (folder / "data").mkdir(parents=True)
        for part in ("train", "dev"):
            (folder / "data" / f"sst_{part}.json").write_text(json.dumps(HUSST), encoding="utf-8")
    else:
        folder.mkdir(parents=True)
        data_of({"HuCommitmentBank": "hucb"}.get(name, name.lower()), folder / "data")
        shutil.copy(next((folder / "data").glob("*train*")), folder / "data" / "cola_test.json")


def smaller(words: list[str], mirror: str) -> list[str]:
    """The same command, which takes seconds: of a small dump, a small network, few seeds."""
    verb, rest = words[0], words[1:]
    if "--download" in rest:
        return [*words, "--mirror", mirror]
    if verb == "run" and "--rehearse" in rest:  # of a network of base size: tests/pipeline/test_rehearse.py
        return ["check", rest[0]]
    if verb == "run" and "--scale" not in rest:
        return [*words, "--scale", "tiny"]
    if "--seeds" in rest:
        words[words.index("--seeds") + 1] = "1" if verb == "evaluate" else "2"
    if verb == "certify":  # rounding decides between the nearly equal guesses of a network that learnt for seconds
        return [word.replace(",onnx-int8", "") for word in words]
    if verb in ("finetune", "embed"):
        return [*words, "train.phases.0.epochs=1"]
    if verb == "publish" and "--dry-run" not in rest:  # tests/pipeline/test_publish.py
        return [*words, "--dry-run"]
    return words


def run(words: list[str], folder: Path) -> None:
    """Run a command to its end, without a network unless it names this machine's mirror."""
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}/src"} if "--mirror" in words else ENVIRONMENT
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def ask(words: list[str], folder: Path) -> None:
    """Start a server without a browser, ask for its page, and end it as Ctrl-C does."""
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}/src"}
    command = [*PROGRAM, *words, "--no-browser"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            with urlopen(server.stdout.readline().partition("#")[0], timeout=PATIENCE) as answer:
                assert b"</html>" in answer.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(PATIENCE) in (0, 130)
        finally:
            server.kill()


def execute(line: str, folder: Path, mirror: str) -> None:
    words = shlex.split(line, comments=True)
    match words[0]:
        case "make" | "." | "pip":  # tests of the parts cover what they do
            pass
        case "git":
            name = words[2].rpartition("/")[2]
            clone(name, folder / (words[3] if len(words) > 3 else name))
        case "mkdir" | "cat":
            run(["sh", "-c", line], folder)
        case "bertwright" if words[1] in ("serve", "watch"):
            ask(words[1:], folder)
        case "bertwright":
            found = [sorted(map(str, folder.glob(word))) if "*" in word else [word] for word in words[1:]]
            given = smaller([word for each in found for word in each], mirror)
            run([*PROGRAM, *given], folder)
        case _:
            pytest.fail(f"how is this tried out? {line}")


@pytest.mark.slow
def test_the_guide_leads_from_the_dump_to_a_published_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: bertwright[hf]")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: bertwright[onnx]")
    (place,) = re.findall(r"^```toml\n(kind = \"slurm\".*?)^```$", page("tanitas"), re.DOTALL | re.MULTILINE)
    (tmp_path / "slurm.toml").write_text(place, encoding="utf-8")
    (tmp_path / "hirek.txt").write_text("Kovács Pál Győrben él .\n", encoding="utf-8")
    (tmp_path / "velemenyek.csv").write_text("Sent\nRemek film.\n", encoding="utf-8")
    dump, name = SAMPLE.read_bytes(), "huwiki-20260401-pages-articles-multistream.xml.bz2"
    with serving() as server:
        server.files[f"huwiki/20260401/{name}"] = dump
        for date in ("20260401", "latest"):
            sums = f"{hashlib.sha1(dump).hexdigest()}  {name}\n"
            server.files[f"huwiki/{date}/huwiki-{date}-sha1sums.txt"] = sums.encode()
        for language, text in blocks():
            if language == "sh":
                execute(text, tmp_path, server.address)
                continue
            if not (tmp_path / "runs" / "demo").exists():  # `make demo` makes it
                (tmp_path / "runs" / "demo").symlink_to("hu")
            run([sys.executable, "-c", text], tmp_path)
    ner = json.loads((tmp_path / "runs" / "ner" / "evaluate" / "scores.json").read_text(encoding="utf-8"))
    assert ner, "entities were scored"
    assert (tmp_path / "bekuldes" / "cola_predicted_labels.json").is_file()
    assert "prediction" in (tmp_path / "megvalaszolt.csv").read_text(encoding="utf-8")


ROWS = re.findall(
    r"^\| `([\w-]+)` \| ([\w-]+) \| ([\d,]+) M \| ([\w-]+) \| ([\d,]+) M \|$", page("tanitas"), re.MULTILINE
)


def test_the_guide_has_a_table_of_machines() -> None:
    assert len(ROWS) == 6


@each_row(("machine", "networks"), [(row[0], {"classic": row[1:3], "best": row[3:]}) for row in ROWS])
def test_machines_get_the_networks_of_the_table(
    machine: str, networks: dict[str, tuple[str, str]], call: Call, tmp_path: Path
) -> None:
    for quality, (network, weights) in networks.items():
        out = tmp_path / f"{quality}.toml"
        answers = ("--language", "hu", "--machine", machine, "--hours", "24", "--quality", quality)
        done = call("init", *answers, "--out", out)
        assert done.code == 0, done.err
        head = out.read_text(encoding="utf-8")
        assert f"# A {network} from the Wikipedia in Hungarian" in head
        assert f"{weights.replace(',', '.')} million weights" in head


def test_the_keys_and_kinds_that_the_guide_names_are_there(call: Call) -> None:
    text = "".join(map(page, PAGES))
    keys = re.findall(rf"`((?:{'|'.join(Recipe.model_fields)})\.[\w.]+)(?:=[^`]*)?`", text)
    assert len(keys) > 3
    for key in keys:
        done = call("check", "--explain", key)
        assert done.code == 0, done.err
    kinds = re.findall(r"`--to ([\w-]+)`", text)
    assert len(kinds) == 3 and all(runtime_named(kind) for kind in kinds)
    cloned = [name.lower() for name in re.findall(r"git clone \S+ hulu/(\w+)", text)]
    assert {{"hucommitmentbank": "hucb"}.get(name, name) for name in cloned} == set(SUITES["hulu"])


def test_the_typography_is_hungarian() -> None:
    """Quotation marks are „…”, dashes have their width, percentages and decimals are written as in Hungarian."""
    for path in sorted(GUIDE.glob("*.md")):
        prose = re.sub(
            r"```.*?```|`[^`\n]*`|<a id=.*?></a>|\]\([^)]*\)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        assert not re.search(r"[\"“]| - |\d %|\d\.\d+(%| M| nat| GB)", prose), path.name
        assert prose.count("„") == prose.count("”"), path.name
