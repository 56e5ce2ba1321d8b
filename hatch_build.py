"""The addresses in the package's metadata: those of the repository that it is built from, wherever that is.

The project names no address of its own, so a copy of the repository names itself. Built from a folder without a remote,
the metadata has none.
"""

from __future__ import annotations

import re
import subprocess
from email.parser import Parser
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryUrls(MetadataHookInterface):
    """Sets `project.urls`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the addresses of the repository, its documentation, changes and issues."""
        root = Path(self.root)
        metadata["urls"] = urls_in(root / "PKG-INFO") if (root / "PKG-INFO").is_file() else urls_of(remote(root))


def remote(root: Path) -> str:
    """Return the address of the remote `origin` of the repository at `root`; "" if there is none."""
    # Not that of a repository around an unpacked copy.
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def urls_of(address: str) -> dict[str, str]:
    """Return the pages of a repository by the labels that package indexes know; none for a folder."""
    # Without user name, password and port: they are the builder's own.
    form = r"(?:(?:https?|ssh|git)://(?:[^@/]*@)?([\w.-]+)(?::\d+)?/|(?:[\w.-]+@)([\w.-]+):)([\w.~/-]+?)(?:\.git)?/?"
    found = re.fullmatch(form, address)
    if not found:
        return {}
    repository = f"https://{found[1] or found[2]}/{found[3]}"
    files = f"{repository}/blob/HEAD"
    return {
        "Repository": repository,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def urls_in(file: Path) -> dict[str, str]:
    """Return the addresses in the metadata of a source distribution, which has no remote."""
    lines = Parser().parsestr(file.read_text(encoding="utf-8")).get_all("Project-URL") or []
    return {label: address for label, _, address in (line.partition(", ") for line in lines)}
