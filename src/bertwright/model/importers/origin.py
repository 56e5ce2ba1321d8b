"""Where weights come from: their name, hash and licence, which everything made from them says, too.

An imported folder has them in `IMPORT`. Of another folder the licence is that in the metadata of its README.md, the
YAML by which huggingface.co knows models. Does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from bertwright.core.errors import ArtifactError
from bertwright.core.files import MAX_JSON, read_bytes, read_json
from bertwright.core.provenance import PROVENANCE, read_provenance
from bertwright.model.pretrained_config import Pretrained

IMPORT = "import.json"
"""What was imported, and from where: the report of `bertwright import` for programs."""
KEYS = ("source", "licence", "sha256")
"""The keys of an origin among what a training records of what it started from."""
_CARD = "README.md"
_CACHED = re.compile(r"models--([\w.-]+?)(?:--([\w.-]+))?")
"""The folder of a downloaded model in the cache of huggingface_hub."""


@dataclass(frozen=True)
class Origin:
    """What is known of the weights in a folder; "" for what is not."""

    name: str
    """The hub's name of the model, or that of the folder or file that was imported."""
    licence: str
    """An identifier of the hub, such as "apache-2.0", or another name."""
    sha256: str = ""
    """Over the files that were imported."""

    def facts(self) -> dict[str, str]:
        """What is known, by the keys that a training records of what it started from."""
        facts = dict(zip(KEYS, (self.name, self.licence, self.sha256), strict=True))
        return {key: value for key, value in facts.items() if value}


def origin_of(given: Pretrained) -> Origin | None:
    """What is known of the weights of a network trained before; None if nothing says anything.

    Looks at what an import or a training recorded, then at the card of the folder, then at what the folder says that
    its weights were made from. Raises `ArtifactError` if a record is damaged.
    """
    if given.artifact is not None and not given.stock:
        started = given.artifact.counts.get("init") or {}
        return Origin(*(str(started.get(key, "")) for key in KEYS)) if "source" in started else None
    folder = given.folder
    if (folder / IMPORT).is_file():
        return _imported(folder / IMPORT)
    if licence := licence_in(folder / _CARD):
        return Origin(hub_name(folder.absolute()) or folder.resolve().name, licence)
    if (folder / PROVENANCE).is_file() and (weights := read_provenance(folder).weights):
        name, digest, licence = weights[0]
        return Origin(name, licence, digest)
    return None


def _imported(report: Path) -> Origin:
    source = read_json(report)
    found = source.get("source") if isinstance(source, dict) else None
    if not isinstance(found, dict) or not all(isinstance(found.get(key), str) for key in ("name", "licence", "sha256")):
        raise ArtifactError(f"{report} is damaged: it does not say what was imported. Import the network again.")
    return Origin(found["name"], found["licence"], found["sha256"])


def hub_name(path: PurePath) -> str:
    """The hub's name of the model in a folder of the cache of huggingface_hub; "" for any other."""
    found = (_CACHED.fullmatch(part) for part in path.parts)
    return next(("/".join(filter(None, match.groups())) for match in found if match), "")


def licence_in(card: Path) -> str:
    """The licence in the metadata of a model card; "" if it states none or does not exist."""
    stated = dict(_metadata(card))
    licence = stated.get("license", "")
    if licence == "other":
        return stated.get("license_name", "other")
    return "" if licence == "unknown" else licence


def _metadata(card: Path) -> Iterator[tuple[str, str]]:
    """Yield the keys of a card's metadata that have one value, and the value; of a list of one, its member."""
    try:
        lines = read_bytes(card, MAX_JSON).decode("utf-8-sig").splitlines()
    except (OSError, ValueError):
        return
    if not lines or lines[0].strip() != "---":
        return
    key = ""
    for line in lines[1:]:
        if line.strip() in ("---", "..."):
            return
        if found := re.match(r"([\w-]+):\s*(\S.*)?$", line):
            key = found[1]
            if value := _scalar(found[2] or ""):
                yield key, value
        elif key and (item := re.match(r"\s*-\s+(\S.*)$", line)):
            yield key, _scalar(item[1])
            key = ""  # of several the first


def _scalar(text: str) -> str:
    plain = re.sub(r"\s#.*$", "", text).strip().removeprefix("[").removesuffix("]").strip()
    return plain.split(",")[0].strip().strip("\"'")
