"""What identifies the installed code: a hash of each Python file."""

import shutil
from pathlib import Path

from bertwright.train.ranks.agreement import PACKAGE, source_hashes


def test_each_source_file_has_its_own_hash(tmp_path: Path) -> None:
    ours, copy = source_hashes(), tmp_path / "bertwright"
    assert {"__init__.py", "train/ranks/agreement.py", "model/bert/config.py"} <= ours.keys()
    assert not any(".pyc" in name for name in ours) and {len(digits) for digits in ours.values()} == {12}
    shutil.copytree(PACKAGE, copy)
    assert source_hashes(copy) == ours
    with (copy / "train" / "step.py").open("a") as handle:
        handle.write("\n")
    changed = source_hashes(copy)
    assert [name for name in ours if changed[name] != ours[name]] == ["train/step.py"]
