"""Starts AWS's own training toolkit as its image would, on the first host of a job, from what `launch --dry-run --out DIR` wrote.

python toolkit_start.py DIR BASE     # under a Python that has sagemaker-training and sagemaker-pytorch-training

torchrun, mpirun, nvidia-smi and ssh are stubs on the PATH; the launcher's one writes its words and variables to BASE/started.json. Replaced
inside the toolkit: the download (the archive is in DIR), name lookups, sshd, and the sleep at the end of an MPI job.
"""

import json
import os
import shutil
import socket
import sys
from pathlib import Path

STARTED = "#!%s\nimport json, os, sys\njson.dump({'words': sys.argv, 'environ': dict(os.environ)}, open(%r, 'w'))\n"


def lay_out(request: dict, base: Path) -> None:
    """The folder tree that the service makes for the first instance."""
    resources = request["ResourceConfig"]
    hosts = ["algo-%d" % (n + 1) for n in range(resources.get("InstanceCount", 1))]
    config = base / "input/config"
    config.mkdir(parents=True)
    channels = {channel["ChannelName"]: {"TrainingInputMode": "File"} for channel in request.get("InputDataConfig", [])}
    for name in channels:
        (base / "input/data" / name).mkdir(parents=True)
    files = {
        "hyperparameters": request["HyperParameters"],
        "inputdataconfig": channels,
        "resourceconfig": {
            "current_host": hosts[0],
            "current_instance_type": resources["InstanceType"],
            "current_group_name": "homogeneousCluster",
            "hosts": hosts,
            "instance_groups": [
                {"instance_group_name": "homogeneousCluster", "instance_type": resources["InstanceType"], "hosts": hosts}
            ],
            "network_interface_name": "eth0",
        },
    }
    for name, content in files.items():
        (config / (name + ".json")).write_text(json.dumps(content))


def stub_programs(base: Path, gpus: int) -> None:
    folder = base / "bin"
    folder.mkdir()
    launcher = STARTED % (sys.executable, str(base / "started.json"))
    gpu_list = "#!/bin/sh\n" + "".join("echo 'GPU %d: stub'\n" % n for n in range(gpus))
    for name, text in {"torchrun": launcher, "mpirun": launcher, "nvidia-smi": gpu_list, "ssh": "#!/bin/sh\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    os.environ["PATH"] = "%s:%s" % (folder, os.environ["PATH"])


def start(out: Path, base: Path, gpus: int) -> None:
    request = json.loads((out / "request.json").read_text())
    lay_out(request, base)
    stub_programs(base, gpus)
    os.environ.update(request.get("Environment", {}))
    os.environ.update(SAGEMAKER_BASE_DIR=str(base), TRAINING_JOB_NAME=request["TrainingJobName"])
    socket.gethostbyname = lambda host: "127.0.0.1"

    from sagemaker_training import files, mpi, smdataparallel

    files.s3_download = lambda url, target: shutil.copy(out / "s3" / url[len("s3://") :], target)
    for module in (mpi, smdataparallel):
        module._start_sshd_daemon = lambda: None
        module._can_connect = lambda host, port=22: True
        module.time.sleep = lambda seconds: None

    from sagemaker_pytorch_container import training

    training.main()


if __name__ == "__main__":
    start(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
