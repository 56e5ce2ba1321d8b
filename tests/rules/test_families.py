"""A family of networks lives in its own folder: elsewhere, only the files that list the families know their names."""

import ast
from pathlib import Path

from bertwright.model.config import NETWORKS, PEERS
from bertwright.model.config_file import KINDS
from bertwright.model.family import NetworkSection

SOURCE = Path(__file__).parents[2] / "src" / "bertwright"
LISTS = {
    "model/config.py": "the union of the recipe's sections and of the networks",
    "model/encoder.py": "the encoder and the classification head of each",
    "export/onnx/families.py": "the ONNX graph of each, where other programs know the family",
    "model/interop/peer.py": "the conversion of each family to and from other programs",
}
"""The only files that a new family touches; the last two only if other programs know the family."""
VARIANTS = {network.family for network in NETWORKS if network.__base__ is not NetworkSection}
"""Families that are built from another, whose file may know it."""
OF_BERT = {"model/interop/stock.py"}
"""The heads of other programs' BERT files."""


def families() -> set[str]:
    return {path.parent.name for path in (SOURCE / "model").glob("*/network.py")}


def imported(path: Path) -> set[str]:
    """The families whose folders a file imports from, at any depth."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in families() if any(m.startswith(f"bertwright.model.{name}.") for m in modules)}


def allowed(path: str) -> set[str]:
    here = {part.removesuffix(".py") for part in Path(path).parts[1:]}
    if path in LISTS or here & VARIANTS:
        return families()
    return (here & families()) | ({"bert"} if path in OF_BERT else set())


def test_only_lists_of_families_know_a_family() -> None:
    paths = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    known = {path: imported(SOURCE / path) - allowed(path) for path in paths}
    wrong = {path: names for path, names in known.items() if names}
    assert not wrong, f"{wrong}: let the configuration of the family state what differs"


def test_lists_are_files_that_know_every_family() -> None:
    assert families() == {network.family for network in NETWORKS} - VARIANTS
    known = [imported(SOURCE / path) for path in LISTS]
    assert known == [families(), families(), set(PEERS), set(PEERS)]


def test_every_family_with_a_peer_can_be_read_from_other_programs() -> None:
    assert set(KINDS.values()) == set(PEERS)
