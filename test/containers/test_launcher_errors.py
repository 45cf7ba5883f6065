"""Errors of programs behind a launcher within the script: their lines have labels, and the launcher has an exit code of its own
(test/public/driver.md)."""

import os
import random

import pytest
from test_driver_verdicts import GLOO_LOST, TRACEBACK, record
from test_first_real_error import CHILD_FAILED, CUDA_OOM, cause

SEED = int(os.environ.get("SLIPWAY_TEST_SEED", random.randrange(1 << 30)))


#: What launchers print about a program that SIGKILL ended. Each returns an exit code of its own.
KILLED_BEHIND = {
    "hpcaitech/ColossalAI#3172": CHILD_FAILED.replace("exitcode: 1", "exitcode: -9").replace("exitcode  : 1", "exitcode  : -9"),
    "ZhehengJiangLancaster/AMVUR#2": CHILD_FAILED.replace("exitcode  : 1", "traceback : Signal 9 (SIGKILL) received by PID 42 #"),
    "PixelgenTechnologies/pixelator#148": TRACEBACK.replace("ValueError: ", "concurrent.futures.process.BrokenProcessPool: "),
    "deepspeed": "[2026-11-21 10:00:01] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9\n",
    "subprocess": TRACEBACK.replace("ValueError: ", "subprocess.CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>. "),
    "mpirun": "mpirun noticed that process rank 3 with PID 42 on node algo-1 exited on signal 9 (Killed).\n",
    "spawn": TRACEBACK.replace(
        "ValueError: ", "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL "
    ),
    "a shell that goes on": "run.sh: line 3:    42 Killed                  python train.py\n",
}


@pytest.mark.parametrize("stderr", KILLED_BEHIND.values(), ids=KILLED_BEHIND)
def test_a_program_that_the_kernel_killed_behind_a_launcher_is_host_memory(stderr: str) -> None:
    assert cause(record(0, 1, stderr), out_of_memory=True)[1:3] == (137, "host-memory")
    assert cause(record(0, 1, stderr))[1:3] == (1, "user-code"), "another sender of SIGKILL"


def test_law_other_output_of_a_launcher_hides_no_kill_and_an_own_error_does() -> None:
    rng = random.Random(SEED)
    for _ in range(60):
        before = [
            rng.choice(["INFO: a", "step 3", "W1121 10:00:01.000000 40 torch/x.py:1028] Sending", ""]) for _ in range(rng.randint(0, 60))
        ]
        killed = rng.choice([*KILLED_BEHIND.values()])
        stderr = "\n".join(before) + "\n" + "".join(f"{label}{line}\n" for label in [rng.choice(LABELS)] for line in killed.splitlines())
        assert cause(record(0, 1, stderr), out_of_memory=True)[2] == "host-memory", (SEED, stderr)
        assert cause(record(0, 1, stderr + CUDA_OOM), out_of_memory=True)[2] == "user-code", (SEED, stderr)


@pytest.mark.parametrize(
    ("report", "stderr", "reason"),
    [
        ("OptimalScale/LMFlow#260", KILLED_BEHIND["deepspeed"].replace("-9", "-7"), "exits with return code = -7"),
        (
            "open-mpi/ompi#6618",
            "command terminated with exit code 137\nORTE has lost communication with a remote daemon.\n",
            "terminated with exit code 137",
        ),
    ],
)
def test_a_launcher_that_says_only_how_a_program_ended_is_in_the_failure(report: str, stderr: str, reason: str) -> None:
    found = record(0, 1, stderr)
    assert reason in "\n".join([cause(found)[3], *found["tail"]]), report


def test_a_c_exception_under_mpich_is_in_the_failure() -> None:
    # openai/train-procgen#4
    box = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: 134\n=   CLEANING UP REMAINING PROCESSES\n"
    found = record(0, 134, "terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at\n" + box)
    assert "std::out_of_range" in cause(found)[3] and "  what():  map::at" in found["tail"]


def test_a_task_that_ray_ended_for_memory_is_host_memory() -> None:
    task = TRACEBACK.replace("ValueError: ", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory. ")
    assert cause(record(0, 1, task))[1:3] == (137, "host-memory")


#: What launchers within a script put before each line.
LABELS = ["[default0]:", "[1,9]<stderr>:", "[1,mpirank:9,algo-2]<stderr>:", "[prterun-host-7@1,0]<stderr>: ", "(main pid=7) ",
          "(RayTrainWorker pid=7, ip=10.0.0.1) ", "[default0]:[rank0]: ", ""]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_an_error_behind_the_label_of_a_launcher_is_found(label: str) -> None:
    # aws/amazon-sagemaker-examples#2029
    found = record(0, 1, "".join(f"{label}{line}\n" for line in TRACEBACK.splitlines()) + CHILD_FAILED)
    assert cause(found)[3] == "ValueError: the learning rate must be positive"
    assert "main()" in " ".join(found["tail"])


def test_law_errors_of_labelled_ranks_are_found_however_their_lines_are_mixed() -> None:
    rng = random.Random(SEED)
    for _ in range(60):
        label, lost = rng.choice(LABELS[:4]), [CHILD_FAILED] * rng.randrange(2)
        ranks = [label.replace("9", str(rank)).replace("0]", f"{rank}]").replace(",0", f",{rank}") for rank in range(rng.randint(1, 4))]
        texts = [TRACEBACK if number == 0 else rng.choice([GLOO_LOST, "step 3\n"]) for number in range(len(ranks))]
        waiting = [[f"{rank}{line}" for line in text.splitlines()] for rank, text in zip(ranks, texts, strict=True)]
        lines = []
        while any(waiting):
            lines.append(rng.choice([each for each in waiting if each]).pop(0))
        found = cause(record(0, 1, "\n".join([*lines, *lost])))
        assert found[3] == "ValueError: the learning rate must be positive", (SEED, lines)
