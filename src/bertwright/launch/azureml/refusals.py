"""Turn exceptions of Azure's packages into sentences that say what to do; import those packages only on an error."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
from collections.abc import Iterator
from typing import Any

from bertwright.core.addresses import redact
from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.launch.azureml.workspace import Workspace

_SIGN_IN = (
    "Run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of a service principal, and run "
    "the command again."
)

CHANGE = "Change the place (--place, --set)."
"""What to do if the package or the service refuses to create something."""
AGAIN = "Check the network connection, or look in the studio, and run the command again."
"""What to do if the service refuses to report on a job, or to stop it."""
_ENTRA = re.compile(r"AADSTS\d+:[^\n.]*")
"""The directory's own message about credentials, among the messages of every sign-in method."""


@contextlib.contextmanager
def explain_errors(what: str, workspace: Workspace, remedy: str = AGAIN) -> Iterator[None]:
    """Silence the package during the call that does `what`, and turn its errors into `RecipeError`s, with `remedy` for
    those that name none."""
    with _silence(), _hide_git():
        try:
            yield
        except BertwrightError:
            raise
        except Exception as error:
            found = _sentence(error, what, workspace, remedy)
            if found is None:
                raise
            raise RecipeError(found) from None


def _sentence(error: Exception, what: str, workspace: Workspace, remedy: str) -> str | None:
    """Return the sentence, or None if the error is not one of Azure's."""
    from azure.ai.ml.exceptions import MlException
    from azure.core.exceptions import (
        AzureError,
        ClientAuthenticationError,
        HttpResponseError,
        ServiceRequestError,
        ServiceResponseError,
    )

    refusal = _ENTRA.search(str(error)) if isinstance(error, ClientAuthenticationError) else None
    if refusal:
        return f"{what}: Azure rejects the sign-in: {redact(refusal[0]).strip()}. {_SIGN_IN}"
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        return f"{what}: nobody is signed in to Azure here. {_SIGN_IN}"
    if isinstance(error, HttpResponseError):
        return f"{what}: {_explain_refusal(error, workspace, remedy)}"
    unreached = [each for each in _chain(error) if isinstance(each, ServiceRequestError | ServiceResponseError)]
    if unreached:
        # The error's text may contain a signed URL.
        return (
            f"{what}: Azure cannot be reached ({redact(_line(unreached[0]))}). Check the network connection. Then "
            "look in the studio, or run az ml job list, to see whether the job exists already; if not, run the "
            "command again."
        )
    if isinstance(error, AzureError | MlException | ValueError | OSError):
        return f"{what}: Azure's package rejects it: {redact(_line(error))}. {remedy}"
    return None


def _explain_refusal(error: Any, workspace: Workspace, remedy: str) -> str:
    """Return what the service's answer means, and what to do."""
    status, answer = error.status_code, redact(_line(error))
    code = str(getattr(error.error, "code", "") or "")
    if "quota" in f"{code} {answer}".lower():
        return (
            f"there is no quota for it: {answer}. Ask for more (Quotas, in the studio), or choose another vm_size or "
            "fewer nodes."
        )
    match status:
        case 401:
            return f"Azure rejects the signed-in account: {answer}. {_SIGN_IN}"
        case 403:
            return (
                f"the signed-in account has no permission to do it: {answer}. Ask the owner of the workspace "
                f"{workspace.name} for the role AzureML Data Scientist and, for a cluster, AzureML Compute Operator."
            )
        case 404:
            return (
                f"it does not exist: {answer}. Searched in the workspace {workspace.name}, resource group "
                f"{workspace.resource_group}, subscription {workspace.subscription}: set [workspace] of the place."
            )
        case 409:
            return f"something else with that name already exists: {answer}. Give another name, or a new version."
        case 429 | 500 | 502 | 503 | 504:
            return f"Azure is busy or unavailable ({status}): {answer}. Run the command again in a few minutes."
        case _:
            return f"Azure rejects it ({status}): {answer}. {remedy}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes: the package wraps what storage raises."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _line(error: Any) -> str:
    """Return the error's message on one line, without its final full stop."""
    inner = getattr(error, "error", None)
    text = getattr(inner, "message", None) or getattr(error, "message", None) or str(error)
    return " ".join(str(text).split()).rstrip(".")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress the package's warnings for its developers, and its empty lines."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _hide_git() -> Iterator[None]:
    """Hide the Git checkout of the current folder: the package would add its URL to the job unrequested, and a
    description must state everything that is submitted."""
    before = os.environ.get("GIT_DIR")
    os.environ["GIT_DIR"] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ["GIT_DIR"]
        else:
            os.environ["GIT_DIR"] = before
