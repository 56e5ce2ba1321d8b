"""Requests per second, and how long they take, of `bertwright serve` and of a pipeline of transformers behind the same
server.

    python benchmarks/serve.py MODEL [--task fill-mask|encode|classify] [--clients 1 8 64] [--seconds 5] [--rounds 3]

Both sides are processes with uvicorn, starlette and the checks of the token; the pipeline is called in a thread with
the text of each request, as its documentation shows. Clients are coroutines of a process of their own: each sends a
request, waits for the answer, and sends the next. Texts are sentences of this project's documents, one per request.
Sides take turns in each round; the table shows medians over the rounds, and the processor time of the server for each
request, which other programs on the machine change little.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent


def sentences() -> list[str]:
    """Sentences of documents, of 5 to 40 words."""
    text = " ".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs" / "decisions").glob("*.md")))
    found = re.findall(r"[A-Z][^.|`#\n*\[\]]+\.", text)
    return [each for each in found if 5 <= len(each.split()) <= 40]


def bodies(task: str) -> list[bytes]:
    """Requests, each with one sentence; with a blank in its middle for fill-mask."""
    found = []
    for sentence in sentences():
        words = sentence.split()
        if task == "fill-mask":
            words[len(words) // 2] = "[MASK]"
        found.append(json.dumps({"text": " ".join(words)}).encode())
    return found


async def client(address: tuple[str, int, str, str], some: list[bytes], until: list[float], took: list[float]) -> None:
    """Send requests one after another over one connection, and note the seconds of those after `until[0]`; those
    before it as 0."""
    host, port, path, token = address
    reader, writer = await asyncio.open_connection(host, port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    )
    number = 0
    while (begin := time.perf_counter()) < until[1]:
        body = some[number % len(some)]
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{path}: {answer.decode()}")
        length = re.search(rb"content-length: (\d+)", answer.lower())
        assert length
        await reader.readexactly(int(length[1]))
        number += 1
        took.append(time.perf_counter() - begin if begin > until[0] else 0.0)
    writer.close()


async def all_clients(url: str, task: str, clients: int, seconds: float) -> dict[str, float]:
    """The requests per second of so many clients, and their latencies in milliseconds."""
    parts, some = urlsplit(url), bodies(task)
    address = (parts.hostname or "", parts.port or 0, f"/v1/{task}", parts.fragment.removeprefix("token="))
    begin = time.perf_counter() + min(2.0, seconds / 3)
    took: list[float] = []
    step = max(len(some) // clients, 1)
    asked = [
        client(address, some[n * step :] + some[: n * step], [begin, begin + seconds], took) for n in range(clients)
    ]
    await asyncio.gather(*asked)
    counted = [each for each in took if each]
    p99 = statistics.quantiles(counted, n=100)[98]
    return {
        "rate": len(counted) / seconds,
        "p50": 1000 * statistics.median(counted),
        "p99": 1000 * p99,
        "requests": len(took),
    }


def serve_pipeline(folder: str, task: str) -> None:
    """Serve the pipeline."""
    import transformers
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from bertwright.page.server import guard, listen, run_server

    names = {"fill-mask": "fill-mask", "encode": "feature-extraction", "classify": "text-classification"}
    options: dict[str, Any] = {"encode": {"return_tensors": True}, "classify": {"top_k": None}}.get(task, {"top_k": 5})
    pipe, thread = transformers.pipeline(names[task], model=folder, **options), ThreadPoolExecutor(1)

    def answer(text: str) -> Any:
        found = pipe(text)
        return found[0].mean(0).tolist() if task == "encode" else found

    async def asked(request: Request) -> JSONResponse:
        text = (await request.json())["text"]
        return JSONResponse({"results": await asyncio.get_running_loop().run_in_executor(thread, answer, text)})

    listener = listen()
    app = Starlette(routes=[Route(f"/v1/{task}", asked, methods=["POST"])])
    run_server(guard(app, listener), listener, lambda address: print(address, flush=True))


@contextmanager
def started(*words: str) -> Iterator[tuple[str, int]]:
    """Start a server in a process, and give its address and the number of the process."""
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            assert address, "the server has not started"
            yield address, process.pid
        finally:
            process.terminate()


def processor_seconds(process: int) -> float:
    """What a process has taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(side: tuple[str, int], given: argparse.Namespace, clients: int) -> dict[str, float]:
    """The numbers of one side, measured by a process of clients."""
    url, process = side
    before = processor_seconds(process)
    words = ["--ask", url, "--task", given.task, "--clients", str(clients), "--seconds", str(given.seconds)]
    done = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found | {"processor": 1000 * (processor_seconds(process) - before) / found["requests"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="")
    parser.add_argument("--task", default="fill-mask", choices=["fill-mask", "encode", "classify"])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--options", nargs="*", default=[], help="More words for bertwright serve, such as runtime=onnx."
    )
    parser.add_argument("--pipeline", action="store_true")
    parser.add_argument("--ask", default="")
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(asyncio.run(all_clients(given.ask, given.task, given.clients[0], given.seconds))))
        return
    if given.pipeline:
        serve_pipeline(given.model, given.task)
        return
    options = [f"--{each}" for each in given.options]
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    with ExitStack() as stack:
        ours = stack.enter_context(started("-m", "bertwright", "serve", given.model, "--no-browser", *options))
        theirs = stack.enter_context(started(__file__, given.model, "--task", given.task, "--pipeline"))
        for _ in range(given.rounds):
            for clients in given.clients:
                for name, side in (("bertwright", ours), ("pipeline", theirs)):
                    found.setdefault((name, clients), []).append(measured(side, given, clients))
    print("clients  side        requests/s   p50 ms   p99 ms  processor ms")
    for clients in given.clients:
        sides = [found[name, clients] for name in ("bertwright", "pipeline")]
        for name, rows in zip(("bertwright", "pipeline"), sides, strict=True):
            keys = ("rate", "p50", "p99", "processor")
            rate, p50, p99, processor = (statistics.median(row[key] for row in rows) for key in keys)
            print(f"{clients:>7}  {name:<10}  {rate:10.1f} {p50:8.1f} {p99:8.1f} {processor:13.2f}")
        for key in ("rate", "processor"):
            ratios = [a[key] / b[key] for a, b in zip(*sides, strict=True)]
            ratios = ratios if key == "rate" else [1 / each for each in ratios]
            print(f"{'':>9}{key}: {statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
