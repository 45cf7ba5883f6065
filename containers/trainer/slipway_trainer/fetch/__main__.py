"""`python -m slipway_trainer.fetch`: copies repositories of a hub into the output of a processing job. `slipway fetch` runs it on its own
machine too: with `--describe` to see what a hub has, with `--to` to copy it from there."""

import json
import os
import sys
from functools import partial
from pathlib import Path

from slipway_trainer.checkpoint.store import open_store
from slipway_trainer.exits import InvalidRun, end_with
from slipway_trainer.fetch.arguments import options
from slipway_trainer.fetch.repository import Repository, ask_hub, find_repository, parse_source
from slipway_trainer.options import Option, Text
from slipway_trainer.tokenize.place import output_uri

#: Nobody sees its bars, and every line of them is an event of the log.
_QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
#: Largest file that is saved beside a description: configuration, tokenizer and a part of the data.
_SAVED_BYTES = 256 << 20


def run(words: list[str], base: Path) -> int:
    """Fetches or describes the sources; returns the exit code."""
    known = options(
        Option("to", Text(), "", "folder or prefix in S3 below which all fetched files are; default: the output of the job"),
        Option("save", Text(), "", "with --describe: folder for the small files of a model, and for one file of a data set"),
        Option("describe", None, False, "print what the hub has as JSON, and copy nothing"),
    )
    issues: list[str] = []
    given = known.read(words, issues)
    root = given.to or output_uri(base / "config")
    if not given.source:
        issues.append("code.arguments.source: must name a repository, got none; add it")
    if not root and not given.describe:
        issues.append("--to: must be given outside of a job, got nothing; add it")
    if issues:
        raise InvalidRun(*issues)
    os.environ.update(_QUIET)
    if os.environ.get("HF_ENDPOINT"):
        # Xet would ask servers of the hub itself.
        os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    try:
        import huggingface_hub  # noqa: F401
    except ImportError as error:
        raise InvalidRun("code.source: the image must have the `huggingface_hub` package; choose one that has it (image.uri)") from error
    include = [pattern.strip() for pattern in given.include.split(",") if pattern.strip()]
    sources = [parse_source(text.strip()) for text in given.source.split(",")]
    found = [find_repository(source, include) for source in sources]
    if given.describe:
        print(json.dumps([describe(repository, given.save) for repository in found]))
        return 0
    # Imported here: a description needs no client for S3.
    from slipway_trainer.fetch.transfer import fetch

    volume = base / "processing"
    names = given.revisions.split(",") if given.revisions else [source.revision for source in sources]
    if len(names) != len(sources):
        must = f"must name a revision for each of the {len(sources)} sources, got {given.revisions}"
        raise InvalidRun(f"code.arguments.revisions: {must}; correct it")
    for repository, name in zip(found, names, strict=True):
        repository = repository._replace(source=repository.source._replace(revision=name))
        done = "is complete" if fetch(repository, open_store(root), volume if volume.is_dir() else None) else "was fetched before"
        print(f"{repository.source.text}: commit {repository.commit} {done}", flush=True)
    return 0


def describe(repository: Repository, save: str) -> dict[str, object]:
    """What `slipway fetch` shows before it starts, and whether the token of this machine gives access to the files."""
    source = repository.source
    facts = {"kind": source.kind, "name": source.name, "revision": source.revision, "commit": repository.commit}
    facts |= {"licence": repository.licence, "gated": repository.gated}
    return facts | {"files": [{"path": file.path, "bytes": file.bytes} for file in repository.files], "saved": _save(repository, save)}


def _save(repository: Repository, folder: str) -> list[str]:
    """Names of the small files of a model, or of the first file of a data set, which are copied to a folder of this machine."""
    if not folder:
        return []
    from huggingface_hub import hf_hub_download

    source = repository.source
    small = [file.path for file in repository.files if file.bytes <= _SAVED_BYTES and not file.path.endswith(".safetensors")]
    if source.kind == "dataset":
        small = sorted(small, key=lambda path: ("train" not in path, path))[:1]
    for path in small:
        ask_hub(source, partial(hf_hub_download, source.name, path, repo_type=source.kind, revision=repository.commit, local_dir=folder))
    return small


if __name__ == "__main__":
    end_with(lambda: run(sys.argv[1:], Path(os.environ.get("SAGEMAKER_BASE_DIR") or "/opt/ml")))
