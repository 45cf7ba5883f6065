"""Starts processes that need PyTorch quickly: imports it once and forks. Reads one JSON order per line, answers with their exit codes.

The `paths` of an order are the PYTHONPATH of its ranks. An order with a `script` runs it as `python script argv...` would, once for
each rank. One without trains as ranks of the trainer, which have run the file `patch` first if the order names one: those of one world
size, patch and paths stay and train up to RUNS_OF_A_WORLD orders in one process group, from the trainer's arguments on; only the seconds
of importing and connecting are saved. An order that ends in anything but 0 ends its ranks; the next gets new ones. Ranks are stopped
while they wait. An empty order ends them.

The `preload` of an order are modules that its ranks find imported, beside PyTorch and the trainer: a fork of this process imports them and
forks those ranks.
"""

import faulthandler
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from slipway_driver.rank import die_with_parent

#: Each run makes groups that its processes keep, and each group keeps three threads of gloo that wake up a hundred times a second.
RUNS_OF_A_WORLD = 3
#: How long the other ranks may take to notice that one has failed: longer than any time limit in a test.
ALONE_SECONDS = 120.0


class Rank:
    """One forked process and the pipe to it. Orders come through the pipe; an order answered with 0 may be followed by another."""

    def __init__(self, number: int) -> None:
        self.runs = 0
        self.pipe, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.pipe.close()
            die_with_parent()  # Nobody else would end a stopped process.
            serve(theirs, number)
        theirs.close()

    def send(self, order: dict | None) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.pipe.send(order)

    def rest(self) -> None:
        """Stops the process until its next order: the threads of gloo wake up a hundred times a second."""
        os.kill(self.pid, signal.SIGSTOP)

    def answer(self) -> int:
        """The exit code of the order; a rank that ends has one of its own."""
        self.runs += 1
        with suppress(EOFError):
            return self.pipe.recv()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self) -> None:
        with suppress(OSError):
            self.send(None)
        self.pipe.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def serve(pipe: Connection, rank: int) -> None:
    """Carries out order after order as one rank; never returns."""
    # A rank that crashes in native code says where: its standard error is that of the order.
    faulthandler.enable()
    # PyTorch makes another pool of threads after a fork; threads that request it at once may find none (caffe2::pthreadpool).
    torch.set_num_threads(1)
    environ = dict(os.environ)
    while True:
        order = pipe.recv()
        if order is None:
            os._exit(0)
        for descriptor, name in ((1, "out"), (2, "err")):
            opened = os.open(f"{order['root']}/{rank}.{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(opened, descriptor)
            os.close(opened)
        os.environ.clear()
        paths = tuple(order["paths"])
        ranked = {"PYTHONPATH": ":".join(paths), "RANK": str(rank), "LOCAL_RANK": str(rank)}
        os.environ.update(environ | order["environ"] | ranked)
        search_first(paths)
        code = exit_code(run_script if "script" in order else train, order)
        sys.stdout.flush()
        sys.stderr.flush()
        if code != 0:
            os._exit(code)
        pipe.send(0)


@cache
def search_first(paths: tuple[str, ...]) -> None:
    """What PYTHONPATH does in a new process: these folders come before all others, and a sitecustomize among them is run."""
    sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
    for path in paths:
        if os.path.exists(f"{path}/sitecustomize.py"):
            runpy.run_path(f"{path}/sitecustomize.py")


def exit_code(work: Any, order: dict) -> int:
    """What an interpreter that did this work would exit with."""
    try:
        return work(order) or 0
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
            return 1
        return leaving.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


def run_script(order: dict) -> None:
    sys.argv = [order["script"], *order["argv"]]
    sys.path.insert(0, os.path.dirname(order["script"]))
    runpy.run_path(order["script"], run_name="__main__")


def train(order: dict) -> int:
    from slipway_trainer.__main__ import run
    from slipway_trainer.exits import TrainerError, complain

    # Before a process is forked that must have it too.
    apply(order["patch"])
    keep_process_group()
    try:
        return run(order["argv"])
    except TrainerError as error:
        return complain(error)


@cache
def apply(patch: str) -> None:
    """Runs a file that replaces parts of the trainer in this rank, which keeps them."""
    if patch:
        runpy.run_path(patch)


@cache
def keep_process_group() -> None:
    """The group stays from run to run: torch caches device meshes, and would find those of an ended group again."""
    import torch.distributed as dist

    from slipway_trainer.checkpoint.process import SaverProcess

    # The process that writes checkpoints stays as well: it may only be forked before the group.
    SaverProcess.start = cache(SaverProcess.start)
    SaverProcess.start()
    SaverProcess.close = lambda _process: None
    begin = dist.init_process_group

    def begin_once(*arguments: Any, **options: Any) -> None:
        if not dist.is_initialized():
            begin(*arguments, **options)

    dist.init_process_group = begin_once
    dist.destroy_process_group = lambda *_arguments: None


def carry_out(order: dict, worlds: dict[tuple, list[Rank]]) -> dict:
    """The exit codes of an order, and whether its ranks wait for the next one."""
    size, kind = order["ranks"], (order["ranks"], order["patch"], *order["paths"])
    ranks = worlds.pop(kind, []) if "script" not in order else []
    while len(ranks) < size:
        ranks.append(Rank(len(ranks)))
    for rank in ranks:
        rank.send(order)
    codes = answers(ranks)
    kept = "script" not in order and not any(codes) and ranks[0].runs < RUNS_OF_A_WORLD
    if kept:
        worlds[kind] = ranks
        for rank in ranks:
            rank.rest()
    else:
        end_all(ranks)
    return {"codes": codes, "kept": kept}


def answers(ranks: list[Rank]) -> list[int]:
    """The exit code of every rank. One that still runs ALONE_SECONDS after another has failed is killed: in rare cases gloo never stops
    waiting in the destructor of a buffer (gloo::transport::tcp::UnboundBuffer), whatever the timeout of the collective."""
    waiting, codes = {rank.pipe: number for number, rank in enumerate(ranks)}, [0] * len(ranks)
    deadline = None
    while waiting:
        ready = wait(list(waiting), None if deadline is None else max(0.0, deadline - time.monotonic()))
        for pipe in ready:
            number = waiting.pop(pipe)
            codes[number] = ranks[number].answer()
            if codes[number] != 0 and deadline is None:
                deadline = time.monotonic() + ALONE_SECONDS
        if not ready:
            deadline = None
            for number in waiting.values():
                os.kill(ranks[number].pid, signal.SIGKILL)
    return codes


def end_all(ranks: list[Rank]) -> None:
    for rank in ranks:
        rank.end()


class Zygote:
    """A fork of this process that has imported further modules, and forks the ranks that need them."""

    def __init__(self, preload: list[str]) -> None:
        self.pipe, theirs = Pipe()
        if os.fork() == 0:
            self.pipe.close()
            die_with_parent()
            for name in preload:
                with suppress(ImportError):
                    importlib.import_module(name)
            with suppress(EOFError):
                carry_out_all(iter(theirs.recv, None), theirs.send)
            os._exit(0)
        theirs.close()

    def carry_out(self, order: dict) -> Any:
        self.pipe.send(order)
        return self.pipe.recv()


def carry_out_all(orders: Iterator[dict], answer: Callable[[Any], None]) -> None:
    # A rank collects garbage before its first step: not that of the libraries, whose pages it shares.
    gc.collect()
    gc.freeze()
    worlds: dict[tuple, list[Rank]] = {}
    zygotes: dict[tuple, Zygote] = {}
    for order in orders:
        if not order:
            end_all([rank for world in worlds.values() for rank in world])
            worlds.clear()
            answer([zygote.carry_out({}) for zygote in zygotes.values()])
        elif preload := order.pop("preload", ()):
            zygote = zygotes.get(tuple(preload)) or zygotes.setdefault(tuple(preload), Zygote(preload))
            answer(zygote.carry_out(order))
        else:
            answer(carry_out(order, worlds))


def main() -> None:
    import torch.distributed.checkpoint
    import torch.distributed.fsdp
    import torch.nn.attention.bias

    with suppress(ImportError):
        import slipway_trainer.__main__  # noqa: F401

    # Threads that exist before a fork are lost in the child: nothing may compute here.
    torch.set_num_threads(1)
    print("ready", flush=True)
    carry_out_all(map(json.loads, sys.stdin), lambda found: print(json.dumps(found), flush=True))


if __name__ == "__main__":
    main()
