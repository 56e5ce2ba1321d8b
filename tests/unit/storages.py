"""Emulators of object stores, as fixtures: what a test does to them, fsspec does over the network."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """boto3's client of S3 as moto plays it, which the environment names until the test is over."""
    server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server]'")
    s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'bertwright[s3]'")
    import boto3

    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        address = "http://{}:{}".format(*moto.get_host_and_port())
        # The buckets of every server of a process are the same, so a test would find those of the test before it.
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()
        for key, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(key, value)
        # fsspec keeps what it has opened, with the address of an emulator that is gone.
        s3fs.S3FileSystem.clear_instance_cache()
        yield boto3.client("s3")
    finally:
        moto.stop()


@pytest.fixture
def azurite() -> Iterator[str]:
    """The connection string of a running Azurite, Microsoft's emulator of Azure's storage."""
    command = shutil.which("azurite-blob")
    if command is None:
        pytest.skip("azurite-blob is not on PATH: npm install azurite")
    options = ["--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    process = subprocess.Popen([command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = iter(process.stdout.readline, "")
    address = next(line.split()[-1] for line in said if "listens on" in line)
    # The account and the key of every emulator, as Microsoft publishes them.
    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    try:
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};BlobEndpoint={address}/{account};"
        )
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def azure(azurite: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Microsoft's client of Azurite, which the environment names until the test is over."""
    adlfs = pytest.importorskip("adlfs", reason="adlfs is not installed: pip install 'bertwright[azure]'")
    from azure.storage.blob import BlobServiceClient

    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite)
    adlfs.AzureBlobFileSystem.clear_instance_cache()
    return BlobServiceClient.from_connection_string(azurite)


@contextmanager
def cut_after(address: str, uploaded: int) -> Iterator[tuple[str, threading.Event]]:
    """The address of a proxy of `address` ("http://host:port"), that lets so many bytes pass to it and is gone then;
    and what says that it is."""
    host, port = address.removeprefix("http://").split(":")
    left, cut, open_ones = [uploaded], threading.Event(), list[socket.socket]()
    listening = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                left[0] -= len(data) if counted else 0
                if left[0] < 0:
                    cut.set()
                    listening.close()
                    for each in open_ones:
                        each.close()
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection((host, int(port)))
                open_ones.extend((client, server))
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield "http://{}:{}".format(*listening.getsockname()), cut
    finally:
        for each in (listening, *open_ones):
            each.close()
