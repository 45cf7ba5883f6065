"""Compiled code that is kept over attempts: the caches of Inductor and Triton as one bundle in S3.

Every host restores the bundle before its ranks start. The host of rank 0 writes it once, some minutes after the start of the ranks or at
their end. It is below the team's own prefix, which other teams can neither read nor write, and belongs to one image, PyTorch version, GPU
type, model and layout. Inductor and Triton look up compiled code by the digest of its source and options, so a bundle can be incomplete,
but not wrong.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from pathlib import Path
from typing import Any, Mapping, Optional

from slipway_driver.job import Job, Paths
from slipway_driver.log import log
from slipway_s3 import S3Client, join_uri, parse_uri

#: Variable of each cache, and its folder.
FOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
#: A larger bundle would take longer than compiling.
MAX_BYTES = 1 << 30
BUNDLE, DIGEST = "bundle.tar.gz", "bundle.sha256"
#: The ranks do not wait longer for a bundle.
RESTORE_SECONDS = 60.0
#: Time after which the ranks have usually compiled everything.
KEEP_AFTER_SECONDS = 600.0
#: The container does not end later because of a bundle.
WRITE_SECONDS = 15.0


def bundle_key(job: Job, image: str, hardware: Mapping[str, Any]) -> str:
    """The name of the bundle, from what determines the compiled code."""
    raw, training = job.raw, job.raw.get("training") or {}
    shapes = {name: training.get(name) for name in sorted(training) if name not in ("steps", "totalTokens", "seed", "skips", "mixture")}
    parts = [image, hardware.get("torch"), hardware.get("gpu"), raw.get("model"), raw.get("distribution"), shapes, job.processes_per_host,
            job.entry_point, job.code_digest]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()[:32]


class CompileCache:
    """The bundle of one attempt on one host. `variables`: the folders in the environment of the ranks."""

    def __init__(self, uri: str, variables: Mapping[str, str], client: Optional[S3Client] = None) -> None:
        self._bucket, self._prefix = parse_uri(uri.rstrip("/") + "/")
        self.variables = variables
        self._folders = {FOLDERS[name]: Path(folder) for name, folder in variables.items()}
        self._client = client or S3Client()
        self._restored = threading.Event()
        #: Whether this host is the one that writes the bundle, which only the host of rank 0 is.
        self.writes, self._exists = False, False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Starts to restore the bundle."""
        threading.Thread(target=self._restore, name="compile-cache", daemon=True).start()
        timer = threading.Timer(KEEP_AFTER_SECONDS, self._keep)
        timer.daemon = True
        timer.start()

    def wait(self) -> None:
        """Waits until the bundle is restored, or was not found."""
        self._restored.wait(RESTORE_SECONDS)

    def _restore(self) -> None:
        try:
            data = self._read()
            self._exists = data is not None
            if data is not None:
                log("compiled code of an earlier attempt: %d files, %.1f MiB" % (self._unpack(data), len(data) / 2**20))
        except Exception as error:  # The bundle only saves time.
            log("compiled code of an earlier attempt cannot be used: %s" % error)
        finally:
            self._restored.set()

    def _read(self) -> Optional[bytes]:
        """The bundle; None if there is none. Raises ValueError if it is not the one whose digest was written."""
        digest = self._client.find(self._bucket, self._prefix + DIGEST)
        data = None if digest is None else self._client.find(self._bucket, self._prefix + BUNDLE)
        if digest is None or data is None:
            return None
        if hashlib.sha256(data).hexdigest() != digest.decode("ascii", "replace").strip():
            raise ValueError("the bundle does not have the digest that was written with it")
        return data

    def _unpack(self, data: bytes) -> int:
        count = 0
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as opened:
            for member in opened:
                folder, _, rest = member.name.partition("/")
                root = self._folders.get(folder)
                source = opened.extractfile(member) if member.isfile() else None
                if root is None or source is None or root.resolve() not in (root / rest).resolve().parents:
                    continue
                (root / rest).parent.mkdir(parents=True, exist_ok=True)
                (root / rest).write_bytes(source.read())
                # Compiled programs of Inductor are loaded as libraries, which needs no permission; its tools are executed.
                (root / rest).chmod(0o700 if member.mode & 0o100 else 0o600)
                count += 1
        return count

    def close(self) -> None:
        """Called when the ranks have ended: writes the bundle if it was not written, for a limited time."""
        writer = threading.Thread(target=self._keep, name="compile-cache", daemon=True)
        writer.start()
        writer.join(WRITE_SECONDS)

    def _keep(self) -> None:
        """Writes the bundle once, unless there was one at the start."""
        with self._lock:
            if not self.writes or self._exists or not self._restored.is_set():
                return
            self._exists = True
            try:
                data = self._packed()
                if data is not None:
                    # The digest comes last: a bundle without it does not count.
                    self._client.put(self._bucket, self._prefix + BUNDLE, data)
                    self._client.put(self._bucket, self._prefix + DIGEST, hashlib.sha256(data).hexdigest().encode("ascii"))
                    log("compiled code is kept for later attempts: %.1f MiB" % (len(data) / 2**20))
            except Exception as error:  # The bundle only saves time.
                log("compiled code is not kept: %s" % error)

    def _packed(self) -> Optional[bytes]:
        """The bundle; None without compiled code, or with more than MAX_BYTES of it."""
        files = {
            "%s/%s" % (folder, path.relative_to(root).as_posix()): path
            for folder, root in self._folders.items()
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and not path.name.endswith((".tmp", ".lock"))
        }
        if not files or sum(path.stat().st_size for path in files.values()) > MAX_BYTES:
            return None
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as opened:
            for name, path in sorted(files.items()):
                opened.add(str(path), arcname=name, recursive=False)
        return packed.getvalue()


def compile_cache_of(job: Job, paths: Paths, inherited: Mapping[str, str], hardware: Mapping[str, Any]) -> Optional[CompileCache]:
    """The bundle of an attempt; None where there is no place for it. Caches whose folder the user or the image has chosen are not in it."""
    root = paths.base / "compile-cache"
    variables = {name: str(root / folder) for name, folder in FOLDERS.items() if name not in inherited and name not in job.env}
    if not job.compile_cache_uri or not variables:
        return None
    key = bundle_key(job, inherited.get("SLIPWAY_IMAGE_URI", ""), hardware)
    return CompileCache(join_uri(job.compile_cache_uri, key), variables)
