"""A model on the Hugging Face hub, sent by its own package huggingface_hub with the token of its own sign-in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bertwright.core import __version__
from bertwright.core.addresses import redact
from bertwright.core.errors import BertwrightError, DataError, MissingExtraError, RecipeError
from bertwright.core.log import Log
from bertwright.publish.parcel import ModelFile, Parcel

_NAME = re.compile(r"//([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)")
_OF_THE_HUB = {".gitattributes"}
"""Files that the hub itself creates in every repository."""
_AT_ONCE = 500
"""Most files that are asked for in one request."""
_SIGN_IN = "Set HF_TOKEN to a token that may write, or run hf auth login."


@dataclass
class HubModel:
    """A model by its name on the hub that `HF_ENDPOINT` names, huggingface.co by default; see `Remote`."""

    name: str
    private: bool

    @classmethod
    def of(cls, rest: str, private: bool) -> HubModel:
        """The model named by what follows `hf:`."""
        found = _NAME.fullmatch(rest)
        if not found or ".." in rest or "--" in rest or len(found[1]) > 96:
            # The address itself is not repeated: its faulty part may be a password.
            raise RecipeError("REMOTE is no name of a model on the hub: give hf://OWNER/NAME, such as hf://me/hu-mini.")
        return cls(found[1], private)

    @property
    def title(self) -> str:
        """As `Remote.title`."""
        return f"the model {self.name} on the hub"

    def connect(self) -> None:
        """As `Remote.connect`."""
        try:
            from huggingface_hub import HfApi, get_token
            from huggingface_hub.utils import disable_progress_bars
        except ImportError as error:
            raise MissingExtraError(
                "sending to the hub needs huggingface_hub, which comes with transformers: pip install 'bertwright[hf]'"
            ) from error
        if not get_token():
            raise RecipeError(f"nobody is signed in to the hub here. {_SIGN_IN}")
        disable_progress_bars()
        self._api = HfApi(library_name="bertwright", library_version=__version__)
        self._seen: str | None = None

    def existing(self, parcel: Parcel) -> str:
        """As `Remote.existing`."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with _explain(self.title):
            try:
                there = self._api.model_info(self.name)
            except RepositoryNotFoundError:
                return f"there is no such model yet: it is created{', private' if self.private else ''}"
        if self.private and not there.private:
            raise RecipeError(
                f"{self.title} exists and is public, so --private would have no effect. Make it private in its "
                "settings first, leave --private out, or give another name."
            )
        self._seen = there.sha
        names = {file.rfilename for file in there.siblings or ()} - _OF_THE_HUB
        kept = sorted(names - parcel.files.keys())
        others = f"; its other files stay: {', '.join(kept)}" if kept else ""
        shared = len(names & parcel.files.keys())
        return f"it exists ({'private' if there.private else 'public'}), and a commit replaces {shared} files{others}"

    def send(self, parcel: Parcel, log: Log) -> str:
        """As `Remote.send`."""
        from huggingface_hub import CommitOperationAdd

        message = f"Model of the training {parcel.fingerprint[:12]}, by bertwright {__version__}"
        with _explain(self.title):
            self._api.create_repo(self.name, private=self.private or None, exist_ok=True)
            additions = [CommitOperationAdd(name, str(file.path)) for name, file in parcel.files.items()]
            log.say(f"sending {len(additions)} files to {self.title}")
            # With the commit that was looked at as parent, the hub refuses what would undo somebody else's.
            done = self._api.create_commit(self.name, additions, commit_message=message, parent_commit=self._seen)
            self._check(parcel, done.oid)
        return str(done.commit_url)

    def _check(self, parcel: Parcel, revision: str) -> None:
        names, there = list(parcel.files), dict[str, Any]()
        for first in range(0, len(names), _AT_ONCE):
            found = self._api.get_paths_info(self.name, names[first : first + _AT_ONCE], revision=revision)
            there |= {each.path: each for each in found}
        refuse_others({name: _is(there.get(name), file) for name, file in parcel.files.items()}, self.title)


def refuse_others(same: Mapping[str, bool], title: str) -> None:
    """Raise `DataError` naming the files that are not `same` at the remote as here."""
    if different := [name for name, is_same in same.items() if not is_same]:
        raise DataError(
            f"{title} does not have what was sent: {', '.join(different)} {'is' if len(different) == 1 else 'are'} "
            "missing or different there. Check whether somebody else writes there, and run the same command again."
        )


def _is(there: Any, file: ModelFile) -> bool:
    """Whether the hub's entry is that file: by its SHA-256, or by Git's SHA-1 of its content for small ones."""
    if there is None or there.size != file.size:
        return False
    if there.lfs is not None:
        return bool(there.lfs.sha256 == file.sha256)
    digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    digest.update(file.path.read_bytes())
    return bool(there.blob_id == digest.hexdigest())


@contextmanager
def _explain(title: str) -> Iterator[None]:
    """Turn the errors of the package into sentences."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except BertwrightError:
        raise
    except HfHubHTTPError as error:
        raise _refusal(title, error) from None
    except (ValueError, OSError, RuntimeError) as error:
        if isinstance(error, ValueError) and str(error).startswith("Invalid metadata"):
            raise RecipeError(
                f"{title}: the hub refuses the card: {_line(error)}. Correct what the recipe says there, and export "
                "the model again."
            ) from None
        cause = error.__cause__
        if isinstance(cause, HfHubHTTPError):
            raise _refusal(title, cause) from None
        raise DataError(_interrupted(title, error)) from None
    except Exception as error:
        if not type(error).__module__.startswith(("httpx", "httpcore", "hf_xet")):
            raise
        raise DataError(_interrupted(title, error)) from None


def _interrupted(title: str, error: Exception) -> str:
    return (
        f"{title}: {_line(error)}. Check the connection and run the same command again: files that are there are not "
        "sent again."
    )


def _refusal(title: str, error: Any) -> BertwrightError:
    status = error.response.status_code if error.response is not None else 0
    said = redact(error.server_message or _line(error)).rstrip(".")
    match status:
        case 401:
            return RecipeError(f"{title}: the hub does not accept the token ({said}). {_SIGN_IN}")
        case 403:
            return RecipeError(f"{title}: the token may not write there ({said}). {_SIGN_IN}")
        case 412:
            return RecipeError(
                f"{title} was changed by somebody else meanwhile ({said}). Run the same command again to see what is "
                "there now."
            )
        case _:
            return DataError(
                f"{title}: the hub answers {status} ({said}). If it is not what is wrong with the model, run the same "
                "command again in a few minutes."
            )


def _line(error: BaseException) -> str:
    return redact(" ".join(str(error).split())).rstrip(".") or type(error).__name__
