"""An MLflow run: in files by default, or on a server if one is named."""

from __future__ import annotations

import os
from datetime import datetime

# Set before the import, which reads them: disable telemetry, and allow the file store. MLflow 3 no longer develops the
# file store and requires this opt-in, but it needs neither a database nor a server.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from bertwright.core.files import make_folder
from bertwright.train.monitor.observers.config import MlflowConfig
from bertwright.train.monitor.observers.observer import Observed, Row, flat, numbers_of

_TAG = "bertwright.key"
_LONGEST, _AT_ONCE = 500, 100
"""Maximum characters of a parameter's value, and parameters per message: limits that every version accepts."""


class Mlflow:
    """One MLflow run for all starts of a training, found by its tag; see `Observer`."""

    def __init__(self, config: MlflowConfig, observed: Observed) -> None:
        uri = config.tracking_uri or make_folder(observed.folder / "mlflow").as_uri()
        self._client = MlflowClient(tracking_uri=uri)
        experiment = self._client.get_experiment_by_name(config.experiment)
        number = experiment.experiment_id if experiment else self._client.create_experiment(config.experiment)
        known = self._client.search_runs([number], filter_string=f"tags.`{_TAG}` = '{observed.key}'", max_results=1)
        if known:
            self._run, values = known[0].info.run_id, known[0].data.metrics
            self._client.update_run(self._run, status="RUNNING")
            # Read from the store, which knows best what it has.
            self.seen = int(values.get("total_steps", 0))
        else:
            run = self._client.create_run(number, run_name=observed.name, tags={_TAG: observed.key})
            self._run, self.seen = run.info.run_id, 0
            params = [Param(name, value[:_LONGEST]) for name, value in flat(observed.settings).items()]
            for first in range(0, len(params), _AT_ONCE):
                self._client.log_batch(self._run, params=params[first : first + _AT_ONCE])

    def record(self, row: Row) -> None:
        """As `Observer.record`; the step is counted over all phases."""
        time = int(datetime.fromisoformat(row["time"]).timestamp() * 1000)
        values = numbers_of(row)
        # The step last: if it is stored, so are all other values of its row.
        values["total_steps"] = values.pop("total_steps")
        step = row["total_steps"]
        self._client.log_batch(self._run, metrics=[Metric(name, value, time, step) for name, value in values.items()])

    def close(self, finished: bool) -> None:
        """As `Observer.close`; a stopped training, which may resume, is marked as KILLED."""
        self._client.set_terminated(self._run, status="FINISHED" if finished else "KILLED")
