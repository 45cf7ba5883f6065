"""Which error the failure file shows: what ranks print on stderr when a job ends, as PyTorch, NCCL, Python and the kernel word it.

Texts follow what PyTorch 2.15 printed here under torchrun with two ranks (tracebacks, ChildFailedError), and for NCCL the format strings
of ProcessGroupNCCL.cpp and of NCCL's socket.cc. What two ranks on an H200 printed (PyTorch 2.11, NCCL 2.28.9) lies in fixtures.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from test_driver_verdicts import GLOO_LOST, TRACEBACK, record

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.errors import LIMIT, Failure, classify, failure_text, first_real
from slipway_driver.log import redacted, secrets_of


def labelled(rank: int, text: str) -> str:
    """As PyTorch's excepthook prints it once a process group exists."""
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


def cause(*records: dict[str, Any], out_of_memory: bool = False) -> tuple[int | None, int, str, str]:
    found = first_real(records)
    assert found is not None
    end = classify(found, out_of_memory)
    return end.rank, end.code, end.kind, end.reason


CUDA_OOM = """Traceback (most recent call last):
  File "/opt/ml/code/train.py", line 61, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.11 GiB
"""
NCCL_ABORT = """[rank0]:[E1121 10:10:00.000000000 ProcessGroupNCCL.cpp:683] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL
[rank0]:[E1121 10:10:00.100000000 ProcessGroupNCCL.cpp:744] [Rank 0] To avoid data inconsistency, we are taking the entire process down.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught
"""
NCCL_PEER = """Traceback (most recent call last):
  File "/opt/ml/code/train.py", line 61, in <module>
    dist.all_reduce(x)
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error, NCCL version 2.29.7
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
socketProgress: Connection closed by remote peer ip-10-0-1-7.ec2.internal<53412>
"""
CHILD_FAILED = """W1121 10:00:01.000000 40 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 41 closing signal SIGTERM
E1121 10:00:01.000000 40 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 42)
Traceback (most recent call last):
  File "torch/distributed/run.py", line 1142, in <module>
    main()
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\x20
============================================================
train.py FAILED
Root Cause (first observed failure):
  exitcode  : 1 (pid: 42)
"""


def test_a_traceback_with_pytorch_s_label_is_read_like_any_other() -> None:
    found = record(1, 1, labelled(1, TRACEBACK))
    assert (found["summary"], found["tail"][0]) == ("ValueError: the learning rate must be positive", TRACEBACK.splitlines()[0])
    assert cause(record(0, 1, labelled(0, GLOO_LOST), at=5), found) == (1, 1, "user-code", "ValueError: the learning rate must be positive")


def test_a_cuda_out_of_memory_wins_over_the_time_outs_of_the_ranks_that_waited_for_it() -> None:
    waiting = [record(rank, -6, NCCL_ABORT, at=600) for rank in (0, 1, 2)]
    lost = [record(rank, 1, labelled(rank, NCCL_PEER), at=2) for rank in (3, 4)]
    rank, code, kind, reason = cause(*waiting, *lost, record(5, 1, labelled(5, CUDA_OOM), at=3))
    assert (rank, code, kind) == (5, 1, "user-code")
    assert reason.startswith("torch.OutOfMemoryError: CUDA out of memory. Tried")


def test_without_a_cause_a_time_out_is_a_hang_and_a_lost_peer_is_a_lost_peer() -> None:
    assert cause(record(0, -6, NCCL_ABORT), record(1, 1, labelled(1, NCCL_PEER)))[:3] == (0, 70, "hang")
    assert cause(record(1, 1, labelled(1, NCCL_PEER)))[:3] == (1, 75, "peer-lost")


@pytest.mark.parametrize(("happened", "expected"), [("killed", (0, 75, "peer-lost")), ("stopped", (0, 70, "hang"))])
def test_what_a_rank_on_an_h200_printed_when_its_peer_was_killed_or_stopped(happened: str, expected: tuple[int, int, str]) -> None:
    text = (Path(__file__).parent / f"fixtures/nccl-peer-{happened}.log").read_text()
    assert cause(record(0, -6, text))[:3] == expected


def test_the_summary_of_a_torchrun_inside_the_script_does_not_hide_its_ranks_errors() -> None:
    stderr = labelled(1, TRACEBACK) + labelled(0, GLOO_LOST) + CHILD_FAILED
    assert cause(record(0, 1, stderr)) == (0, 1, "user-code", "ValueError: the learning rate must be positive")
    mixed = [line for pair in zip(labelled(1, TRACEBACK).splitlines(), labelled(0, GLOO_LOST).splitlines(), strict=True) for line in pair]
    assert cause(record(0, 1, "\n".join(mixed) + "\n" + CHILD_FAILED))[3] == "ValueError: the learning rate must be positive"


def test_a_rank_that_the_kernel_killed_for_memory_is_host_memory_however_it_shows() -> None:
    lost = record(0, 1, labelled(0, GLOO_LOST), at=11)
    killed = (2, 137, "host-memory", "the kernel killed a process of rank 2: out of host memory")
    assert cause(lost, record(2, -9), out_of_memory=True) == killed
    shell = "./run.sh: line 3:    42 Killed                  python train.py"
    assert cause(record(2, 137, shell), out_of_memory=True) == killed
    kernel = "[12345.678] Memory cgroup out of memory: Killed process 42 (python) total-vm:1kB"
    assert cause(record(2, -9, kernel)) == killed
    worker = TRACEBACK.replace("ValueError: the", "RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed. the")
    assert cause(record(2, 1, worker), out_of_memory=True) == killed


def test_sigkill_without_the_kernel_s_line_is_not_called_host_memory() -> None:
    assert cause(record(2, -9)) == (2, 137, "user-code", "killed by signal 9 (SIGKILL)")


def test_a_segmentation_fault_names_its_signal_or_what_faulthandler_said() -> None:
    assert cause(record(0, -11)) == (0, 139, "user-code", "killed by signal 11 (SIGSEGV)")
    said = 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n  File "train.py", line 4 in step\n'
    assert cause(record(0, -11, said))[3] == "Fatal Python error: Segmentation fault"
    assert '  File "train.py", line 4 in step' in record(0, -11, said)["tail"]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("Traceback (most recent call last):\n  File \"t.py\", line 1\nModuleNotFoundError: No module named 'flash_attn'\n",
         "ModuleNotFoundError: No module named 'flash_attn'"),
        ('Traceback (most recent call last):\n  File "t.py", line 1\nException: boom\n', "Exception: boom"),
        ('Traceback (most recent call last):\n  File "t.py", line 1\nStopIteration\n', "StopIteration"),
        ('Traceback (most recent call last):\n  File "t.py", line 1\n__main__.Odd: value\n', "__main__.Odd: value"),
        ('  File "train.py", line 3\n    def (\n        ^\nSyntaxError: invalid syntax\n', "SyntaxError: invalid syntax"),
        (TRACEBACK + 'Exception ignored in: <function f>\nTraceback (most recent call last):\n  File "t.py"\nOSError: closed\n',
         "ValueError: the learning rate must be positive"),
        ('ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File "d.py"\n'
         "ValueError: bad sample\n", "ValueError: bad sample"),
        (TRACEBACK.replace("ValueError: the", "[W1121 10:00:00 Module.cpp:1] a warning between\nValueError: the"),
         "ValueError: the learning rate must be positive"),
        ("  + Exception Group Traceback (most recent call last):\n  |   File \"t.py\", line 1\n  | ExceptionGroup: two (2 sub-exceptions)\n"
         "  +-+---------------- 1 ----------------\n    | ValueError: first\n", "ExceptionGroup: two (2 sub-exceptions)"),
        ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  CUDA error: an illegal memory access\n",
         "what():  CUDA error: an illegal memory access"),
        ("train.py: error: unrecognized arguments: --lr\n", "train.py: error: unrecognized arguments: --lr"),
        ("usage: nothing that explains it\n", "exit code 1"),
    ],
    ids=["import", "Exception", "no message", "own class", "syntax", "clean-up", "worker", "between", "group", "C++", "usage", "none"],
)  # fmt: skip
def test_the_line_that_names_the_error_is_the_reason(stderr: str, reason: str) -> None:
    assert cause(record(0, 1, stderr)) == (0, 1, "user-code", reason)


def test_an_error_that_the_rank_lived_through_is_not_what_ended_it() -> None:
    collector = ErrorCollector()
    collector.feed("error: could not reach the tracker, going on", 0.0)
    for line in CUDA_OOM.splitlines():
        collector.feed(line, 50.0)
    for line in TRACEBACK.splitlines():
        collector.feed(line, 5000.0)
    assert (collector.summary, collector.at) == ("ValueError: the learning rate must be positive", 5000.0)
    bare = ErrorCollector()
    bare.feed("error: could not reach the tracker, going on", 0.0)
    bare.feed("fatal: shard 3 is gone", 5000.0)
    bare.feed("error: aborting", 5001.0)
    assert (bare.summary, bare.at) == ("fatal: shard 3 is gone", 5000.0)


def test_of_chained_exceptions_the_one_that_only_lost_its_peers_never_hides_the_cause() -> None:
    during = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert cause(record(0, 1, TRACEBACK + during + GLOO_LOST))[1:] == (1, "user-code", "ValueError: the learning rate must be positive")
    assert cause(record(0, 1, GLOO_LOST + during + TRACEBACK))[1:3] == (75, "peer-lost")


def test_a_refused_connection_of_the_script_s_own_is_no_lost_peer() -> None:
    tracker = TRACEBACK.replace("ValueError: the learning rate must be positive", "ConnectionRefusedError: [Errno 111] Connection refused")
    assert cause(record(0, 1, tracker))[1:3] == (1, "user-code")
    store = tracker.replace("    main()", "    dist.init_process_group()")
    assert cause(record(0, 1, store))[1:3] == (75, "peer-lost")


def test_a_traceback_on_stdout_is_found_and_the_word_error_there_is_not() -> None:
    collector = ErrorCollector(bare=False)
    for line in ("eval error: 0.31", *TRACEBACK.splitlines()):
        collector.feed(line, 1.0)
    assert collector.summary == "ValueError: the learning rate must be positive"
    assert ErrorCollector(bare=False).summary == ""


def test_a_line_without_an_end_is_not_kept_whole() -> None:
    assert sum(map(len, record(0, 1, "error: " + "x" * 5_000_000)["tail"])) < 10_000


@pytest.mark.parametrize("reason", ["漢" * 400, "\x01" * 400, '"\\' * 400, "🙂" * 2000, "a\nb" * 300], ids=ascii)
def test_the_failure_file_is_one_whole_line_of_json_within_1024_characters(reason: str) -> None:
    text = failure_text(Failure(1, "user-code", 17, reason, ["漢" * 50] * 40, "algo-3"), 1200)
    assert len(text) <= LIMIT
    assert reason.startswith(json.loads(text.split("\n")[0])["reason"]) and json.loads(text.split("\n")[0])["reason"]


SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "HF_TOKEN": "hf_abcdefghijklmnopqrst",
    "DB_PASSWORD": "correct horse battery",
    "SM_HP_TOKENIZER": "meta-llama/Llama-2-7b",
    "MAX_TOKEN": "10737418240",
}  # fmt: skip


@pytest.mark.parametrize("text", [
    "403 for https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2026&X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027",
    "could not clone https://bot:gh0st-in-here@git.example.com/x.git",
    "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY was refused",
    "login as root with 'correct horse battery' failed",
    "OSError: token hf_abcdefghijklmnopqrst is not valid",
    "headers: {'Authorization': 'Bearer gh0st-in-here-1234'}",
    "KeyError: {'password': 'gh0st-in-here'}",
    "config api_key=gh0st-in-here-12345 rejected",
    "AKIAIOSFODNN7EXAMPLE is not authorised",
])  # fmt: skip
def test_no_secret_reaches_the_failure_file(text: str) -> None:
    shown = redacted(text, secrets_of(SECRETS, "restart-secret"))
    assert "***" in shown
    for part in ("gh0st-in-here", "fe5f80f7", "IOSFODNN7", "wJalrXUtn", "battery", "hf_abcdef"):
        assert part not in shown


@pytest.mark.parametrize("text", [
    "ValueError: tokens: must be at least 8, got 4",
    "OSError: meta-llama/Llama-2-7b is no folder; pad_token=0, max_tokens=10737418240",
    "KeyError: 'token_type_ids'",
    "https://b.s3.amazonaws.com/runs/step-12/COMMITTED.json: 404",
])  # fmt: skip
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert redacted(text, secrets_of(SECRETS)) == text
