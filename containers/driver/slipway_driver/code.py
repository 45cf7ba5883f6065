"""The user's code: one archive in the `code` channel, whose digest is checked before anything is unpacked, and the Python packages that it
requires: from wheels in a channel, from CodeArtifact, or from the image's index.

Sources of CodeArtifact: https://docs.aws.amazon.com/codeartifact/latest/APIReference/API_GetAuthorizationToken.html and
API_GetRepositoryEndpoint.html (2026-11-20).
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import random
import re
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from slipway_driver.aws_call import call_aws
from slipway_driver.exit_codes import DriverError
from slipway_driver.log import log

_CHUNK = 1 << 20
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for chunk in iter(lambda: handle.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _outside(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def unsafe_members(archive: tarfile.TarFile) -> List[str]:
    """Names of members that would be unpacked outside the target folder, or that are not a regular file, folder or link."""
    bad: List[str] = []
    for member in archive.getmembers():
        places = [member.name, *([member.linkname] if member.islnk() else [])]
        if member.issym():
            places.append(os.path.normpath(str(PurePosixPath(member.name).parent / member.linkname)))
        if any(map(_outside, places)) or not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            bad.append(member.name)
    return bad


def unpack(archive: Path, target: Path) -> None:
    """Unpacks into `target`. Raises DriverError (77) for an archive that is corrupt or contains members outside `target`."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(str(archive), "r:gz") as opened:
            bad = unsafe_members(opened)
            if bad:
                raise DriverError("code archive: must stay inside its folder, got %s" % ", ".join(bad[:5]))
            opened.extractall(str(target), **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            raise DriverError("code archive: must be unpacked to %s, got %s; compute.volumeSizeGiB makes room" % (target, error))
        raise DriverError("code archive: must be a readable tar.gz (%s)" % error)


def prepare_code(channel: Path, digest: Optional[str], target: Path) -> None:
    """Checks and unpacks the user's code. Raises DriverError (77) unless the archive has the digest of the launched code."""
    archives = sorted(path for path in channel.glob("*.tar.gz") if path.is_file())
    if len(archives) > 1:
        raise DriverError("channel code: must contain one archive, got %s" % ", ".join(path.name for path in archives))
    if digest is None:
        raise DriverError("job.json digests.code: must be set for user code; unverified code is not started")
    if not archives:
        raise DriverError("channel code: must contain the archive %s.tar.gz, got none" % digest)
    found = sha256_of(archives[0])
    if found != digest:
        raise DriverError("code archive: must have digest %s, got %s; launch it again" % (digest, found))
    unpack(archives[0], target)


def refuse_windows_text(entry_point: str, folder: Path) -> None:
    """Raises DriverError (77) for a shell script with Windows line endings or a byte order mark: for bash, the `\\r` is a part of the last
    word of each line, and the mark a part of the first word, which it then does not find."""
    script = folder / entry_point
    if not entry_point.endswith(".sh") or not script.is_file():
        return
    text = script.read_bytes().split(b"\0")[0]  # An installer may have binary data behind its script.
    first = next((number for number, line in enumerate(text.split(b"\n"), 1) if line.endswith(b"\r")), None)
    if first is not None:
        raise DriverError(
            "code.entryPoint: must have Unix line endings, got \\r\\n on line %d of %s; convert it with dos2unix or sed -i 's/\\r$//'"
            % (first, entry_point),
        )
    words = text[len(codecs.BOM_UTF8) :].split(None, 1) if text.startswith(codecs.BOM_UTF8) else []
    if words and not words[0].startswith(b"#"):
        word = words[0].decode("utf-8", "replace")
        raise DriverError(
            "code.entryPoint: must have no byte order mark, got one before %s in %s; remove it with sed -i '1s/^\\xEF\\xBB\\xBF//'"
            % (word, entry_point),
        )


# The toolkit's variable for the repository from which packages are installed.
REPOSITORY_VARIABLE = "CA_REPOSITORY_ARN"
INSTALL_SECONDS = 1800.0
PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
#: Starts of pip. It repeats some failed requests itself, but neither those that the index throttles (pypa/pip#11006) nor broken downloads.
INSTALL_TRIES = 3
LONGEST_DELAY_SECONDS = 60.0
#: What pip writes into its log for them; an index that cannot be reached or does not have the package is not among them.
_PASSING = re.compile(
    r"(429|5\d\d) (Client|Server) Error|too many 5\d\d error responses|Read timed out|IncompleteRead|Connection (broken|reset)"
)
_ARN = re.compile(r"^arn:([^:]+):codeartifact:([^:]+):(\d+):repository/([^/]+)/([^/]+)$")


def index_url(repository_arn: str, environ: Mapping[str, str]) -> str:
    """Index URL for pip. It contains the token and must not be logged. Raises DriverError (77) if a request to the repository fails."""
    found = _ARN.match(repository_arn)
    if found is None:
        raise DriverError("CA_REPOSITORY_ARN: must be the ARN of a CodeArtifact repository, got %s" % repository_arn)
    _, region, owner, domain, repository = found.groups()
    names, place = {"domain": domain, "domain-owner": owner}, ("codeartifact", region, environ)
    try:
        token = call_aws(*place, path="/v1/authorization-token", query=names)["authorizationToken"]
        wanted = dict(names, repository=repository, format="pypi")
        endpoint = call_aws(*place, method="GET", path="/v1/repository/endpoint", query=wanted)["repositoryEndpoint"]
    except (OSError, ValueError, KeyError) as error:
        raise DriverError("CA_REPOSITORY_ARN: the request to %s failed (%s)" % (repository_arn, error))
    parts = urlsplit(endpoint)
    return "%s://aws:%s@%s%s/simple/" % (parts.scheme, token, parts.netloc, parts.path.rstrip("/"))


def install_requirements(folder: Path, name: str, wheels: Path, inherited: Mapping[str, str]) -> None:
    """Installs the requirements file `name` of the code folder. pip resolves relative paths against its working directory, which is the
    code folder, as in AWS's toolkit (sagemaker-training 5.1.1, modules.py install_requirements).

    Raises DriverError (77) if the file is missing or cannot be installed. `wheels`: the folder of a channel, which the run may not have.
    """
    file = (folder / name).resolve()
    if not file.is_file():
        raise DriverError("code.requirements: must be a file of the code archive, got %s" % file.name)
    environ, command = dict(inherited), [*PIP, "--requirement", str(file)]
    if wheels.is_dir():
        # No index: in a container without internet access, pip would wait for timeouts.
        command, origin = [*command, "--no-index", "--find-links", str(wheels)], "the wheels of channel %s" % wheels.name
    elif repository := inherited.get(REPOSITORY_VARIABLE):
        # The token of an index is never passed on the command line.
        environ["PIP_INDEX_URL"], origin = index_url(repository, inherited), "CodeArtifact"
    else:
        origin = "the index that pip is configured for"
    log("installing %s from %s" % (file.name, origin))
    end = monotonic() + INSTALL_SECONDS
    for attempt in range(1, INSTALL_TRIES + 1):
        try:
            code, lines, passes = _run_pip(command, folder, environ, end - monotonic())
        except subprocess.TimeoutExpired:
            raise DriverError("code.requirements: could not be installed from %s within %d s" % (origin, INSTALL_SECONDS))
        for line in lines:
            log("pip: " + line)
        if code == 0:
            return
        delay = random.uniform(0.25, 1.0) * LONGEST_DELAY_SECONDS
        if attempt == INSTALL_TRIES or not passes or monotonic() + delay > end:
            break
        log("the index throttled or broke off; pip starts again in %d s" % delay)
        sleep(delay)
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    raise DriverError("code.requirements: could not be installed from %s: %s" % (origin, " ".join(errors)[:400]))


def _run_pip(command: List[str], folder: Path, environ: Mapping[str, str], seconds: float) -> Tuple[int, List[str], bool]:
    """Exit code, output, and whether the index failed in a way that passes. pip says the last only in its own log."""
    with TemporaryDirectory() as scratch:
        report = Path(scratch) / "pip.log"
        words = [*command, "--log", str(report)]
        done = subprocess.run(words, cwd=str(folder), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
        written = report.read_text("utf-8", "replace") if report.is_file() else ""
    return done.returncode, done.stdout.decode("utf-8", "replace").splitlines(), _PASSING.search(written) is not None
