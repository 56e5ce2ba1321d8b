"""On PYTHONPATH of the commands under test: whatever touches the network fails, with a traceback that says where."""

import sys

REFUSED = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in REFUSED:
        raise RuntimeError(f"the network was used: {event} {arguments[1:]}")


sys.addaudithook(_refuse)
