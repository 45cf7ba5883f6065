"""A job on this machine: one folder tree and one driver process per host, as the service would start them."""

import atexit
import compileall
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
#: Hosts of this process: a job's ports come from its name, so tests that run at once must not share addresses.
NETWORK = "127.%d.%d" % (1 + os.getpid() // 250 % 250, 1 + os.getpid() % 250)
#: A model as a run file describes it, and as job.json does.
SMALL = {
    "layers": 2, "hiddenSize": 32, "attentionHeads": 4, "kvHeads": 2, "ffnHiddenSize": 64,
    "vocabularySize": 257, "gatedMlp": True, "tiedEmbeddings": False,
}  # fmt: skip
TINY = SMALL | {"headSize": 8}
#: The same sizes in the words of a config.json.
TINY_CONFIG = {
    "num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64,
    "vocab_size": 257, "rms_norm_eps": 1e-5, "rope_theta": 10_000.0, "tie_word_embeddings": False,
}  # fmt: skip


#: nvidia-smi of a host with two GPUs, or with what the host's files say. `held` has a line for each query that still finds memory in use.
_NVIDIA_SMI = """#!/bin/sh
held="$SAGEMAKER_BASE_DIR/held"
uuid_of() { printf '00000000-0000-0000-0000-%012d' "$1${SAGEMAKER_BASE_DIR##*-}"; }
case "$*" in
*--list-gpus*) printf 'GPU 0: x\\nGPU 1: x\\n';;
*index,uuid*)
  printf '0, GPU-%s, 00000000:53:00.0\\n1, GPU-%s, 00000000:64:00.0\\n' "$(uuid_of 0)" "$(uuid_of 1)";;
*name,memory.total*) printf 'NVIDIA H100, 81559, 580.95.05\\n';;
*index,ecc*) cat "$SAGEMAKER_BASE_DIR/gpus" 2>/dev/null || printf '0, 0\\n1, 0\\n';;
*index,memory.used*)
  if [ -s "$held" ]; then sed -i 1d "$held"; printf '0, 70000\\n1, 10\\n'; else printf '0, 10\\n1, 10\\n'; fi;;
esac
"""


def with_gpus(folder: Path) -> dict[str, str]:
    """Variables of a world whose hosts have an nvidia-smi."""
    tool = folder / "bin/nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(_NVIDIA_SMI)
    tool.chmod(0o755)
    return {"PATH": f"{tool.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


#: Replaces `python -m torch.distributed.run` before it imports PyTorch, which takes three seconds of processor time on each host.
_TORCHRUN = """
import os, sys
if "torch.distributed.run" in sys.orig_argv:
    given = dict(word[2:].split("=") for word in sys.orig_argv if word.startswith("--") and "=" in word)
    command = sys.orig_argv[sys.orig_argv.index("--no-python") + 1 :]
    places = {"RANK": given["node-rank"], "LOCAL_RANK": "0", "WORLD_SIZE": given["nnodes"], "LOCAL_WORLD_SIZE": "1"}
    os.execvpe(command[0], command, os.environ | places | {"MASTER_ADDR": given["master-addr"], "MASTER_PORT": given["master-port"]})
"""


def with_quick_torchrun(folder: Path) -> dict[str, str]:
    """Variables of a world in which torchrun only starts the one rank of its host."""
    (folder / "site").mkdir()
    (folder / "site/sitecustomize.py").write_text(_TORCHRUN)
    return {"PYTHONPATH": str(folder / "site")}


def lose_gpu(world: "FakeWorld", host: str) -> None:
    (world.base(host) / "gpus").write_text("0, 0\n")


def _descendants(pid: int, depth: int = 1) -> list[tuple[int, int]]:
    """The processes below a process, each with its depth."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [found for child in children for found in [(depth, child), *_descendants(child, depth + 1)]]


def job_json(**changes: Any) -> dict[str, Any]:
    """A job file of schema 1; `changes` replace its sections."""
    job: dict[str, Any] = {
        "schema": 1,
        "environment": "test",
        "runId": "tiny-261121120000",
        "attempt": 1,
        "team": "default",
        "configHash": "abc",
        "launcher": "script",
        "processesPerHost": 1,
        "entryPoint": "train.py",
        "arguments": [],
        "env": {},
        "userPinned": [],
        "efa": "preferred",
        "efaVariables": "auto",
        "instanceGroups": [],
        "trainingGroups": [],
        "mpiOptions": "",
        "distribution": {"library": "custom", "collectives": "gloo", "parameters": {}},
        "training": {},
        "model": None,
        "weights": None,
        "checkpoints": {"mode": "none", "uri": "", "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"},
        "progress": {"startupMinutes": 30, "silenceMinutes": 20},
        "digests": {"code": None, "requirements": None},
        "requirements": None,
        "maxRuntimeSeconds": 3600,
        "heartbeatUri": None,
        "restartsInPlace": 0,
        "restartSecret": "secret",
    }
    return job | changes


def direct_checkpoints(uri: "str | Path", **changes: Any) -> dict[str, Any]:
    """The section `checkpoints` of a job file with checkpoints that the ranks write themselves; `changes` replace its fields."""
    return {"mode": "direct", "uri": str(uri), "resumeFrom": "", "keep": 3, "intervalMinutes": "auto"} | changes


@cache
def _published(tree: Path) -> Path:
    """The driver channel as the stack publishes it: the driver's files and both of our packages, side by side, once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="driver-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    driver = tree / "containers/driver"
    # 0.2.0, beside which bench/recovery measures, had no helper.
    for file in [driver / "launch.sh", *driver.glob("*.py")]:
        shutil.copy(file, folder / file.name)
    for package in ("driver/slipway_driver", "driver/slipway_s3", "trainer/slipway_trainer"):
        source = tree / "containers" / package
        # Compiled once here, and not by every process of every host: those write nothing.
        compileall.compile_dir(source, quiet=2)
        shutil.copytree(source, folder / source.name)
    return folder


def install_driver(channel: Path, tree: Path = REPOSITORY) -> None:
    """The driver channel of one host. Its files are links: who writes one removes it first."""
    shutil.copytree(_published(tree), channel, copy_function=os.link)


def pack_code(channel: Path, files: dict[str, str | bytes]) -> str:
    """The user's code as the one archive of its channel; returns its digest."""
    channel.mkdir(parents=True)
    source = channel.parent / "code-source"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(text.encode() if isinstance(text, str) else text)
    archive = channel / "archive.tar.gz"
    # Without times, so that all hosts have the same archive.
    with gzip.GzipFile(archive, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as opened:
        for name in files:
            info = opened.gettarinfo(source / name, arcname=name)
            info.mtime = 0
            with (source / name).open("rb") as content:
                opened.addfile(info, content)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.rename(channel / f"{digest}.tar.gz")
    return digest


class FakeWorld:
    """Hosts of one job below `root`. Addresses are loopback ones, so that hosts are told apart without root rights. `tree`: the repository
    whose driver and trainer they run."""

    def __init__(self, root: Path, hosts: int, job: dict[str, Any], code: dict[str, str] | None = None,
                 hyperparameters: dict[str, str] | None = None, name: str = "test-job-a001",
                 groups: list[dict[str, Any]] | None = None, tree: Path = REPOSITORY) -> None:  # fmt: skip
        self.root, self.job, self.name, self._tree = root, job, name, tree
        self.hosts = [f"algo-{number + 1}" for number in range(hosts)]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for host in self.hosts:
            self._prepare(host, dict(job), code, hyperparameters or {}, groups)

    def base(self, host: str) -> Path:
        return self.root / host

    def _prepare(self, host: str, job: dict[str, Any], code: dict[str, str] | None, hyperparameters: dict[str, str],
                 groups: list[dict[str, Any]] | None) -> None:  # fmt: skip
        base = self.base(host)
        config, data = base / "input/config", base / "input/data"
        config.mkdir(parents=True)
        install_driver(data / "driver", self._tree)
        if code is not None:
            job["digests"] = {**job["digests"], "code": job["digests"]["code"] or pack_code(data / "code", code)}
        (data / "job").mkdir()
        (data / "job/job.json").write_text(json.dumps(job))
        resources: dict[str, Any] = {
            "current_host": host, "current_instance_type": "ml.m5.large", "current_group_name": "homogeneousCluster",
            "hosts": self.hosts, "network_interface_name": "lo",
        }  # fmt: skip
        if groups:
            own = next(group for group in groups if host in group["hosts"])
            resources |= {"instance_groups": groups, "current_group_name": own["instance_group_name"]}
        (config / "resourceconfig.json").write_text(json.dumps(resources))
        (config / "hyperparameters.json").write_text(json.dumps(hyperparameters))
        lines = [f"{NETWORK}.{number + 1} {name}" for number, name in enumerate(self.hosts)]
        (config / "hosts").write_text("\n".join(lines) + "\n")
        self._describe_channels(host)

    def _describe_channels(self, host: str) -> None:
        data = self.base(host) / "input/data"
        described = {
            entry.name: {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"}
            for entry in sorted(data.iterdir())
            if entry.is_dir() and entry.name != "code-source"
        }
        (self.base(host) / "input/config/inputdataconfig.json").write_text(json.dumps(described))

    def add_channel(self, name: str, source: Path) -> None:
        for host in self.hosts:
            (self.base(host) / "input/data" / name).symlink_to(source)
            self._describe_channels(host)

    def start(self, environ: dict[str, str] | None = None, only: list[str] | None = None) -> None:
        for host in only or self.hosts:
            variables = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
            variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
            variables |= {"SAGEMAKER_BASE_DIR": str(self.base(host)), "TRAINING_JOB_NAME": self.name, "AWS_REGION": "us-west-2"}
            log = (self.base(host) / "log").open("wb")
            self.processes[host] = subprocess.Popen(
                ["/bin/bash", "-c", 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/input/data/driver/launch.sh"'],
                env=variables | (environ or {}), stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def wait(self, seconds: float = 180.0) -> list[int]:
        """Exit codes in the order of the hosts. On a timeout everything is killed and the test fails with the logs."""
        deadline = time.monotonic() + seconds
        try:
            return [self.processes[host].wait(max(0.1, deadline - time.monotonic())) for host in self.processes]
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the job did not end in time:\n" + "\n".join(self.log(host) for host in self.processes)) from None

    def driver(self, host: str) -> int:
        """The process id of a host's driver."""
        (pid,) = (pid for depth, pid in _descendants(self.processes[host].pid) if depth == 1)
        return pid

    def kill_rank(self, host: str) -> None:
        """Kills the rank of a host: the innermost process below its driver that leads a session."""
        leaders = [(depth, pid) for depth, pid in _descendants(self.processes[host].pid) if os.getsid(pid) == pid]
        os.kill(max(leaders)[1], signal.SIGKILL)

    def kill(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()

    def log(self, host: str) -> str:
        return (self.base(host) / "log").read_text(errors="replace")

    def events(self, host: str, kind: str) -> list[dict[str, Any]]:
        """Progress events of one kind in a host's log."""
        found = [json.loads(line[len("slipway ") :]) for line in self.log(host).splitlines() if line.startswith("slipway {")]
        return [event for event in found if event["event"] == kind]

    def failure(self, host: str) -> dict[str, Any]:
        """The first line of the failure file."""
        return json.loads((self.base(host) / "output/failure").read_text().splitlines()[0])

    def wait_for(self, host: str, text: str, seconds: float = 120.0) -> None:
        """Waits until a host's log holds `text`."""
        deadline = time.monotonic() + seconds
        while text not in self.log(host):
            if time.monotonic() > deadline or self.processes[host].poll() is not None and text not in self.log(host):
                raise AssertionError(f"{text!r} never came:\n{self.log(host)}")
            time.sleep(0.05)
