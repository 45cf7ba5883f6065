"""Public reports of broken GPUs, fabrics and networks (test/public/driver.md): what their ranks print, from the output to the verdict."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest import mock

import pytest
from test_driver_verdicts import record

from slipway_driver.errors import Failure, classify, first_real
from slipway_driver.health import Gpus, Health, parse_gpus
from slipway_driver.health_findings import FATAL_XIDS, answer_findings

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


def judged_by(read: "Callable[[], Gpus | None]", end: Failure) -> Failure:
    with mock.patch("slipway_driver.health.read_gpus", read):
        return Health().judged(end)


def judged(text: str, code: int = 1, gpus: "list[Gpus] | None" = None) -> Failure:
    found = first_real([record(0, code, text)])
    assert found is not None
    reads = iter(gpus or [])
    return judged_by(lambda: next(reads, None), classify(found, False))


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
        (
            "NVIDIA/nccl#1562",
            NVLS + "==== backtrace (tid:  57) ====\n 1 0x7e6d1 ncclGroupEnd()\nFatal Python error: Segmentation fault\n",
            -11,
            "hardware",
        ),
        (
            "NVIDIA/nccl-tests#276",
            NVLS.replace("'invalid argument'", "999 'unknown error'") + nccl("cuda", "Cuda failure 999 'unknown error'"),
            1,
            "hardware",
        ),
        (
            "aws/aws-ofi-nccl#889: a warning that the program survives",
            "algo-1:79:79 [0] NCCL WARN NET/OFI Creating new endpoint for domain 0x7f failed: Invalid argument\n"
            + PLACE
            + "ValueError: a bad line in the data\n",
            1,
            "user-code",
        ),
        (
            "NVIDIA/nccl#1597",
            "algo-1:9:9 [0] NCCL WARN NET/OFI Operation with NULL context completed with error\n" + nccl("system"),
            1,
            "peer-lost",
        ),
        ("aws/aws-ofi-nccl#156", "[1,13]<stdout>:" + COMPLETION % "20. Error: unknown error" + nccl("system"), 1, "peer-lost"),
        (
            "aws/aws-ofi-nccl#476",
            "algo-1:75:95 [2] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found\n" + nccl("internal"),
            1,
            "user-code",
        ),
        (
            "NVIDIA/semantic-segmentation#33",
            PLACE + "RuntimeError: cuda runtime error (39) : uncorrectable ECC error encountered at allocator.cpp:265\n"
            "terminate called without an active exception\n",
            -6,
            "hardware",
        ),
        (
            "deepspeedai/DeepSpeed#4648",
            "[E ProcessGroupNCCL.cpp:915] [Rank 0] NCCL watchdog thread terminated with exception: CUDA error: unknown error\n"
            "CUDA kernel errors might be asynchronously reported at some other API call.\n",
            -6,
            "user-code",
        ),
        (
            "diux-dev/cluster#17: an image with driver libraries of its own has the same error",
            PLACE + "RuntimeError: cuda runtime error (38) : no CUDA-capable device is detected at Module.cpp:32\n",
            1,
            "user-code",
        ),
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
    end = judged_by(lambda: next(reads), Failure(70, "hang", None, "no step for 600 s", []))
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


def judged_together(*records: "dict[str, object]") -> Failure:
    found = first_real(list(records))
    assert found is not None
    return judged_by(lambda: None, classify(found, False))


def test_the_rank_that_names_the_cause_counts_before_one_that_names_none() -> None:
    """vllm-project/vllm#6732: one rank of a host prints NCCL's warning, and another one fails first."""
    vague = record(0, 1, nccl("cuda", "Cuda failure 1 'invalid argument'"), at=5)
    end = judged_together(vague, record(7, 1, NVLS + nccl("cuda", "Cuda failure 1 'invalid argument'"), at=6))
    assert (end.kind, end.rank) == ("hardware", 7)
    assert judged_together(vague).kind == "user-code"


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", range(100))
def test_an_error_without_a_cause_is_reported_only_when_no_rank_names_one(seed: int) -> None:
    """The law beside vllm-project/vllm#6732: order and number of the ranks change nothing."""
    draw = random.Random(seed)
    causes = {
        "hardware": NVLS + nccl("cuda"),
        "user-code": PLACE + "ValueError: a bad line in the data\n",
        "nothing": "",
    }
    kind = draw.choice(list(causes))
    vague = [nccl(draw.choice(["cuda", "system", "internal"])) for _ in range(draw.randrange(1, 6))]
    texts = [*vague, *([causes[kind]] if causes[kind] else [])]
    draw.shuffle(texts)
    end = judged_together(*(record(rank, 1, text, at=draw.uniform(1, 9)) for rank, text in enumerate(texts)))
    assert end.kind == ("hardware" if kind == "hardware" else "user-code")
    assert ("ValueError" in end.reason) == (kind == "user-code")


def test_a_gpu_whose_state_cannot_be_read_any_more_is_lost() -> None:
    """vllm-project/vllm#27430"""
    end = judged(cuda("unspecified launch failure"), gpus=[parse_gpus("0, 0\n1, 0\n"), parse_gpus("0, 0\n1, ERR!\n")])
    assert (end.kind, end.reason) == ("hardware", "GPU 1 is lost (RuntimeError: CUDA error: unspecified launch failure)")


#: How the plugin has reported a failed request over the network: aws-ofi-nccl v1.4.0 to v1.21.1, src/*.c and src/*.cpp, 2026-11-30.
FAILED_REQUESTS = (
    "Request 0x7f completed with error. RC: 20. Error: unknown error. Completed length: 0, Request: { dev: 1 }",
    "Request 0x7f completed with error. RC: 5. Flags: 0. Error: 4103 (Invalid address). Completed length: 0",
    "Request 0x7f (SEND) completed with error: err: 113, flags: 0, prov_errno: 4116, strerror: Unresponsive remote, len: 0",
    "Request completed with error",
    "Operation with NULL context completed with error",
    "Remote write completed with error. RC: 5. Flags: 0. Error: 5 (Input/output error). Completed length: 0",
    "Fatal: Bounce buffer recv completed with error",
    "Fatal: rx buffer recv completed with error",
    "Send close message complete with error",
)


@pytest.mark.parametrize("message", FAILED_REQUESTS)
def test_each_message_of_the_plugin_about_a_failed_request_blames_the_network(message: str) -> None:
    """The kind of NVIDIA/nccl#1597."""
    assert judged("algo-1:9:9 [0] process_completions:1723 NCCL WARN NET/OFI %s\n" % message + nccl("system")).kind == "peer-lost"


@pytest.mark.parametrize(
    ("source", "kernel", "found"),
    [
        (
            "NVIDIA/open-gpu-kernel-modules#1150",
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149\n"
            "NVRM: Xid (PCI:0000:ed:00): 45, pid=19, name=python3, Ch 0000000c caused by previous Xid 145\n",
            ["Xid 149 of PCI:0000:dc:00", "Xid 145 of PCI:0000:ed:00"],
        ),
        (
            "NVIDIA/nccl#2241",
            "NVRM: Xid (PCI:0000:97:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x1)\n"
            "NVRM: Xid (PCI:0000:97:00): 137, RLW_RXPIPE interrupt hit on link 11 on GPU0: PRIV Error\n",
            [],
        ),
        (
            "leptonai/gpud#46",
            "NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal\n"
            "NVRM: Xid (PCI:0000:cb:00): 109, pid=17, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005\n",
            [],
        ),
        (
            "NVIDIA/open-gpu-kernel-modules#1134",
            "NVRM: Xid (PCI:0000:0b:00): 31, pid=17, name=python3, Ch 00000023, intr 00000000. MMU Fault: ENGINE CE0\n"
            "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n",
            ["Xid 154 of PCI:0000:0b:00"],
        ),
        (
            "a sibling of NVIDIA/open-gpu-kernel-modules#1134",
            "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)\n"
            "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x3 (Drain P2P) to 0x0 (None)\n",
            [],
        ),
        (
            "NVIDIA/nvidia-docker#1648",
            "NVRM: Xid (PCI:0000:61:00): 119, pid=977, name=nvidia-smi, Timeout waiting for RPC from GSP!\n" * 3,
            ["Xid 119 of PCI:0000:61:00"],
        ),
    ],
)
def test_the_log_of_the_kernel_refuses_a_host(source: str, kernel: str, found: "list[str]") -> None:
    assert [finding.reason for finding in answer_findings({"kernel": kernel})] == ["the kernel has logged " + one for one in found]


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", range(100))
def test_a_channel_that_an_xid_has_ended_tells_that_xid(seed: int) -> None:
    """The law beside NVIDIA/open-gpu-kernel-modules#1150: the first lines of a full log of the kernel are lost."""
    draw = random.Random(seed)
    xid = draw.choice([13, 31, 43, 45, 94, *sorted(FATAL_XIDS)])
    lines = [
        "NVRM: Xid (PCI:0000:%02x:00): 45, pid=%d, name=python3, Ch %08x caused by previous Xid %d" % (draw.randrange(4), n, n, xid)
        for n in range(draw.randrange(1, 20))
    ]
    found = list(answer_findings({"kernel": "\n".join(lines)}))
    assert len(found) == (len({line.split(")")[0] for line in lines}) if xid in FATAL_XIDS else 0)
    assert all("Xid %d of " % xid in finding.reason and finding.refuses for finding in found)


RENDEZVOUS = (
    "torch.distributed.DistNetworkError: failed to recv, got 0 bytes\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    + "".join('  File "torchrun.py", line %d, in run\n    call()\n' % line for line in range(6))
    + "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner "
    "exception for details.\n"
)
NO_ROUTE = "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(Operation now in progress)"


@pytest.mark.parametrize(
    ("source", "text", "kind"),
    [
        (
            "NVIDIA/nccl#795",
            "algo-1:6:7 [1] misc/socket.cc:518 NCCL WARN Net : Call to recv from 10.0.0.4<58355> failed : Broken pipe\n"
            + "algo-1:6:7 [1] NCCL INFO misc/socket.cc:535 -> 6\n"
            + nccl("internal", "Net : Call to recv from 10.0.0.4<58355> failed : Broken pipe", version="2.14.3"),
            "peer-lost",
        ),
        ("meta-pytorch/torchtune#2676", PLACE + RENDEZVOUS, "peer-lost"),
        ("sgl-project/sglang#3820", "algo-1:2:4 [6] misc/socket.cc:533 NCCL WARN %s\n" % NO_ROUTE + nccl("system", NO_ROUTE), "peer-lost"),
    ],
)
def test_a_report_that_was_tried_after_the_third_search_has_its_verdict(source: str, text: str, kind: str) -> None:
    assert judged(text).kind == kind


def test_the_rank_that_ran_out_of_memory_within_nccl_is_reported_before_those_that_lost_it() -> None:
    """NVIDIA/nccl#1235"""
    closed = "algo-1:9:9 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer algo-2<51159>\n"
    memory = "algo-1:9:9 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
    lost = record(0, 1, closed + nccl("internal", "Socket recv failed while polling for opId=0x55a5"), at=5)
    end = judged_together(lost, record(3, 1, memory + nccl("cuda", "Failed to CUDA calloc 6291456 bytes"), at=6))
    assert (end.kind, end.rank) == ("user-code", 3)


def test_a_rank_that_was_killed_is_reported_before_one_that_waited_for_it_at_a_barrier() -> None:
    """InternLM/xtuner#719"""
    waited = (
        PLACE + "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.\n"
        " Original exception:\n[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:35230\n"
    )
    end = judged_together(record(1, 1, waited, at=5), record(0, -9, "", at=6))
    assert (end.code, end.rank) == (137, 0)


def torchrun(kind: str) -> str:
    return PLACE.replace("dist.all_reduce(x)", "sys.exit(main())") + "torch.distributed.elastic." + kind + "\n"


ABORT = (
    "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out.\n"
    "terminate called after throwing an instance of 'std::runtime_error'\n"
    "  what():  NCCL error: remote process exited or there was a network error, NCCL version 2.14.3\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    "Last error:\n"
)
DUPLICATE = "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000"
LIBFABRIC = "Libfabric EFA provider has encountered an internal error:"


@pytest.mark.parametrize(
    ("source", "text", "code", "kind", "reason"),
    [
        ("NVIDIA/Megatron-LM#661", nccl("internal", DUPLICATE), 1, "user-code", DUPLICATE + " (torch.distributed.DistBackendError: "),
        (
            "ultralytics/ultralytics#7038",
            "algo-1:9:9 [0] bootstrap.cc:48 NCCL WARN Bootstrap : no socket interface found\n"
            + nccl("internal", "Bootstrap : no socket interface found"),
            1,
            "user-code",
            "Bootstrap : no socket interface found (",
        ),
        (
            "awslabs/awsome-distributed-ai#647",
            LIBFABRIC + "\n\nLibfabric error: (-12) Cannot allocate memory\nEFA internal error: (4112) Failure to post buffers\n",
            -6,
            "user-code",
            LIBFABRIC + " Libfabric error: (-12) Cannot allocate memory",
        ),
        ("pytorch/pytorch#150916", torchrun("rendezvous.api.RendezvousClosedError"), 1, "peer-lost", "torch.distributed.elastic."),
        (
            "tatsu-lab/stanford_alpaca#207",
            ABORT + "NET/IB : Got completion from peer 10.0.0.4<39138> with error 12, opcode 0, len 0, vendor err 129\n",
            -6,
            "peer-lost",
            "NET/IB : Got completion",
        ),
        (
            "a sibling of tatsu-lab/stanford_alpaca#207 with EFA",
            ABORT + "NET/OFI Request 0x7f completed with error. RC: 12. Error: 4117 (Unresponsive receiver)\n",
            -6,
            "peer-lost",
            "NET/OFI Request",
        ),
        (
            "hiyouga/LlamaFactory#6953",
            "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated.\n"
            "[rank1]:[F ProcessGroupNCCL.cpp:1169] [PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 600 seconds\n",
            -6,
            "hang",
            "[rank1]:[F ProcessGroupNCCL.cpp:1169]",
        ),
        (
            "a sibling of awslabs/awsome-distributed-ai#647: an exception whose words begin on the next line",
            PLACE + "RuntimeError: \n        An attempt has been made to start a new process before\n        it was bootstrapped\n",
            1,
            "user-code",
            "RuntimeError: An attempt has been made to start a new process before",
        ),
    ],
)
def test_a_report_of_the_fourth_search_has_its_verdict(source: str, text: str, code: int, kind: str, reason: str) -> None:
    end = judged(text, code)
    assert end.kind == kind and end.reason.startswith(reason)


def test_an_out_of_memory_error_of_a_gpu_with_memory_errors_is_one_of_a_broken_host() -> None:
    """NVIDIA/k8s-device-plugin#267"""
    end = judged(cuda("out of memory"), gpus=[parse_gpus("0, 0\n1, 0\n"), parse_gpus("0, 0\n1, 1\n")])
    assert end.kind == "hardware"


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", range(100))
def test_the_last_error_of_nccl_is_the_reason_wherever_it_stands(seed: int) -> None:
    """The law beside NVIDIA/Megatron-LM#661: labels, an empty line, a C++ stack and lines before and after it change nothing."""
    draw = random.Random(seed)
    cause = draw.choice([DUPLICATE, "Bootstrap : no socket interface found", "Attribute arch of node cpu not found"])
    stack = [
        "Exception raised from create at NCCLUtils.cpp:93 (most recent call first):",
        "frame #0: c10::Error::Error(c10::SourceLocation)",
    ]
    below = draw.choice([[], stack, ["step 3"], ["algo-1:70:99 [0] NCCL INFO comm 0x5649149de2c0 - Abort COMPLETE"]])
    empty = draw.choice([[], [""]])
    label = draw.choice(["", "[rank%d]: " % draw.randrange(8)])
    lines = nccl(draw.choice(["cuda", "system", "internal"]), *empty, cause, *below).splitlines()
    assert judged("".join("%s%s\n" % (label, line) for line in lines)).reason.startswith(cause + " (torch.")
    without = nccl("internal", *empty, *(below if below in ([], stack) else [])).replace("Last error:\n", "Last error:\n" + stack[0] + "\n")
    assert judged(without).reason.startswith("torch.distributed.DistBackendError: ")


UNIQUE_ID = "[4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
#: What ranks print that have waited for another one, by the report.
WAITED = {
    "hiyouga/LlamaFactory#3698": "torch.distributed.DistBackendError: " + UNIQUE_ID + "store->get('0') got error: Socket Timeout",
    "pytorch/pytorch#82091": "RuntimeError: "
    + UNIQUE_ID
    + "store->get('0') got error: Timeout waiting for key: default_pg/0/0 after 60000 ms",
    "a sibling of pytorch/pytorch#82091": "torch.distributed.DistBackendError: "
    + UNIQUE_ID
    + "store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
    "NVIDIA/Megatron-LM#782": "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: "
    "store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:10:00)",
    "mk-minchul/AdaFace#87": "TimeoutError: The client socket has timed out after 1800s while trying to connect to (algo-1, 57388).",
}


@pytest.mark.parametrize("source", WAITED)
def test_a_rank_that_waited_for_another_one_blames_no_code(source: str) -> None:
    end = judged(PLACE + WAITED[source] + "\n")
    assert end.kind == ("peer-lost" if source == "mk-minchul/AdaFace#87" else "hang")
    assert end.reason == WAITED[source]


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", range(100))
def test_a_rank_that_waited_is_reported_only_when_no_rank_has_an_error_of_its_own(seed: int) -> None:
    """The law beside hiyouga/LlamaFactory#3698: order and number of the ranks change nothing."""
    draw = random.Random(seed)
    own = draw.choice(["", PLACE + "ValueError: a bad line in the data\n", PLACE + "torch.OutOfMemoryError: CUDA out of memory.\n"])
    texts = [PLACE + draw.choice(list(WAITED.values())) + "\n" for _ in range(draw.randrange(1, 6))] + ([own] if own else [])
    draw.shuffle(texts)
    end = judged_together(*(record(rank, 1, text, at=draw.uniform(1, 9)) for rank, text in enumerate(texts)))
    assert (end.kind == "user-code") == bool(own) and end.lines[-1] in (own or "\n".join(texts))
