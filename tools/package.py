"""Build an archive for machines without internet access: every wheel, every licence, and a script that installs them.

`python -m tools.package` writes dist/bertwright-VERSION-offline.tar.gz. The same commit and the same wheels give the
same bytes: names are sorted, times are the commit's, and no owners are recorded.
"""

from __future__ import annotations

import email.parser
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bertwright import __version__

ROOT = Path(__file__).parents[1]
EXTRAS = "hf,formats,s3,azure"
NAME = f"bertwright-{__version__}-offline"
_LICENCE_FILES = ("licen", "copying", "notice", "authors")
INSTALL = f"""#!/bin/sh
# ./install.sh DIR makes a virtual environment with bertwright in DIR. Nothing is asked of the internet.
set -eu
[ $# -eq 1 ] || {{ echo "usage: $0 DIR" >&2; exit 2; }}
here=$(cd "$(dirname "$0")" && pwd)
"${{PYTHON:-python3}}" -m venv "$1"
"$1/bin/pip" install --quiet --no-index --find-links "$here/wheels" 'bertwright[{EXTRAS}]=={__version__}'
echo "bertwright is installed: $1/bin/bertwright --version"
"""


def main() -> None:
    """Build the archive below dist/ and print its path."""
    target = ROOT / "dist" / f"{NAME}.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        made = time_of_commit()
        wheels = collect(Path(folder), made)
        target.parent.mkdir(exist_ok=True)
        write_archive(target, wheels, made)
    sys.stdout.write(f"{target.relative_to(ROOT)}\n")


def time_of_commit() -> int:
    """Return seconds since 1970: SOURCE_DATE_EPOCH, or the time of the newest commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def collect(folder: Path, made: int) -> list[Path]:
    """Build the wheels of bertwright and its dependencies in `folder`, in the versions of constraints.txt."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--wheel-dir", str(folder)]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(made)}  # hatchling uses it as the time of its files
    subprocess.run([*pip, *constraints, f"{ROOT}[{EXTRAS}]"], env=environment, check=True)
    return sorted(folder.glob("*.whl"))


def write_archive(target: Path, wheels: list[Path], made: int) -> None:
    """Write the archive of these wheels; it gets its final name only when it is complete."""
    texts = {"install.sh": INSTALL, **licences(wheels)}
    draft = target.with_suffix(".draft")
    # Without these arguments, gzip writes the current time and the file name into its header.
    with (
        draft.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=made) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, text in sorted(texts.items()):
            content = text.encode()
            archive.addfile(member(name, len(content), made), io.BytesIO(content))
        for wheel in wheels:
            with wheel.open("rb") as content_of:
                archive.addfile(member(f"wheels/{wheel.name}", wheel.stat().st_size, made), content_of)
    draft.replace(target)


def member(name: str, size: int, made: int) -> tarfile.TarInfo:
    """Return the header of a file in the archive, without an owner."""
    info = tarfile.TarInfo(f"{NAME}/{name}")
    info.size, info.mtime, info.mode = size, made, 0o755 if name.endswith(".sh") else 0o644
    return info


def licences(wheels: list[Path]) -> Mapping[str, str]:
    """Return THIRD-PARTY.tsv, with a line for each package, and the texts of their licences, by path."""
    lines, texts = ["package\tversion\tlicence\tfiles"], dict[str, str]()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA") and name.count("/") == 1)
            facts = email.parser.Parser().parsestr(archive.read(metadata).decode())
            said = _licence(facts.get("License-Expression"), facts.get("License"), facts.get_all("Classifier") or [])
            kept = [name for name in names if _is_licence(name)]
            for name in kept:
                texts[f"licences/{facts['Name']}/{name}"] = archive.read(name).decode(errors="replace")
        lines.append(f"{facts['Name']}\t{facts['Version']}\t{said}\t{len(kept)}")
    return {"THIRD-PARTY.tsv": "\n".join(lines) + "\n", **texts}


def _licence(expression: str | None, text: str | None, classifiers: list[str]) -> str:
    """Return the licence that a package states, on one line."""
    named = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: ")]
    # Some packages have the full licence text in this field.
    short = text.strip().splitlines()[0] if text and text.strip() else ""
    return expression or "; ".join(named) or short or "see its files"


def _is_licence(name: str) -> bool:
    file = name.rpartition("/")[2].lower()
    return ".dist-info/" in name and file.startswith(_LICENCE_FILES)


if __name__ == "__main__":
    main()
