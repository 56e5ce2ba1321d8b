"""A program `bertwright` for a PATH, each of whose processes is forked from one that has already imported torch; with
`-m` it is an interpreter for modules.

The program itself is a client: it sends its arguments, folder, variables and standard streams through a socket, and
ends as the process that is forked for it ends. Signals that it gets are not passed on.
"""

import gc
import json
import os
import runpy
import socket
import stat
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from tests.disk import fsync
from tests.pipeline.command import context

RUNTIMES = (
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.modernbert.modeling_modernbert",
    "sentence_transformers",
    "onnx",
    "onnxruntime",
)
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(16) or 70))
"""


@contextmanager
def warm_program(folder: Path, modules: Sequence[str] = ()) -> Iterator[Path]:
    """The path of the program, which is written into `folder`; its processes have these modules, of packages that are
    installed, too."""
    program = folder / "bertwright"
    with socket.socket(socket.AF_UNIX) as listening:
        # A path of a socket may have 107 bytes; an address that begins with a zero byte is no file.
        listening.bind(f"\0bertwright-{os.getpid()}-{folder.name}")
        listening.listen()
        address = listening.getsockname().decode()
        program.write_text(CLIENT.format(python=sys.executable, address=address))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        server = context().Process(target=_serve, args=(listening, modules))
        server.start()
    try:
        yield program
    finally:
        server.terminate()
        server.join()


def _serve(listening: socket.socket, modules: Sequence[str]) -> None:
    for module in modules:
        if find_spec(module.partition(".")[0]):
            import_module(module)
    gc.freeze()
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            _become(connection)
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # those that have ended by now
                pass


def _become(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        code = _run(connection)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(str(code).encode())
    os._exit(code)


def _run(connection: socket.socket) -> int:
    """The exit code of the command that the client asks for."""
    from bertwright.cli import main

    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as file:
        arguments, folder, environment = json.load(file)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.fsync = fsync
    sys.argv = ["bertwright", *arguments]
    try:
        if arguments[:1] == ["-m"]:
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture(scope="session")
def _runtimes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_program(tmp_path_factory.mktemp("runtimes"), RUNTIMES) as program:
        yield program


@pytest.fixture
def warm_runtimes(_runtimes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a certificate have their packages already, which takes longer to import than they run."""
    monkeypatch.setattr("bertwright.export.certify.measure.PYTHON", (str(_runtimes),))
