"""Self-test of the training image, the last step of its build. Standard library, Python 3.8+; needs no GPU or EFA device.

Prints the versions that it finds as one JSON object and writes them to `--output`. All problems because of which jobs on EFA would fail, or
silently use sockets, are printed to standard error and end the build with exit code 1.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

#: The file that NCCL opens unless NCCL_NET_PLUGIN is set: every wheel from 2.18 to 2.30 contains only this name (docs/image.md).
#: Plugin 1.15 and later install both libnccl-net-ofi.so and this file.
DEFAULT_PLUGIN = "libnccl-net.so"
#: Libraries of the host's driver: mounted when a job starts, absent while an image is built.
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
#: The minimum version of libfabric for plugin 1.13 and later (aws-ofi-nccl release notes).
MIN_LIBFABRIC = (1, 22)
BAKED = {"FI_PROVIDER": "efa", "NCCL_PROTO": "simple"}
#: Packages of install-tools.sh, and the consequence of their absence.
TOOLS = {
    "s3torchconnector": "checkpoints in S3 use a slower client",
    "py-spy": "a hang is explained by the stacks of faulthandler only",
    "tokenizers": "the tokenise step reads no tokenizer.json",
    "huggingface_hub": "the fetch step does not run",
    "bitsandbytes": "training.lora.quantization is refused",
}
TORCH_PROBE = (
    "import json, torch\n"
    "nccl = torch.cuda.nccl.version() if torch.version.cuda else None\n"
    "from importlib.metadata import version, PackageNotFoundError\n"
    "def of(name):\n"
    "    try:\n"
    "        return version(name)\n"
    "    except PackageNotFoundError:\n"
    "        return None\n"
    "tools = {name: of(name) for name in %r}\n"
    "print(json.dumps({'pytorch': torch.__version__, 'cuda': torch.version.cuda, 'nccl': nccl, 'tools': tools}))"
) % list(TOOLS)


class Report(NamedTuple):
    """`versions`: the versions found; `problems`: the reasons why the build must fail; `notes`: what the image does without."""

    versions: Dict[str, Optional[str]]
    problems: List[str]
    notes: Sequence[str] = ()


def loader_folders(environ: Mapping[str, str], cache: str) -> List[Path]:
    """Folders that the dynamic loader searches: those of LD_LIBRARY_PATH, then those of `ldconfig -p` (`cache`)."""
    named = [Path(entry) for entry in environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    cached = [Path(found).parent for found in re.findall(r"=> (\S+)", cache)]
    return list(dict.fromkeys(named + cached))


def plugin_name(environ: Mapping[str, str]) -> str:
    """The file that NCCL opens. NCCL_NET_PLUGIN is a file name, or the part between `libnccl-net-` and `.so`."""
    requested = environ.get("NCCL_NET_PLUGIN", "")
    if not requested:
        return DEFAULT_PLUGIN
    return requested if ".so" in requested else "libnccl-net-%s.so" % requested


def find_plugin(folders: Sequence[Path], name: str = DEFAULT_PLUGIN) -> Optional[Path]:
    """The plugin that NCCL would find; None if it is outside these folders or has another name."""
    candidates = [Path(name)] if name.startswith("/") else [folder / name for folder in folders]
    return next((path for path in candidates if path.is_file()), None)


def missing_libraries(ldd: str) -> List[str]:
    """Libraries that `ldd` does not find, except those of the host's driver."""
    return [name for name in re.findall(r"^\s*(\S+) => not found", ldd, re.MULTILINE) if name not in DRIVER_LIBRARIES]


def plugin_version(content: bytes) -> Optional[str]:
    """Version from the plugin's first log line (`Initializing aws-ofi-nccl X`, `Using` up to 1.6)."""
    found = re.search(rb"(?:Initializing|Using) aws-ofi-nccl (\d[\w.\-]*)", content)
    return found.group(1).decode() if found else None


def libfabric_version(output: str) -> Optional[str]:
    """Version from the output of `fi_info --version`."""
    found = re.search(r"libfabric: *(\d\S*)", output)
    return found.group(1) if found else None


def is_too_old(libfabric: str) -> bool:
    """Whether this libfabric is too old for the plugin (`2.4.0amzn5.0` counts as 2.4)."""
    major, minor = (re.findall(r"\d+", libfabric) + ["0", "0"])[:2]
    return (int(major), int(minor)) < MIN_LIBFABRIC


def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Runs `command`; exit code 127 if it does not exist, as in a shell."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, str(error))


def load_problem(library: Path) -> Optional[str]:
    """Why `library` cannot be loaded; None if it can, or if only the host's driver is missing."""
    try:
        ctypes.CDLL(str(library))
        return None
    except OSError as error:
        missing = missing_libraries(run(["ldd", str(library)]).stdout)
        if missing:
            return "%s: all its libraries must be on the loader's path, missing %s" % (library, ", ".join(missing))
        return None if any(name in str(error) for name in DRIVER_LIBRARIES) else "%s: must load, got %s" % (library, error)


def check_plugin(folders: Sequence[Path], environ: Mapping[str, str]) -> Report:
    """Checks the NCCL plugin: it has the name that NCCL opens, is AWS's plugin, can be loaded, and finds the CUDA runtime."""
    name = plugin_name(environ)
    plugin = find_plugin(folders, name)
    if plugin is None:
        others = sorted({path.name for folder in folders for path in folder.glob("libnccl-net*.so")})
        must = "must be on the loader's path (LD_LIBRARY_PATH, ldconfig), because NCCL opens that name and otherwise silently uses TCP"
        return Report({"plugin": None}, ["%s: %s, got %s there" % (name, must, ", ".join(others) or "none")])
    content = plugin.read_bytes()
    problem = load_problem(plugin)
    problems = [problem] if problem else []
    if plugin_version(content) is None:
        problems.append("%s: must be aws-ofi-nccl, got a file that does not name it" % plugin)
    if b"libcudart.so\0" in content and not any((folder / "libcudart.so").exists() for folder in folders):
        problems.append("libcudart.so: must be on the loader's path, because the plugin opens that name, got none there")
    return Report({"plugin": plugin_version(content), "pluginFile": str(plugin)}, problems)


def check_libfabric() -> Report:
    """Checks that `fi_info` runs and that the plugin supports its libfabric."""
    answer = run(["fi_info", "--version"])
    version = libfabric_version(answer.stdout)
    if answer.returncode != 0 or version is None:
        got = "exit %d: %s" % (answer.returncode, answer.stdout.strip()[:300])
        return Report({"libfabric": None}, ["fi_info --version: must run, got %s" % got])
    least = "%d.%d" % MIN_LIBFABRIC
    problems = ["libfabric: must be %s or later for the plugin, got %s" % (least, version)] if is_too_old(version) else []
    return Report({"libfabric": version}, problems)


def check_torch(python: str) -> Report:
    """Checks that PyTorch can be imported by the Python of the ranks and is a CUDA build."""
    answer = run([python, "-c", TORCH_PROBE])
    if answer.returncode != 0:
        return Report({"pytorch": None}, ["import torch: must work with %s, got %s" % (python, answer.stdout.strip()[-300:])])
    found = json.loads(answer.stdout.strip().splitlines()[-1])
    nccl = ".".join(str(part) for part in found["nccl"]) if isinstance(found["nccl"], list) else found["nccl"]
    problems = [] if found["cuda"] else ["torch: must be a build with CUDA, got %s without" % found["pytorch"]]
    return Report({"pytorch": found["pytorch"], "cuda": found["cuda"], "nccl": nccl, **found["tools"]}, problems)


def pinned_tools(script: Path) -> Dict[str, str]:
    """The packages of install-tools.sh and their versions."""
    return dict(re.findall(r"([\w-]+)==([\w.]+)", script.read_text(encoding="utf-8")))


def check_tools(found: Mapping[str, Optional[str]], pinned: Mapping[str, str], left_out: Sequence[str]) -> Report:
    """Checks that the image has the tools for which it was built. `left_out`: those that the index did not have."""
    problems, notes = [], []
    for name, wanted in pinned.items():
        if name in left_out:
            notes.append("%s: left out, because the package index did not have it; %s" % (name, TOOLS[name]))
        elif found.get(name) != wanted:
            problems.append("%s: must be %s in the image, got %s" % (name, wanted, found.get(name) or "none"))
    return Report({}, problems, notes)


def check_variables(environ: Mapping[str, str]) -> Report:
    """Checks the variables that the image must set."""
    wrong = [name for name, value in BAKED.items() if environ.get(name) != value]
    return Report({}, ["%s: must be %s in the image, got %s" % (name, BAKED[name], environ.get(name)) for name in wrong])


def check_shim(path: Path) -> Report:
    """Checks that the hostname shim, if it was built, returns the configured name."""
    if not path.is_file():
        return Report({"hostnameShim": None}, [])
    environ = dict(os.environ, LD_PRELOAD=str(path), SM_CURRENT_HOST="algo-17")
    script = "import socket; print(socket.gethostname())"
    probe = subprocess.run([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, check=False)
    name = probe.stdout.decode().strip()
    return Report({"hostnameShim": str(path)}, [] if name == "algo-17" else ["%s: must answer algo-17, got %r" % (path, name)])


def main(arguments: Sequence[str]) -> int:
    """Runs all checks; returns 0 if there are no problems."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="file for the versions")
    parser.add_argument("--python", default="python3", help="Python that runs the ranks")
    parser.add_argument("--shim", type=Path, default=Path("/opt/slipway/lib/libslipway-hostname.so"))
    parser.add_argument("--left-out", type=Path, default=Path("/opt/slipway/lib/left-out-tools"), help="written by install-tools.sh")
    options = parser.parse_args(arguments)
    folders = loader_folders(os.environ, run(["ldconfig", "-p"]).stdout)
    torch = check_torch(options.python)
    left_out = options.left_out.read_text(encoding="utf-8").split() if options.left_out.is_file() else []
    tools = pinned_tools(Path(__file__).with_name("install-tools.sh"))
    checks = [
        check_plugin(folders, os.environ),
        check_libfabric(),
        torch,
        # Without PyTorch, the versions are unknown.
        check_tools(torch.versions, tools if torch.versions["pytorch"] else {}, left_out),
        check_variables(os.environ),
        check_shim(options.shim),
    ]
    versions = {name: value for check in checks for name, value in check.versions.items()}
    problems = [problem for check in checks for problem in check.problems]
    text = json.dumps(versions, sort_keys=True)
    print(text)
    for note in [note for check in checks for note in check.notes]:
        print("self-test: " + note)
    for problem in problems:
        print("self-test: " + problem, file=sys.stderr)
    if not problems:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
