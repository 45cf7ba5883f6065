"""Public reports of broken GPUs, fabrics and networks (test/public/driver.md): what their ranks print, from the output to the verdict."""

from __future__ import annotations

import random

import pytest
from test_driver_verdicts import record

from slipway_driver.errors import Failure, classify, first_real
from slipway_driver.health import Gpus, Health, parse_gpus

PLACE = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    dist.all_reduce(x)\n'


def nccl(kind: str, *last: str, version: str = "2.29.3") -> str:
    """The exception of PyTorch for a failed call of NCCL."""
    words = {
        "cuda": "unhandled cuda error|ncclUnhandledCudaError: Call to CUDA function failed.",
        "system": "unhandled system error|ncclSystemError: System call (e.g. socket, malloc) or external library call failed.",
        "internal": "internal error - please report this issue to the NCCL developers|ncclInternalError: Internal check failed.",
    }[kind].split("|")
    head = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, %s, NCCL version %s" % (words[0], version)
    return PLACE + "\n".join([head, words[1], *(["Last error:", *last] if last else [])]) + "\n"


def cuda(message: str) -> str:
    return PLACE + "RuntimeError: CUDA error: %s\nCUDA kernel errors might be asynchronously reported at some other API call.\n" % message


def judged(text: str, code: int = 1, gpus: "list[Gpus] | None" = None) -> Failure:
    found = first_real([record(0, code, text)])
    assert found is not None
    reads = iter(gpus or [])
    return Health(lambda: next(reads, None)).judged(classify(found, False))


NVLS = "algo-1:70:99 [2] transport/nvls.cc:165 NCCL WARN Cuda failure 'invalid argument'\n"
MULTICAST = (
    "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error %s.",
    "This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.",
)
COMPLETION = "algo-1:45:47 [4] NCCL WARN NET/OFI Request 0x7f completed with error. RC: %s. Completed length: 0\n"
BUSY = "CUDA-capable device(s) is/are busy or unavailable"


@pytest.mark.parametrize(
    ("source", "text", "code", "kind"),
    [
        ("pytorch/pytorch#177472", nccl("cuda", MULTICAST[0] % "401 'not permitted in this state'", MULTICAST[1]), 1, "hardware"),
        (
            "pytorch/pytorch#177472: the program left no memory",
            nccl("cuda", MULTICAST[0] % "2 'out of memory'", MULTICAST[1]),
            1,
            "user-code",
        ),
        ("NVIDIA/nccl#976", NVLS + nccl("cuda", "Cuda failure 1 'invalid argument'"), 1, "hardware"),
        ("NVIDIA/nccl#976: the program left no memory", NVLS.replace("invalid argument", "out of memory") + nccl("cuda"), 1, "user-code"),
        ("hiyouga/LlamaFactory#8968", nccl("cuda", "Cuda failure 802 'system not yet initialized'"), 1, "hardware"),
        (
            "huggingface/accelerate#1192",
            "╭─── Traceback (most recent call last) ───╮\n│ /opt/train.py:12 in <module>  │\n╰───╯\n"
            "RuntimeError: CUDA error: uncorrectable ECC error encountered\n",
            1,
            "hardware",
        ),
        (
            "nagadit/DeepFaceLab_Linux#89",
            "F tensorflow/statusor.cc:34] failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error\n",
            -6,
            "hardware",
        ),
        ("aws/aws-ofi-nccl#161", COMPLETION % "21. Error: unknown error" + nccl("system", version="2.10.3"), 1, "peer-lost"),
        ("aws/aws-ofi-nccl#346", nccl("system", (COMPLETION % "5. Error: 4103 (Invalid address)").strip()), 1, "peer-lost"),
        ("aws/aws-ofi-nccl#346: sizes differ", nccl("system", (COMPLETION % "265. Error: 265 (Truncation error)").strip()), 1, "user-code"),
        (
            "aws/aws-ofi-nccl#663",
            nccl("internal", "NET/OFI Unable to insert remote address into address vector for device 1."),
            1,
            "user-code",
        ),
        ("scitix/sichek#51", cuda(BUSY), 1, "hardware"),
        ("pytorch/pytorch#74235", cuda("unspecified launch failure"), 1, "user-code"),
        ("deepspeedai/DeepSpeed#2638", "Caught signal 7 (Bus error: nonexistent physical address)\n", -7, "user-code"),
    ],
)
def test_a_report_has_its_verdict(source: str, text: str, code: int, kind: str) -> None:
    assert judged(text, code).kind == kind


def test_an_unknown_error_of_cuda_is_one_of_a_gpu_that_is_no_longer_there() -> None:
    """deepspeedai/DeepSpeed#5482"""
    before, now = parse_gpus("0, 0\n1, 0\n"), parse_gpus("Unable to determine the device handle for GPU0000:4F:00.0: Unknown Error\n1, 0\n")
    end = judged(cuda("unknown error"), gpus=[before, now])
    assert (end.kind, end.reason) == ("hardware", "GPU 0 is lost (RuntimeError: CUDA error: unknown error)")
    assert judged(cuda("unknown error"), gpus=[before, before]).kind == "user-code"


def test_a_hang_with_a_gpu_that_has_no_handle_is_one_of_a_broken_host() -> None:
    """rwth-i6/returnn#1486"""
    reads = iter([parse_gpus("0, 0\n"), parse_gpus("Unable to determine the device handle for GPU0000:03:00.0: Unknown Error\n")])
    end = Health(lambda: next(reads)).judged(Failure(70, "hang", None, "no step for 600 s", []))
    assert (end.kind, end.reason) == ("hardware", "GPU 0 is lost (no step for 600 s)")


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", range(100))
def test_what_nccl_warns_of_before_its_exception_counts_wherever_it_stands(seed: int) -> None:
    """The law beside NVIDIA/nccl#976 and aws/aws-ofi-nccl#161: lines of other parts of NCCL before and after the warning change nothing."""
    draw = random.Random(seed)
    warning, kind, error = draw.choice(
        [(NVLS, "hardware", "cuda"), (COMPLETION % "5. Error: 4103 (Invalid address)", "peer-lost", "system")]
    )
    info = ["algo-1:70:99 [%d] NCCL INFO transport/net.cc:%d -> 1\n" % (draw.randrange(8), draw.randrange(999)) for _ in range(10)]
    before, between = info[: draw.randrange(6)], info[: draw.randrange(10)]
    text = "".join([*before, warning, *between]) + nccl(error, *draw.choice([(), ("Cuda failure 1 'invalid argument'",)]))
    label = draw.choice(["", "[rank%d]: " % draw.randrange(8)])
    end = judged("".join(label + line for line in text.splitlines(keepends=True)))
    assert end.kind == kind
    assert judged("".join(before + between) + nccl(error)).kind == "user-code"
    assert judged("".join([*before, warning, *between]) + PLACE + "ValueError: a bad line in the data\n").kind == "user-code"
