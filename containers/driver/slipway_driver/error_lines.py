"""Patterns of the messages that Python, PyTorch, NCCL, gloo and the kernel print when a rank fails.

Sources: PyTorch 2.5 to 2.15 (ProcessGroupNCCL.cpp, the excepthook of torch/distributed, elastic/multiprocessing/errors), NCCL 2.18 to 2.30
(misc/socket.cc, enqueue.cc), gloo transport/tcp/pair.cc, Linux mm/oom_kill.c; retrieved 2026-11-20.
"""

from __future__ import annotations

import re

TRACEBACK = "Traceback (most recent call last):"
#: The margin in front of the lines of an ExceptionGroup.
GROUP_MARGIN = re.compile(r"^\s+[|+] ")
#: The last line of a traceback: a class and usually a message. Words in capitals are log levels.
EXCEPTION = re.compile(r"^(?![A-Z]+:)[A-Za-z_][\w.]*(?::|$)")
#: The same without a traceback: only names that are exceptions by convention (a SyntaxError in the entry point has no traceback).
BARE_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout)(?::|$)")
#: Lines that report an error without naming an exception: words, and what Python and shells print about a program that is not there.
BARE_ERROR = re.compile(
    r"\b(error|fatal|abort(?:ed)?|segmentation fault|terminate called)\b|: can't open file |: No module named |: (?:command )?not found$",
    re.IGNORECASE,
)
#: Lines that PyTorch and NCCL print around an error: the C++ stack below it, and a title. They would fill the stored tail of a rank's
#: output, and their words ("c10::Error") do not identify the error.
AROUND = re.compile(r"^frame #\d+: |^Last error:\s*$|^Exception raised from \w+ at ")
#: Lines between the tracebacks of chained exceptions.
CHAINED = re.compile(
    r"^(?:The above exception was the direct cause of|During handling of the above exception, another)|^Original Traceback"
)
#: A line of PyTorch's own log: level, month and day.
RANK_LOG = re.compile(r"^\[?[IWEF]\d{4} ")
#: Lines of a launcher about the failed process (torchrun, accelerate), and lines of Python during shutdown: never the cause.
AFTERMATH = re.compile(r"\bChildFailedError\b|^subprocess\.CalledProcessError: |^Exception ignored in|^terminate called")

#: Messages of a rank after another rank has exited: never the cause.
PEER_LOST = re.compile(
    r"Connection closed by remote peer|ncclRemoteError|remote process exited or there was a network error"
    r"|possibly due to a network error or a remote process exiting|NCCL communicator (was|is) aborted"
    r"|DistNetworkError|DistStoreError|failed to recv, got 0 bytes|recvValue failed|sendBytes failed"
    r"|ProcessGroup.* was destroyed|Failed to send to peer|\bgloo\b.*Connect timeout|\bRendezvousClosedError\b"
    r"|client socket has timed out"
)
#: NCCL's message for a failed call of its network plugin, and the message of libfabric's EFA provider if the other host does not answer
#: (fi_efa error "Unresponsive remote", https://github.com/ofiwg/libfabric, prov/efa/src/efa_errno.h, 2026-11-22). The first message alone
#: may also mean a full /dev/shm. Any other completion error of the plugin is one of the network too, except a message of another size,
#: which is an error of the code.
SYSTEM_ERROR = re.compile(r"unhandled system error|ncclSystemError")
REMOTE_SILENT = re.compile(
    r"Unresponsive remote|No route to host|Unreachable remote"
    r"|Remote (?:host|peer) (?:is )?unreachable|NET/OFI .{0,60}\bcompleted? with error(?!.*truncat)",
    re.IGNORECASE,
)
#: The same for sockets. Any other connection of the script can cause these messages, so they count only together with TALKS_TO_RANKS.
CONNECTION_LOST = re.compile(r"Connection (?:closed|reset) by peer|Broken pipe|Socket closed|Connection refused")
TALKS_TO_RANKS = re.compile(
    r"torch[./]distributed|\bdist\.|nccl|\bNET/(?:IB|OFI|Socket)\b|gloo|c10d|TCPStore|ProcessGroup|monitoredBarrier|mpi4py|MPI_",
    re.IGNORECASE,
)
#: torchrun ends its start because the other hosts have not come, or cannot be reached.
NOT_JOINED = re.compile(r"\b(?:DistStoreError|DistNetworkError|Rendezvous\w*Error)\b")
#: An exception that names the failed call of NCCL and not its cause, which another rank may have printed.
CAUSELESS = re.compile(r"unhandled (?:cuda|system) error|internal error - please report")
#: A collective that did not complete, and ranks that waited for another one before the first.
COLLECTIVE_TIMEOUT = re.compile(
    r"caught collective operation timeout|Timed out waiting \d+ms|watchdog got stuck|Watchdog caught .*timeout"
    r"|Timed out initializing process group|ncclUniqueId from .*(?:Socket Timeout|wait timeout|Timeout waiting)"
)
#: Messages of CUDA and of NVIDIA's kernel driver for broken hardware (https://docs.nvidia.com/cuda/cuda-runtime-api/ and
#: https://docs.nvidia.com/deploy/xid-errors/, 2026-11-22). Illegal addresses, launch failures and "hardware stack error" (the call stack
#: on the device) are excluded, because the script may cause them.
HARDWARE = re.compile(
    r"uncorrectable (?:ECC|NVLink) error|GPU has fallen off the bus|GPU is lost|double bit ECC|over nvlink or a hardware error"
    # Error 802: the fabric manager of the host has not configured NVSwitch.
    r"|system not yet initialized"
    # NVLink SHARP needs NVSwitch and its fabric manager; without memory, it is the code that left none (NCCL src/transport/nvls.cc).
    r"|Failed to bind NVLink SHARP(?!.*out of memory)|\bnvls\.cc:\d+ NCCL WARN Cuda failure(?!.*out of memory)"
    # Nothing else uses the GPUs of a job: what holds them outlived its process.
    r"|CUDA-capable device(?:\(?s\)?)? (?:is/)?(?:are|is) busy or unavailable",
    re.IGNORECASE,
)
#: What NCCL warns of before an exception that does not name it.
NCCL_CAUSE = re.compile("%s|%s|NCCL WARN Cuda failure .*out of memory" % (HARDWARE.pattern, REMOTE_SILENT.pattern), re.IGNORECASE)
#: Messages of the kernel, and of Ray, which ends tasks before the kernel does.
KERNEL_OUT_OF_MEMORY = re.compile(r"Out of memory: Kill|Memory cgroup out of memory|invoked oom-killer|\boom-kill:", re.IGNORECASE)
RAY_OUT_OF_MEMORY = re.compile(r"killed due to the node running low on memory")
#: Messages about a program that SIGKILL ended, of what had started it: a DataLoader, torchrun, DeepSpeed, subprocess, mpirun (Open MPI and
#: MPICH), torch.multiprocessing, concurrent.futures and a shell.
KILLED_PROGRAM = re.compile(
    r"killed by signal: Killed|\(exitcode: -9\)|\bexitcode *: -9\b|Signal 9 \(SIGKILL\) received|return code = -9\b"
    r"|died with <Signals\.SIGKILL: 9>|exited on signal 9\b|\bEXIT CODE: 9\b|terminated with signal SIGKILL|\bBrokenProcessPool\b"
    r"|: line \d+: +\d+ Killed\b"
)
#: Each of them has one of these texts, which are found ten times as fast.
KILLED_TEXTS = ("Killed", "-9", "SIGKILL", "signal 9", "CODE: 9", "BrokenProcess")
