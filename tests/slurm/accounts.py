"""Slurm's accounts in a database of their own: a MariaDB and a slurmdbd in the folder of a cluster."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
PASSWORD = "of-the-tests-alone"
USER = f"""\
CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';
"""
_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass={password}
"""
CLUSTER_CONF = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
# What has ended leaves the queue at once, so that the accounts alone know of it.
MinJobAge=2
"""


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def database(folder: Path, port: int) -> list[str]:
    """The command of a new database, which has the user that slurmdbd is."""
    data = folder / "database"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"],
        check=True,
        capture_output=True,
    )
    (folder / "user.sql").write_text(USER, encoding="utf-8")
    here = [f"--datadir={data}", f"--socket={folder}/database.socket", f"--pid-file={folder}/database.pid"]
    reached = ["--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve", f"--init-file={folder}/user.sql"]
    return ["mariadbd", "--no-defaults", "--user=root", *here, *reached, "--innodb-buffer-pool-size=32M"]


def slurmdbd(folder: Path, port: int, database: int) -> list[str]:
    """The command of the server between Slurm and the database; its file lies beside slurm.conf, where it is sought."""
    conf = folder / "slurmdbd.conf"
    conf.write_text(_CONF.format(folder=folder, port=port, database=database, password=PASSWORD), encoding="utf-8")
    conf.chmod(0o600)
    return ["slurmdbd", "-D"]
