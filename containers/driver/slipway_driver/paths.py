"""Paths of the SageMaker container contract, for training and processing jobs.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/build-your-own-processing-container.html (2026-11-20).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional

DEFAULT_BASE = "/opt/ml"


@dataclass(frozen=True)
class Paths:
    """Folders of one instance. `base` is /opt/ml on SageMaker and one folder per instance in the sandbox."""

    base: Path
    processing: bool

    @property
    def config(self) -> Path:
        """Folder of the service's config files, such as resourceconfig.json."""
        return self.base / "config" if self.processing else self.base / "input" / "config"

    @property
    def data(self) -> Path:
        """Parent folder of the channels."""
        return self.base / "processing" / "input" if self.processing else self.base / "input" / "data"

    @property
    def output(self) -> Path:
        """Folder of the files that the service reads when the job ends."""
        return self.base / "output"

    @property
    def output_data(self) -> Path:
        """Folder that the service uploads as the job's output."""
        return self.base / "processing" / "output" if self.processing else self.base / "output" / "data"

    @property
    def failure(self) -> Path:
        """File whose text becomes FailureReason of a training job, or ExitMessage of a processing job."""
        return self.output / ("message" if self.processing else "failure")

    @property
    def model(self) -> Path:
        """Folder that the service uploads as the model."""
        return self.base / "model"

    @property
    def code(self) -> Path:
        """Folder into which the user's code is unpacked."""
        return self.base / "code"

    @property
    def checkpoints(self) -> Path:
        """Folder that the service synchronizes with S3 under `checkpoints.mode: managed`."""
        return self.base / "checkpoints"

    @property
    def hand_over(self) -> Path:
        """File that exists once a hand-over of the attempt was requested."""
        return self.base / "slipway-hand-over"

    def channel(self, name: str) -> Path:
        """Folder of one channel."""
        return self.data / name

    def localised(self, uri: str) -> str:
        """`uri` with a leading /opt/ml replaced by the base folder of this instance."""
        if uri == DEFAULT_BASE or uri.startswith(DEFAULT_BASE + "/"):
            return str(self.base) + uri[len(DEFAULT_BASE) :]
        return uri


def paths_of(environ: Optional[Mapping[str, str]] = None) -> Paths:
    """The paths of this container, from SAGEMAKER_BASE_DIR (default /opt/ml) and the type of its config files."""
    base = Path((os.environ if environ is None else environ).get("SAGEMAKER_BASE_DIR") or DEFAULT_BASE)
    return Paths(base=base, processing=(base / "config" / "processingjobconfig.json").exists())
