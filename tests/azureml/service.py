"""The parts of Azure that submitting speaks to, on this machine: sign-in, the resource manager with one workspace,
storage, and the history of runs. Azure's own packages talk to it over TLS as to a private cloud by its metadata."""

import base64
import datetime
import ipaddress
import json
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.server import Quiet, listening

TOKEN = base64.urlsafe_b64encode(b"planted-token").decode().rstrip("=")
"""What the tokens that sign-in gives end in; it may stand in no file and no output."""
SIGNATURE = "planted-signature"
"""What addresses of storage are signed with; neither may it."""
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
WORKSPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/language-technology"
    "/providers/Microsoft.MachineLearningServices/workspaces/berts"
)
STEPS = ("data", "train", "evaluate")


@dataclass(frozen=True)
class Call:
    """A request, as the service received it."""

    method: str
    path: str
    """Below the workspace where it begins with no slash."""
    body: Any


@dataclass
class Service:
    """What is there and what was asked; tests change the first and read the second."""

    address: str
    calls: list[Call] = field(default_factory=list)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies by paths below the workspace."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    """Files of the storage, by container and path."""
    state: str = "Running"
    """Of jobs that are not cancelled."""
    refusals: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """Status, code and message of the answer to a `METHOD path` that the expression matches; 0: the line is cut."""
    unauthorized: int = 0
    """Requests without a token where one is due."""

    def put_there(self, path: str, properties: dict[str, Any]) -> None:
        """A resource that is there before anything is asked."""
        self.resources[path] = self._resource(path, {"location": "westeurope", "properties": properties})

    def put(self, kind: str) -> list[Call]:
        """What was created of a kind, in order."""
        return [call for call in self.calls if call.method == "PUT" and call.path.startswith(f"{kind}/")]

    def environment(self, folder: Path) -> dict[str, str]:
        """What tells Azure's packages of this cloud and of who signs in."""
        return {
            "ARM_CLOUD_METADATA_URL": f"{self.address}/metadata",
            "AZUREML_CURRENT_CLOUD": "Stub",
            "REQUESTS_CA_BUNDLE": str(folder / "service.pem"),
            "IDENTITY_ENDPOINT": f"{self.address}/token",
            "IDENTITY_HEADER": "planted-header",
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "AZURE_DEFAULTS_GROUP": "language-technology",
            "AZURE_DEFAULTS_WORKSPACE": "berts",
            "NO_PROXY": "127.0.0.1",
        }

    def answer(self, method: str, url: str, headers: Any, body: bytes) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers of an answer."""
        path = unquote(urlsplit(url).path)
        at_home = path.lower().startswith(WORKSPACE.lower())
        below = path[len(WORKSPACE) :].lstrip("/") if at_home else path
        asked = Call(method, below, json.loads(body) if body[:1] == b"{" else body)
        self.calls.append(asked)
        for pattern, (status, code, message) in self.refusals.items():
            if re.search(pattern, f"{method} {below}"):
                return status, {"error": {"code": code, "message": message}}, {"x-ms-error-code": code}
        if path.startswith("/storage/"):
            query = parse_qs(urlsplit(url).query)
            signed = query.get("sig") == [SIGNATURE]
            asked = Call(" ".join([method, *query.get("comp", [])]), below, body)
            return self._storage(asked, path.removeprefix("/storage/"), headers) if signed else (403, {}, {})
        if path == "/token":
            return 200, _token(parse_qs(urlsplit(url).query)["resource"][0]), {}
        if path in ("/metadata", "/discovery"):
            return 200, {"/metadata": self._metadata, "/discovery": self._discovery}[path](), {}
        if not headers.get("Authorization", "").endswith(f".{TOKEN}"):
            self.unauthorized += 1
            return 401, {"error": {"code": "AuthenticationFailed", "message": "no token"}}, {}
        if path.startswith("/history/"):
            return self._history(path.rpartition("/runs/")[2])
        return self._managed(asked) if at_home else self._missing(path)

    def _metadata(self) -> list[dict[str, Any]]:
        return [
            {
                "name": "Stub",
                "portal": "https://portal.azure.example/",
                "resourceManager": self.address,
                "authentication": {"loginEndpoint": f"{self.address}/"},
                "suffixes": {"storage": "core.example"},
            }
        ]

    def _discovery(self) -> dict[str, str]:
        return {"api": self.address, "history": self.address}

    def _managed(self, asked: Call) -> tuple[int, Any, dict[str, str]]:
        """The resource manager: what is put is there, and what is not there is missing."""
        path = asked.path
        if not path:
            return 200, self._workspace(), {}
        if path.endswith("/startPendingUpload"):
            return 200, self._upload(path), {}
        if path == "datastores/workspaceblobstore":
            return 200, self._resource(path, {"properties": self._own_datastore()}), {}
        if path == "datastores/workspaceblobstore/listSecrets":
            return 200, {"secretsType": "Sas", "sasToken": f"sig={SIGNATURE}"}, {}
        if path.endswith("/cancel"):
            self.resources[path.removesuffix("/cancel")]["properties"]["status"] = "Canceled"
            return 202, {}, {"Location": f"{self.address}{WORKSPACE}/cancelled", "Retry-After": "0"}
        if path == "cancelled":
            return 200, {}, {}
        if asked.method == "PUT":
            self.resources[path] = self._resource(path, asked.body)
            return 201, self.resources[path], {}
        if path.startswith(("codes/", "models/")) and path.endswith("/versions"):
            there = [each for key, each in self.resources.items() if key.startswith(f"{path}/")]
            return 200, {"value": there[::-1] if path.startswith("models/") else []}, {}
        return (200, self.resources[path], {}) if path in self.resources else self._missing(path)

    def _own_datastore(self) -> dict[str, Any]:
        """The datastore that every workspace has, to which the folders that images are built from are uploaded."""
        # The package asks https://ACCOUNT.blob.SUFFIX; with this account, that is this service and an idle query.
        account = f"{self.address.removeprefix('https://')}?beside="
        named = {"accountName": account, "containerName": "storage", "endpoint": "core.example", "protocol": "https"}
        return {"datastoreType": "AzureBlob", "credentials": {"credentialsType": "Sas"}, **named}

    def _workspace(self) -> dict[str, Any]:
        properties = {"discoveryUrl": f"{self.address}/discovery", "workspaceId": "1", "provisioningState": "Succeeded"}
        return {"id": WORKSPACE, "name": "berts", "location": "westeurope", "properties": properties}

    def _resource(self, path: str, body: Any) -> dict[str, Any]:
        given = body["properties"]
        if path.startswith("jobs/"):
            name = path.rpartition("/")[2]
            studio = f"https://ml.azure.example/runs/{name}?wsid={WORKSPACE}"
            services = {"Studio": {"jobServiceType": "Studio", "endpoint": studio}}
            given = {**given, "status": "NotStarted", "services": services}
        if path.startswith("models/"):
            given = {**given, "flavors": {}}
        if path.startswith("computes/"):
            given = {**given, "provisioningState": "Succeeded"}
        return {**body, "id": f"{WORKSPACE}/{path}", "name": path.rpartition("/")[2], "properties": given}

    def _upload(self, path: str) -> dict[str, Any]:
        container = f"{self.address}/storage/{path.split('/')[1]}"
        signed = {"credentialType": "SAS", "sasUri": f"{container}?sig={SIGNATURE}"}
        where = {"blobUri": container, "storageAccountArmId": "", "credential": signed}
        return {"pendingUploadType": "TemporaryBlobReference", "blobReferenceForConsumption": where}

    def _storage(self, asked: Call, path: str, headers: Any) -> tuple[int, Any, dict[str, str]]:
        said = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "x-ms-blob-type": "BlockBlob"}
        if asked.method == "PUT":
            self.blobs[path] = asked.body
            return 201, b"", said
        if asked.method == "PUT metadata":
            return 200, b"", said
        if path not in self.blobs:
            return 404, b"", {"x-ms-error-code": "BlobNotFound"}
        data = self.blobs[path]
        wanted = re.match(r"bytes=(\d+)-(\d*)", headers.get("x-ms-range") or headers.get("Range") or "")
        if not wanted:
            return 200, data, said
        start, stop = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        return 206, data[start : stop + 1], said | {"Content-Range": f"bytes {start}-{stop}/{len(data)}"}

    def _history(self, asked: str) -> tuple[int, Any, dict[str, str]]:
        """Of a pipeline the runs that it has started; of any run its state and the addresses of its logs."""
        run, _, what = asked.partition("/")
        parent = next((name for name in (f"jobs/{run}", f"jobs/{run[:-2]}") if name in self.resources), None)
        if parent is None:
            return self._missing(run)
        if what == "children":
            return 200, {"value": [self._run(f"{run}-{n}", step) for n, step in enumerate(STEPS)]}, {}
        step = STEPS[int(run[-1])] if f"jobs/{run}" not in self.resources else "train"
        if what == "details":
            logs = {
                path.removeprefix(f"logs/{step}/"): f"{self.address}/storage/{path}?sig={SIGNATURE}"
                for path in self.blobs
                if path.startswith(f"logs/{step}/")
            }
            return 200, {**self._run(run, step), "logFiles": logs}, {}
        return 200, self._run(run, step), {}

    def _run(self, run: str, step: str) -> dict[str, Any]:
        failed = {"error": {"error": {"code": "UserError", "message": "exit code 3"}}} if self.state == "Failed" else {}
        kind = {"runType": "azureml.StepRun", "target": "cpu-cluster", "hidden": False, "properties": {}, "tags": {}}
        return {"runId": run, "displayName": step, "status": self.state, **kind, **failed}

    def _missing(self, path: str) -> tuple[int, Any, dict[str, str]]:
        code = "ResourceNotFound" if path.startswith("/subscriptions") else "UserError"
        return 404, {"error": {"code": code, "message": f"{path} was not found"}}, {}


def _token(audience: str) -> dict[str, str]:
    """A JSON Web Token, as sign-in gives to a machine of Azure, whose packages read its claims."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"aud": audience, "tid": "tenant"})
    head = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return {"access_token": f"{head}.{TOKEN}", "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}


def _certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "service.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def serving(folder: Path) -> Iterator[Service]:
    """A running service, whose certificate lies in `folder`; stopped at the end."""

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said, headers = service.answer(self.command, self.path, self.headers, body)
            if not status:
                self.close_connection = True
                return
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if not isinstance(said, bytes):
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    with listening(Handler, context) as address:
        service = Service(address)
        yield service
