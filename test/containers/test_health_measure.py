"""The measurements of the health check: every rank is watched, and only an error of a GPU refuses the host."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fake_world import REPOSITORY
from slipway_driver import health_measure
from slipway_driver.health_findings import measured_findings, tuning
from slipway_driver.health_measure import Measured, Setup, measure
from slipway_driver.health_rank import is_gpu_error
from slipway_driver.tables import GPU_INSTANCES

pytestmark = pytest.mark.jobs

#: A Python whose health_rank is the script in $RANK_SCRIPT. The other ranks wait for the one that fails, as in a collective.
PYTHON = """#!/bin/sh
stage() { echo "stage: $1"; }
matmul() { stage 'matrix multiplication'; }
reduce() { stage all-reduce; }
wait_for_end() { echo $$ > "waits-$RANK"; exec sleep 600; }
eval "$RANK_SCRIPT"
"""
OTHERS = 'if [ "$RANK" != 2 ]; then matmul; reduce; wait_for_end; fi; '


def measured(folder: Path, script: str, **environ: str) -> Measured:
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    variables = {"PATH": os.environ["PATH"], "RANK_SCRIPT": script, **environ}
    return measure(Setup(str(python), variables, folder, 4), threading.Event())


def refusal(found: Measured) -> "list[tuple[str, bool]]":
    return [(finding.reason, finding.refuses) for finding in found.findings]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "matmul; echo 'RuntimeError: CUDA error: unspecified launch failure' >&2; echo 'Compile with TORCH_USE_CUDA_DSA' >&2; exit 1",
            "GPU 2 failed in matrix multiplication with exit code 1: RuntimeError: CUDA error: unspecified launch failure",
        ),
        ("matmul; reduce; kill -SEGV $$", "GPU 2 failed in all-reduce with signal 11"),
        ("matmul; exit 7", "GPU 2 failed in matrix multiplication with exit code 7"),
    ],
)
def test_a_rank_other_than_the_first_that_dies_ends_the_measurement_and_is_named(tmp_path: Path, script: str, reason: str) -> None:
    found = measured(tmp_path, OTHERS + script)
    assert refusal(found) == [(reason, True)] and found.facts == {}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED' >&2; exit 1", "CUBLAS_STATUS_EXECUTION_FAILED"),
        ("kill -SEGV $$", "signal 11"),
    ],
)
def test_what_fails_on_every_gpu_is_told_and_does_not_refuse(tmp_path: Path, script: str, said: str) -> None:
    # The ranks come to it one after the other.
    in_turn = f'[ "$RANK" = 0 ] || while [ ! -e done-$((RANK - 1)) ]; do :; done; matmul; touch done-$RANK; {script}'
    [(reason, refuses)] = refusal(measured(tmp_path, in_turn))
    assert not refuses and reason.startswith("the GPUs were not measured: rank 0 failed in matrix multiplication with ") and said in reason


def test_an_error_that_only_broken_hardware_has_refuses_also_on_every_gpu(tmp_path: Path) -> None:
    script = "matmul; echo 'Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized' >&2; exit 1"
    [(reason, refuses)] = refusal(measured(tmp_path, script))
    assert refuses and "failed in matrix multiplication with exit code 1" in reason


@pytest.mark.parametrize("end", ["kill -SEGV $$", "kill -ABRT $$", "exit 1", "wait_for_end"])
def test_what_happens_after_the_result_does_not_count(tmp_path: Path, end: str) -> None:
    script = f"""matmul; reduce; [ "$RANK" != 0 ] || echo '{{"tflops": [1.0]}}'; stage end; {end}"""
    assert measured(tmp_path, script) == Measured({"tflops": [1.0]}, [], [])


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 3",
            "rank 2 failed in the import of PyTorch with exit code 3: ModuleNotFoundError: No module named 'torch'",
        ),
        ("kill -ILL $$", "rank 2 failed in the import of PyTorch with signal 4"),
        ("matmul; kill -KILL $$", "rank 2 failed in matrix multiplication with signal 9"),
        ("matmul; reduce; kill -BUS $$", "rank 2 failed in all-reduce with signal 7"),
        ("matmul; kill -TERM $$", "rank 2 failed in matrix multiplication with signal 15"),
        ("matmul; echo 'RuntimeError: no kernel image' >&2; exit 3", None),
        ("matmul; reduce; echo 'what(): NCCL error: unhandled system error' >&2; kill -ABRT $$", None),
    ],
)
def test_a_failure_that_is_not_the_gpus_is_told_and_does_not_refuse(tmp_path: Path, script: str, reason: "str | None") -> None:
    [(said, refuses)] = refusal(measured(tmp_path, OTHERS + script))
    assert not refuses and said.startswith("the GPUs were not measured: ")
    assert reason is None or said == "the GPUs were not measured: " + reason


def test_the_rank_that_broke_is_blamed_and_not_those_that_lost_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_measure, "SETTLE_SECONDS", 60.0)
    # Rank 2 ends after the end of rank 0 was seen: until then, `kill -0` finds the process.
    script = """
matmul; reduce
case $RANK in
2) while [ ! -s ended ] || kill -0 $(cat ended) 2>/dev/null; do :; done
   echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered' >&2; exit 1;;
0) echo 'DistBackendError: NCCL communicator was aborted' >&2; echo $$ > ended; exit 3;;
*) wait_for_end;;
esac"""
    [(said, refuses)] = refusal(measured(tmp_path, script))
    assert refuses and said.startswith("GPU 2 failed in all-reduce with exit code 1: RuntimeError: CUDA error: uncorrectable ECC")


@pytest.mark.parametrize(
    ("script", "environ", "found"),
    [
        ("matmul; wait_for_end", {}, ("GPU 2: no answer in 180 s in matrix multiplication", True)),
        ("matmul; reduce; wait_for_end", {}, ("GPU 0, 1, 2, 3: no answer in 180 s in all-reduce", True)),
        (
            "matmul; reduce; wait_for_end",
            {"NCCL_P2P_LEVEL": "NVL"},
            ("the GPUs were not measured: no answer of rank 0, 1, 2, 3 in 180 s in all-reduce", False),
        ),
        ("wait_for_end", {}, ("the GPUs were not measured: no answer of rank 2 in 300 s in the import of PyTorch", False)),
    ],
)
def test_a_rank_that_hangs_is_named_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, environ: "dict[str, str]", found: "tuple[str, bool]"
) -> None:
    now = [0.0]

    def clock() -> float:
        """Passes every limit once all ranks wait."""
        now[0] += 1000.0 if len(list(tmp_path.glob("waits-*"))) == 4 else 0.0
        return now[0]

    monkeypatch.setattr(health_measure, "time", SimpleNamespace(monotonic=clock))
    assert refusal(measured(tmp_path, OTHERS + script, **environ)) == [found]


def test_no_rank_is_left_and_secrets_are_masked_in_what_a_rank_says(tmp_path: Path) -> None:
    script = f'echo $$ > {tmp_path}/pid-$RANK; {OTHERS} matmul; echo "RuntimeError: CUDA error: $MY_TOKEN" >&2; exit 1'
    found = measured(tmp_path, script, MY_TOKEN="very-secret-value")
    assert "very-secret-value" not in repr(found) and "CUDA error" in found.lines[-1]
    # A rank may be killed before it has written its number.
    numbers = [path.read_text().strip() for path in tmp_path.glob("pid-*")]
    assert [number for number in numbers if number and Path("/proc", number).exists()] == []


def test_a_measurement_without_a_result_is_told(tmp_path: Path) -> None:
    found = measured(tmp_path, "matmul; echo nothing >&2; exit 0")
    assert refusal(found) == [("the GPUs were not measured: the measurement ended without a result", False)]
    assert found.lines == ["nothing"]
    assert refusal(measure(Setup("none", {}, tmp_path, 0), threading.Event())) == [
        ("the GPUs were not measured: nvidia-smi lists none", False)
    ]


def test_much_output_of_a_rank_does_not_block_it(tmp_path: Path) -> None:
    found = measured(tmp_path, """matmul; seq 100000; seq 100000 >&2; echo '{"tflops": [1.0]}'; exit 0""")
    assert found == Measured({"tflops": [1.0]}, [], [])


def test_all_gpus_are_measured_without_the_plugins_for_the_network(tmp_path: Path) -> None:
    script = """printf '{"is": "%s %s %s"}' "$CUDA_VISIBLE_DEVICES$NCCL_TUNER_PLUGIN" $NCCL_NET $NCCL_NET_PLUGIN"""
    found = measured(tmp_path, script, CUDA_VISIBLE_DEVICES="0", NCCL_TUNER_PLUGIN="x", NCCL_NET="OFI")
    assert found.facts == {"is": " Socket none"}


def test_a_stop_ends_the_measurements(tmp_path: Path) -> None:
    stopped = threading.Event()
    stopped.set()
    assert measure(Setup(sys.executable, dict(os.environ), tmp_path, 2), stopped) == Measured({}, [], [])


@pytest.mark.torch
def test_the_measurements_of_two_ranks_on_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    environ = dict(os.environ, PYTHONPATH=str(REPOSITORY / "containers/driver"), OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    facts = measure(Setup(sys.executable, environ, tmp_path, 2), threading.Event()).facts
    assert len(facts["tflops"]) == 2 and min(facts["tflops"]) > 0 and facts["busBandwidthGBps"] > 0
    if facts["device"] == "cpu":
        [finding] = measured_findings("ml.p5.48xlarge", facts, [])
        assert not finding.refuses and finding.reason.startswith("the GPUs were not measured: PyTorch cannot use them: ")


@pytest.mark.parametrize(
    ("text", "of_gpu"),
    [
        ("CUDA error: uncorrectable ECC error encountered", True),
        ("CUDA error: system not yet initialized", True),
        ("NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO)\nCuda failure 'uncorrectable NVLink error detected'", True),
        ("Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", True),
        ("CUDA error: no kernel image is available for execution on the device", False),
        ("CUDA error: invalid device ordinal", False),
        ("CUDA error: system has unsupported display driver / cuda driver combination", False),
        ("The NVIDIA driver on your system is too old (found version 11040)", False),
        ("CUDA error: device kernel image is invalid", False),
        ("CUDA error: named symbol not found", False),
        ("CUDA error: PTX JIT compiler library not found", False),
        ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", False),
        ("CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx`", False),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", True),
        ("NCCL error: unhandled cuda error\nCuda failure 'out of memory', Failed to CUDA malloc 4194304 bytes", False),
        ("CUDA out of memory. Tried to allocate 1.00 GiB", False),
        ("Torch not compiled with CUDA enabled", False),
        ("NCCL error: unhandled system error", False),
    ],
)
def test_errors_of_a_gpu_are_told_from_those_of_software(text: str, of_gpu: bool) -> None:
    assert is_gpu_error(text) == of_gpu


P5 = "ml.p5.48xlarge"


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"tflops": [700, 690, 500]}, [("GPU 2: 500 TFLOP/s in matrix multiplication, another GPU: 700", True)]),
        ({"tflops": [400, 400]}, [("the fastest GPU: 400 TFLOP/s in matrix multiplication; the peak of its type is 989", False)]),
        ({"tflops": [300, 300]}, [("the fastest GPU: 300 TFLOP/s in matrix multiplication; the peak of its type is 989", True)]),
        ({"tflops": [700, 680]}, []),
        ({}, []),
        # NCCL without NVLink SHARP, and with it (https://github.com/NVIDIA/nccl-tests/issues/212).
        ({"busBandwidthGBps": 370.0}, []),
        ({"busBandwidthGBps": 480.0}, []),
        ({"busBandwidthGBps": 91.0}, []),
        ({"busBandwidthGBps": 20.0}, [("all-reduce between the GPUs: 20.0 GB/s bus bandwidth; its type reaches 360 over NVLink", True)]),
    ],
)
def test_what_a_host_reaches_is_compared_with_its_type(facts: "dict[str, object]", found: "list[tuple[str, bool]]") -> None:
    assert [(finding.reason, finding.refuses) for finding in measured_findings(P5, facts, [])] == found
    assert [finding.refuses for finding in measured_findings("ml.unheard.of", {"busBandwidthGBps": 0.5, **facts}, [])] in ([], [True])


def test_types_without_nvlink_have_no_floor_and_tuned_variables_are_named() -> None:
    assert measured_findings("ml.g5.48xlarge", {"busBandwidthGBps": 0.5}, []) == []
    assert {name: row.ring_gbps for name, row in GPU_INSTANCES.items() if name in ("ml.p4d.24xlarge", "ml.p6-b200.48xlarge")} == {
        "ml.p4d.24xlarge": 240,
        "ml.p6-b200.48xlarge": 720,
    }
    assert tuning({"NCCL_PROTO": "Simple", "NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "FI_PROVIDER": "efa"}) == []
    assert tuning({"NCCL_PROTO": "LL", "NCCL_P2P_DISABLE": "1"}) == ["NCCL_P2P_DISABLE", "NCCL_PROTO"]
    [finding] = measured_findings(P5, {"busBandwidthGBps": 2.0}, ["NCCL_ALGO"])
    assert not finding.refuses and finding.reason.endswith("(the run sets NCCL_ALGO)")
