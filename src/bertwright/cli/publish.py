"""`publish`: send an exported model to the hub, or to a registry of MLflow or Azure ML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bertwright.cli.options import Json, refuse_useless
from bertwright.cli.terminal import Terminal
from bertwright.cli.text import json_line, visible


def publish(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A run folder, or the folder of an exported model (export/hf).")
    ],
    remote: Annotated[
        str,
        typer.Argument(
            metavar="REMOTE", help="hf://OWNER/NAME, mlflow:NAME (or models:/NAME), azureml:NAME (or a long address)."
        ),
    ],
    private: Annotated[
        bool, typer.Option("--private", help="On the hub: create the model for its owner only.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify the files and list what would be sent; ask and send nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send an exported model to a remote: its files are verified first, and only listed ones are sent."""
    from bertwright.cli.verify import chain_of_run
    from bertwright.core.numbers import size_of
    from bertwright.publish.parcel import parcel_of
    from bertwright.publish.remote import remote_of

    refuse_useless("for a remote that is not the hub", {"--private": private and not remote.startswith("hf:")})
    place = remote_of(remote, private)
    parcel = parcel_of(model)
    chain_of_run(model)
    files = {name: file.size for name, file in parcel.files.items()}
    facts: dict[str, Any] = {"remote": remote, "files": files, "bytes": parcel.bytes, "not_sent": parcel.left_here}
    if not as_json:
        print(*(f"{size:>15,}  {visible(name)}" for name, size in files.items()), sep="\n")
        print(f"{len(files)} files, {size_of(parcel.bytes)}, verified, for {place.title}")
        if parcel.left_here:
            print(f"not sent, because nothing lists them: {visible(', '.join(parcel.left_here))}")
    if not dry_run:
        with Terminal() as log:
            place.connect()
            facts["existing"] = place.existing(parcel)
            log.say(f"{place.title}: {facts['existing']}")
            facts["sent"] = place.send(parcel, log)
    if as_json:
        print(json_line(facts))
    elif not dry_run:
        print(visible(str(facts["sent"])))
