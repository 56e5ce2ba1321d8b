"""A model in MLflow's registry: its files are those of a run, and a version of the model names them."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core import __version__
from bertwright.core.addresses import redact
from bertwright.core.errors import BertwrightError, DataError, MissingExtraError, RecipeError
from bertwright.core.files import sha256
from bertwright.core.log import Log
from bertwright.publish.hub import refuse_others
from bertwright.publish.parcel import Parcel

_FOLDER = "model"
"""Where the files are among those of the run."""
_TAG = "bertwright.fingerprint"


@dataclass
class MlflowModel:
    """A registered model by its name, on the server or in the database that MLFLOW_TRACKING_URI names; see `Remote`."""

    name: str

    @classmethod
    def of(cls, name: str) -> MlflowModel:
        """The model named by what follows `mlflow:` or `models:/`."""
        if not re.fullmatch(r"[A-Za-z0-9][\w. -]*", name):
            raise RecipeError(
                "REMOTE is no name of a model in MLflow: give mlflow:NAME or models:/NAME, such as mlflow:hu-mini. "
                "The registry adds the version, and MLFLOW_TRACKING_URI names the server."
            )
        return cls(name)

    @property
    def title(self) -> str:
        """As `Remote.title`."""
        return f"the model {self.name} in MLflow"

    def connect(self) -> None:
        """As `Remote.connect`."""
        uri = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            # Without it MLflow would write into the current folder, which nobody named.
            raise RecipeError(
                "MLFLOW_TRACKING_URI is not set, so there is no registry to send the model to. Set it to the address "
                "of the server, or to sqlite:///PATH."
            )
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        try:
            from mlflow.tracking import MlflowClient
        except ImportError as error:
            raise MissingExtraError("sending to MLflow needs its package: pip install 'bertwright[mlflow]'") from error
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.ERROR)
        with _explain(self.title):
            self._client: Any = MlflowClient(
                tracking_uri=uri, registry_uri=os.environ.get("MLFLOW_REGISTRY_URI") or None
            )

    def existing(self, parcel: Parcel) -> str:
        """As `Remote.existing`."""
        with _explain(self.title):
            versions = self._versions()
        if not versions:
            return "there is no such model yet: it is created"
        if same := self._same(versions, parcel):
            return f"it exists, and version {same.version} already is this model: nothing is sent"
        return f"it exists with version {max(int(each.version) for each in versions)}: this is the next one"

    def send(self, parcel: Parcel, log: Log) -> str:
        """As `Remote.send`."""
        with _explain(self.title):
            version = self._same(self._versions(), parcel) or self._send(parcel, log)
        return f"models:/{self.name}/{version.version}"

    def _send(self, parcel: Parcel, log: Log) -> Any:
        experiment = self._client.get_experiment_by_name("bertwright")
        number = experiment.experiment_id if experiment else self._client.create_experiment("bertwright")
        tags = {_TAG: parcel.fingerprint, "bertwright.digest": parcel.digest, "bertwright.version": __version__}
        run = self._client.create_run(number, run_name=self.name, tags=tags).info
        try:
            for done, (name, file) in enumerate(parcel.files.items(), 1):
                inner = Path(name).parent.as_posix()
                self._client.log_artifact(run.run_id, str(file.path), _FOLDER if inner == "." else f"{_FOLDER}/{inner}")
                log.progress("publish", done, len(parcel.files), "files")
            self._check(parcel, run.run_id)
        except BaseException:
            self._client.set_terminated(run.run_id, status="FAILED")
            raise
        self._client.set_terminated(run.run_id, status="FINISHED")
        # Last: a version never names files that did not arrive.
        if not self._client.search_registered_models(filter_string=f"name = '{self.name}'"):
            self._client.create_registered_model(self.name)
        source = f"{run.artifact_uri}/{_FOLDER}"
        return self._client.create_model_version(self.name, source=source, run_id=run.run_id, tags=tags)

    def _check(self, parcel: Parcel, run: str) -> None:
        """Read the files back."""
        with tempfile.TemporaryDirectory() as scratch:
            there = Path(self._client.download_artifacts(run, _FOLDER, scratch))
            same = {
                name: (there / name).is_file() and sha256(there / name) == file.sha256
                for name, file in parcel.files.items()
            }
        refuse_others(same, self.title)

    def _versions(self) -> list[Any]:
        return list(self._client.search_model_versions(f"name = '{self.name}'"))

    def _same(self, versions: list[Any], parcel: Parcel) -> Any:
        return next((each for each in versions if each.tags.get("bertwright.digest") == parcel.digest), None)


@contextmanager
def _explain(title: str) -> Iterator[None]:
    """Turn the errors of the package, and of what it speaks to its server or database with, into a sentence."""
    try:
        yield
    except BertwrightError:
        raise
    except Exception as error:
        if not {"mlflow", "requests", "urllib3", "sqlalchemy", "builtins"} & {type(error).__module__.partition(".")[0]}:
            raise
        if isinstance(error, TypeError | AttributeError | KeyError):
            raise
        said = redact(" ".join(str(error).split())).rstrip(".")
        raise DataError(
            f"{title}: MLflow cannot do it ({type(error).__name__}: {said}). Check MLFLOW_TRACKING_URI, the permission "
            "to write there and the connection, and run the same command again."
        ) from None
