"""A process of benchmarks/gpu.py that trains: one side after another, so that an error or a hang costs one of them.

It reads a request a line, in JSON, and answers each with a line that begins with `ANSWER`.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from gpu_cases import Item, find_item

ANSWER = "answer of the worker: "
HOST_BYTES = 8e9
"""Memory of the host that a process needs which compiles."""


class WorkerError(Exception):
    """Why a request has no answer."""


class Worker:
    """A process that answers requests, and is started anew after an error."""

    def __init__(self, device: str, environment: Mapping[str, str] | None = None) -> None:
        self._device, self._environment = device, {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: Mapping[str, Any], limit: float) -> Any:
        """The answer to a request; `WorkerError` if there is none within `limit` seconds, or it is an error."""
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        try:
            answer = self._lines.get(timeout=limit)
        except queue.Empty:
            answer = {"error": f"no answer after {limit:.0f} s"}
        if answer is None:
            answer = {"error": f"the process ended with exit status {process.wait()}"}
        if "error" in answer:
            # After an error a GPU's context may be unusable.
            self.close()
            raise WorkerError(answer["error"])
        return answer["is"]

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._reader.join()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, __file__, self._device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment,
        )  # fmt: skip
        self._lines: queue.Queue[Any] = queue.Queue()
        self._reader = threading.Thread(target=_read, args=(process, self._lines), daemon=True)
        self._reader.start()
        return process


def _read(process: "subprocess.Popen[str]", lines: "queue.Queue[Any]") -> None:
    """Put each answer into `lines`, None at the end; print what libraries say."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(ANSWER):
            lines.put(json.loads(line.removeprefix(ANSWER)))
        else:
            print(line, end="", flush=True)
    lines.put(None)


class Memory:
    """Memory that several threads share."""

    def __init__(self, free: float) -> None:
        self._free, self._all, self._changed = free, free, threading.Condition()

    @contextmanager
    def taken(self, wanted: float) -> Any:
        """Wait until `wanted` bytes, or all, are free, and take them."""
        wanted = min(wanted, self._all)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted
        try:
            yield
        finally:
            with self._changed:
                self._free += wanted
                self._changed.notify_all()


def warm(
    items: list[Item], device: str, cores: int, host: float, gpu: float, limit: float, say: Callable[[str], None]
) -> dict[str, float]:
    """Compile what the items need, in processes at once as far as `cores`, `host` and `gpu` memory (bytes) allow, for
    at most `limit` seconds. Returns the seconds to the first step of each, with empty caches, by case and side.

    The first item has the machine for itself, so its time is that of a user; the others share it.
    """
    until = time.perf_counter() + limit
    found: dict[str, float] = {}
    memory = Memory(0.9 * gpu)
    at_once = max(1, min(cores // 2, int(host / HOST_BYTES), len(items)))

    def one(item: Item, threads: int) -> tuple[Item, float | str]:
        worker = Worker(device, {"TORCHINDUCTOR_COMPILE_THREADS": str(threads)})
        with memory.taken(item.side.memory(item.case)):
            try:
                left = until - time.perf_counter()
                return item, worker.ask(_request("warm", item), left) if left > 0 else "no time left"
            except WorkerError as error:
                return item, str(error)
            finally:
                worker.close()

    def note(item: Item, result: float | str) -> None:
        name = f"{item.case.name}, {item.side.name}"
        if isinstance(result, float):
            found[name] = result
        say(f"caches filled: {name}: " + (f"{result:.0f} s" if isinstance(result, float) else result))

    if items:
        note(*one(items[0], cores))
    with ThreadPoolExecutor(at_once) as pool:
        threads = max(1, cores // at_once)
        for done in as_completed([pool.submit(one, item, threads) for item in items[1:]]):
            note(*done.result())
    return found


def _request(what: str, item: Item, **more: Any) -> dict[str, Any]:
    return {"do": what, "case": item.case.name, "side": item.side.name, **more}


def measure_request(item: Item, peak: float, steps: int, profiled: bool) -> dict[str, Any]:
    """What to ask for the measurements of an item."""
    return _request("measure", item, peak=peak, steps=steps, profile=profiled)


def _serve(device_type: str) -> None:
    """Answer requests until there are no more."""
    import torch

    from bertwright.model.device import torch_settings
    from gpu_measure import MATMUL, clear, first_step, matmul_rate, measure
    from gpu_peer import same_network

    device = torch.device(device_type)
    gpu = device_type == "cuda"

    def answer(request: dict[str, Any]) -> Any:
        if request["do"] == "begin":
            return {
                "same": [same_network(family, device) for family in request["families"]],
                "products": matmul_rate(device, MATMUL if gpu else 256),
                "name": torch.cuda.get_device_name() if gpu else "CPU",
                "free": torch.cuda.mem_get_info()[0] if gpu else 0,
            }
        item = find_item(request["case"], request["side"], gpu)
        if request["do"] == "warm":
            return first_step(item, device)
        try:
            return asdict(measure(item, device, request["peak"], request["steps"], request["profile"]))
        finally:
            clear(device)

    with torch_settings(0, deterministic=False):
        for line in sys.stdin:
            try:
                result = {"is": answer(json.loads(line))}
            except (Exception, SystemExit) as error:  # compilers raise exceptions from class hierarchies of their own
                result = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
            print(ANSWER + json.dumps(result), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
