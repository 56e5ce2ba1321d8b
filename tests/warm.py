"""A program `bertwright` for a PATH, each of whose processes is forked from one that has already imported torch.

The program itself is a client: it sends its arguments, folder, variables and standard streams through a socket, and
ends as the process that is forked for it ends. Signals that it gets are not passed on.
"""

import json
import os
import socket
import stat
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from tests.disk import fsync
from tests.pipeline.command import context

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
def warm_program(folder: Path) -> Iterator[Path]:
    """The path of the program, which is written into `folder`."""
    program = folder / "bertwright"
    with socket.socket(socket.AF_UNIX) as listening:
        # A path of a socket may have 107 bytes; an address that begins with a zero byte is no file.
        listening.bind(f"\0bertwright-{os.getpid()}-{folder.name}")
        listening.listen()
        address = listening.getsockname().decode()
        program.write_text(CLIENT.format(python=sys.executable, address=address))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        server = context().Process(target=_serve, args=(listening,))
        server.start()
    try:
        yield program
    finally:
        server.terminate()
        server.join()


def _serve(listening: socket.socket) -> None:
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
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.fsync = fsync
    sys.argv = ["bertwright", *arguments]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
