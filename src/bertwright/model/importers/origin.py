"""Where weights come from: their name, hash and licence, which everything made from them says, too.

An imported folder has them in `IMPORT`. Of another folder the licence is that in the metadata of its README.md, the
YAML by which huggingface.co knows models. Does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from bertwright.core.files import MAX_JSON, read_bytes, read_json

IMPORT = "import.json"
"""What was imported, and from where: the report of `bertwright import` for programs."""
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
        facts = {"source": self.name, "licence": self.licence, "sha256": self.sha256}
        return {key: value for key, value in facts.items() if value}


def origin_of(folder: Path) -> Origin | None:
    """What is known of the weights in `folder`; None if neither its report of an import nor its card says anything.

    Raises `ArtifactError` if the report is damaged.
    """
    if (folder / IMPORT).is_file():
        source = read_json(folder / IMPORT)["source"]
        return Origin(str(source["name"]), str(source["licence"]), str(source["sha256"]))
    licence = licence_in(folder / _CARD)
    return Origin(hub_name(folder), licence) if licence else None


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
