"""Paths of the SageMaker container contract, for training and processing jobs.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/build-your-own-processing-container.html (2026-11-20).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Mapping, Optional

DEFAULT_BASE = "/opt/ml"


class Paths:
    """Folders of one instance. `base` is /opt/ml on SageMaker and one folder per instance in the sandbox."""

    def __init__(self, base: Path, processing: bool) -> None:
        self.base, self.processing = base, processing
        #: The service's config files, such as resourceconfig.json.
        self.config = base / ("config" if processing else "input/config")
        #: Parent folder of the channels.
        self.data = base / ("processing/input" if processing else "input/data")
        #: The files that the service reads when the job ends, and that it uploads as the job's output and as the model.
        self.output, self.model = base / "output", base / "model"
        self.output_data = base / ("processing/output" if processing else "output/data")
        #: File whose text becomes FailureReason of a training job, or ExitMessage of a processing job.
        self.failure = self.output / ("message" if processing else "failure")
        #: The user's code, unpacked.
        self.code = base / "code"
        #: File that exists once a hand-over of the attempt was requested.
        self.hand_over = base / "slipway-hand-over"

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
