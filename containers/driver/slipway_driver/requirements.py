"""Installs the Python packages that the user's code requires: from wheels in a channel, from CodeArtifact, or from the image's index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable, Mapping, Optional

from slipway_driver.code import bare_digest, sha256_of
from slipway_driver.codeartifact import index_url
from slipway_driver.exit_codes import ENVIRONMENT, DriverError

# The toolkit's variable for the repository from which packages are installed.
REPOSITORY_VARIABLE = "CA_REPOSITORY_ARN"
INSTALL_SECONDS = 1800.0
PIP = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")


def install_requirements(
    folder: Path, name: str, digest: Optional[str], wheels_channel: Path, inherited: Mapping[str, str], log: Callable[[str], None]
) -> None:
    """Installs the requirements file `name` of the code folder. pip resolves relative paths against its working directory, which is the
    code folder, as in AWS's toolkit (sagemaker-training 5.1.1, modules.py install_requirements).

    Raises DriverError (77) if the file is missing, differs from the launched file, or cannot be installed.
    """
    file = (folder / name).resolve()
    if not file.is_file():
        raise DriverError(ENVIRONMENT, "code.requirements: must be a file of the code archive, got %s" % file.name)
    if digest is not None and sha256_of(file) != bare_digest(digest):
        raise DriverError(ENVIRONMENT, "code.requirements: must have digest %s; launch it again" % bare_digest(digest))
    wheels = wheels_channel if wheels_channel.is_dir() else None
    environ, command = dict(inherited), [*PIP, "--requirement", str(file)]
    if wheels:
        # No index: in a container without internet access, pip would wait for timeouts.
        command, origin = [*command, "--no-index", "--find-links", str(wheels)], "the wheels of channel %s" % wheels.name
    elif repository := inherited.get(REPOSITORY_VARIABLE):
        # The token of an index is never passed on the command line.
        environ["PIP_INDEX_URL"], origin = index_url(repository, inherited), "CodeArtifact"
    else:
        origin = "the index that pip is configured for"
    log("installing %s from %s" % (file.name, origin))
    try:
        done = subprocess.run(
            command, cwd=str(folder), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise DriverError(ENVIRONMENT, "code.requirements: could not be installed from %s within %d s" % (origin, INSTALL_SECONDS))
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    for line in lines:
        log("pip: " + line)
    if done.returncode != 0:
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise DriverError(ENVIRONMENT, "code.requirements: could not be installed from %s: %s" % (origin, " ".join(errors)[:400]))
