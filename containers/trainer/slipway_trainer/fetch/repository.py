"""What a hub says of a repository: commit, licence, files and their digests. Nothing that it says is trusted as a path."""

import errno
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from slipway_trainer.exits import InvalidRun, TrainerError
from slipway_trainer.tokenize.rows import COMPRESSED, DESCRIPTIONS, LINES, TABLES
from slipway_trainer.visible import is_visible

Answer = TypeVar("Answer")
MAX_FILES = 20_000
MAX_BYTES = 8 << 40
#: Written last; a repository cannot bring its own.
SOURCE_FILE = "SOURCE.json"
#: Longest path of a file.
MAX_PATH = 512
#: Before each further request to a busy hub. The library itself waits for some answers (429 of a file) and not for others.
RETRY_SECONDS = (1.0, 5.0, 25.0)
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_COMMIT = re.compile(r"[0-9a-f]{40}")
#: Files at the top of a model that the trainer and the tokenise step read, and templates below it. Not pickles: loading one runs code.
_OF_MODELS = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "LICENSE*", "README.md")
_OF_DATA = (*(f"*{kind}{packed}" for kind in LINES for packed in ("", *COMPRESSED)), *(f"*{kind}" for kind in TABLES))


class Source(NamedTuple):
    """`hf:[datasets/]ORG/NAME[@REVISION]`."""

    text: str
    kind: str
    name: str
    revision: str


class HubFile(NamedTuple):
    """A file, with its size and the digest that the hub states: SHA-256 of a large file, otherwise SHA-1 of the git blob."""

    path: str
    bytes: int
    sha256: str | None
    blob: str


class Repository(NamedTuple):
    """A commit of a repository and those of its files that are wanted."""

    source: Source
    commit: str
    licence: str | None
    gated: bool
    files: list[HubFile]

    @property
    def folder(self) -> str:
        """Place of the files below the root of fetched files."""
        return f"{self.source.name}/{self.commit}"


def parse_source(text: str) -> Source:
    """Raises InvalidRun for anything but a source."""
    name, _, revision = text.removeprefix("hf:").partition("@")
    kind = "dataset" if name.startswith("datasets/") else "model"
    name = name.removeprefix("datasets/")
    if not text.startswith("hf:") or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name, re.ASCII):
        raise InvalidRun(f"source: must be hf:ORG/NAME or hf:datasets/ORG/NAME, with @REVISION or without, got {text}; correct it")
    return Source(text, kind, name, revision or "main")


def find_repository(source: Source, include: Sequence[str]) -> Repository:
    """The commit of a revision and its files that match one of the patterns; without patterns, those that training reads.

    Raises InvalidRun for a repository that cannot be read or used, and TrainerError if the hub does not answer.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi()
    info = ask_hub(source, partial(api.repo_info, source.name, repo_type=source.kind, revision=source.revision))
    commit = str(info.sha)

    def listed() -> list[HubFile]:
        tree = api.list_repo_tree(source.name, recursive=True, revision=commit, repo_type=source.kind)
        return [_file(entry) for entry in islice(tree, MAX_FILES + 1) if isinstance(entry, RepoFile)]

    files = ask_hub(source._replace(revision=f"{commit[:40]}, which the hub names for {source.revision}"), listed)
    issues = _unusable(commit, files)
    wanted = [file for file in files if any(fnmatchcase(file.path, pattern) for pattern in include)] if include else _default(source, files)
    if not wanted and not issues:
        kinds = sorted({PurePosixPath(file.path).suffix for file in files})
        must = "must have files that match --include" if include else f"must have files that the {_READER[source.kind]} reads"
        issues.append(f"{must}, got {', '.join(filter(None, kinds)) or 'none'}; name others with --include, or another repository")
    if sum(file.bytes for file in wanted) > MAX_BYTES:
        issues.append(f"must have at most {MAX_BYTES >> 40} TiB of files, got more; name fewer with --include")
    messages = [f"source: {source.text} {issue}" for issue in issues]
    if messages:
        raise InvalidRun(*messages)
    card = info.card_data or {}
    licence = card.get("license_name") or card.get("license")
    return Repository(source, commit, str(licence)[:100] if licence else None, bool(info.gated), wanted)


_READER = {"model": "trainer (*.safetensors)", "dataset": "tokenise step (.jsonl, .json, .parquet or .arrow)"}


def _file(entry: Any) -> HubFile:
    return HubFile(str(entry.path), int(entry.size), entry.lfs.sha256 if entry.lfs else None, str(entry.blob_id))


def _unusable(commit: str, files: Sequence[HubFile]) -> list[str]:
    """What a repository of an honest hub never has. Paths become keys in S3 and files on this machine."""
    names = [file.path for file in files]
    wrong = [name for name in names if not is_plain_path(name)]
    issues = (
        (not _COMMIT.fullmatch(commit), f"must have a commit of 40 hexadecimal digits, got {commit[:60]!r}; ask who runs the hub"),
        (len(files) > MAX_FILES, f"must have at most {MAX_FILES} files, got more; name another repository"),
        (bool(wrong), f"must have visible relative paths without .., got {next(iter(wrong), '')[:80]!r}; ask who runs the hub"),
        (len(set(names)) < len(names), "must have each path once, got one twice; ask who runs the hub"),
        (any(file.bytes < 0 for file in files), "must have no files of negative size, got one; ask who runs the hub"),
    )
    return [issue for is_wrong, issue in issues if is_wrong]


def is_plain_path(path: str) -> bool:
    """Whether a path is visible, stays below its folder, and is not that of the record of the files."""
    is_text = len(path) <= MAX_PATH and "\\" not in path and all(map(is_visible, path))
    return is_text and not {"", ".", ".."} & set(path.split("/")) and path != SOURCE_FILE


def _default(source: Source, files: Sequence[HubFile]) -> list[HubFile]:
    if source.kind == "dataset":
        kept = [file for file in files if any(fnmatchcase(file.path, pattern) for pattern in _OF_DATA)]
        return [file for file in kept if PurePosixPath(file.path).name not in DESCRIPTIONS]
    top = [file for file in files if "/" not in file.path and any(fnmatchcase(file.path, pattern) for pattern in _OF_MODELS)]
    # Mistral's repositories have the same weights twice, in one file under its own names.
    if any(fnmatchcase(file.path, "model*.safetensors") for file in top):
        top = [file for file in top if not fnmatchcase(file.path, "consolidated*")]
    templates = [file for file in files if fnmatchcase(file.path, "additional_chat_templates/*.jinja")]
    return [*top, *templates] if any(file.path.endswith(".safetensors") for file in top) else []


class Busy(TrainerError):
    """The hub could not answer now."""


def ask_hub(source: Source, call: Callable[[], Answer]) -> Answer:
    """Calls the hub, and again while it is busy. Raises InvalidRun and TrainerError."""
    for delay in RETRY_SECONDS:
        try:
            with hub_errors(source):
                return call()
        except Busy as error:
            print(f"{error}; trying again in {delay:g} s", file=sys.stderr, flush=True)
            time.sleep(delay)
    with hub_errors(source):
        return call()


@contextmanager
def hub_errors(source: Source) -> Iterator[None]:
    """Converts errors of the hub: those that a person must resolve to InvalidRun, others to an error after which a job tries again."""
    from huggingface_hub import constants, errors

    what = f"source: {source.text}"
    try:
        yield
    except errors.GatedRepoError as error:
        fix = f"accept its terms on the page of {source.name}, and provide a token of that account as HF_TOKEN"
        raise InvalidRun(f"{what} must be readable, got a gated repository and no token that has access; {fix}") from error
    except errors.RevisionNotFoundError as error:
        raise InvalidRun(f"{what} must name a branch, tag or commit of the repository, got {source.revision}; correct it") from error
    except errors.RepositoryNotFoundError as error:
        fix = "correct the name, or provide a token that may read a private one as HF_TOKEN"
        raise InvalidRun(f"{what} must be a {source.kind} of the hub, got none; {fix}") from error
    except errors.OfflineModeIsEnabled as error:
        raise InvalidRun(f"{what} must be read from the hub, got HF_HUB_OFFLINE; remove that variable") from error
    except (OSError, errors.HTTPError) as error:
        if isinstance(error.__cause__ or error, errors.FileMetadataError):
            fix = "let the proxy or mirror pass the headers of the hub on, or name another as HF_ENDPOINT"
            raise InvalidRun(f"{what} must be served with the headers of a hub, got {_one_line(error)}; {fix}") from error
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            must = "must fit on the disk of this machine, of which a few files at a time need room"
            raise InvalidRun(f"{what} {must}, got {_one_line(error)}; raise compute.volumeSizeGiB, or name another TMPDIR") from error
        fix = "check the network, the proxy (HTTPS_PROXY) and HF_ENDPOINT"
        status = getattr(getattr(error.__cause__ or error, "response", None), "status_code", 0)
        kind = Busy if status == 429 or status >= 500 else TrainerError
        raise kind(f"{what} must be readable from {constants.ENDPOINT}, got {_one_line(error)}; {fix}") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error.__cause__ or error).split())[:300]
