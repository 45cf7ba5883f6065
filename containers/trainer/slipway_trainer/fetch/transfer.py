"""Copies the files of a repository into a store, each once, and records them."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from slipway_trainer.checkpoint.store import Store, storage_errors, write_object
from slipway_trainer.exits import DataFailed, TrainerError
from slipway_trainer.fetch.arguments import AT_ONCE
from slipway_trainer.fetch.repository import SOURCE_FILE, HubFile, Repository, Source, ask_hub

_CHUNK = 8 << 20


def reference(source: Source) -> str:
    """Name of the object that holds the commit of a revision. No organisation begins with a dot."""
    return f".refs/{source.kind}s/{source.name}/{quote(source.revision, safe='')}"


@storage_errors("the files could not be stored", DataFailed, "check the space and the permission to write there")
def fetch(repository: Repository, store: Store, disk: Path | None) -> bool:
    """Stores the files that the store lacks, then their record; returns whether anything was missing. `store`: the root of all fetched
    files. `disk`: folder with room for AT_ONCE files; None = that of temporary files."""
    source, folder = repository.source, repository.folder
    # The record of earlier fetches of the commit.
    name = f"{folder}/{SOURCE_FILE}"
    known = {} if store.size(name) is None else {file["path"]: file for file in json.loads(store.read(name))["files"]}
    missing = [file for file in repository.files if file.path not in known]
    sizes = {found.name.removeprefix(f"{folder}/"): found.bytes for found in store.list(f"{folder}/")} if missing else {}
    with TemporaryDirectory(prefix="slipway-fetch-", dir=disk) as scratch, ThreadPoolExecutor(AT_ONCE) as pool:
        entries = pool.map(lambda file: _stored(repository, file, sizes.get(file.path), store, Path(scratch)), missing)
        for number, entry in enumerate(entries, 1):
            known[entry["path"]] = entry
            print(f"{source.text}: {entry['path']} ({number} of {len(missing)}, {entry['bytes']:,} bytes)", flush=True)
    if missing:
        facts = {"source": source.text.partition("@")[0], "revision": source.revision, "commit": repository.commit}
        facts |= {"licence": repository.licence, "gated": repository.gated, "files": [known[path] for path in sorted(known)]}
        write_object(store, name, json.dumps(facts, indent=1).encode())
    for place in {reference(source), reference(source._replace(revision=repository.commit))}:
        write_object(store, place, repository.commit.encode())
    return bool(missing)


def _stored(repository: Repository, file: HubFile, size: int | None, store: Store, scratch: Path) -> dict[str, Any]:
    """Transfers one file. A large one that an earlier start stored is not read again: objects become visible after their digest was
    compared."""
    entry = {"path": file.path, "bytes": file.bytes}
    if file.sha256 is not None and size == file.bytes:
        return entry | {"sha256": file.sha256}
    path = _downloaded(repository, file, scratch)
    if path.stat().st_size != file.bytes:
        raise _broken(repository, file, f"{file.bytes} bytes", f"{path.stat().st_size}")
    blob = hashlib.sha1(b"blob %d\0" % file.bytes, usedforsecurity=False)
    large = hashlib.sha256()
    with store.open(f"{repository.folder}/{file.path}") as writer, path.open("rb") as handle:
        while chunk := handle.read(_CHUNK):
            writer.write(chunk)
            large.update(chunk)
            blob.update(chunk)
        stated, found = (file.blob, blob.hexdigest()) if file.sha256 is None else (file.sha256, large.hexdigest())
        if stated != found:
            raise _broken(repository, file, f"digest {stated}", found)
        path.unlink()
        return entry | {"sha256": writer.close().sha256}


def _broken(repository: Repository, file: HubFile, must: str, got: str) -> TrainerError:
    return TrainerError(f"source: {repository.source.text} {file.path} must have {must}, got {got}; fetch it again")


def _downloaded(repository: Repository, file: HubFile, scratch: Path) -> Path:
    from huggingface_hub import hf_hub_download

    source = repository.source
    place = {"repo_type": source.kind, "revision": repository.commit, "local_dir": scratch / source.kind}
    return Path(os.path.realpath(ask_hub(source, partial(hf_hub_download, source.name, file.path, **place))))
