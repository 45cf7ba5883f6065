"""What a step costs the host besides forward passes, backward passes and the optimizer, as the first of many ranks. Needs no GPU.

    npm run bench:host -- [--ranks 32 1024] [--steps 200] [--layers 32]

The trainer's own loop runs on rank 0 of a world whose collectives return at once (torch's `fake` process group). Its layers are narrow, and
as many as those of an 8B model, so that the number of tensors is real and the arithmetic is small. Each number of ranks is a process of its
own. What is left of a step is reading data, clipping, the tally of all ranks, the progress line, the garbage collector and what is kept for
checkpoints and requests; the wait for the network is added as it would be at the size of the cluster (`all_reduce_seconds`).
"""

import argparse
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from measurement import write_tokens

from slipway_trainer import trainer as loop
from slipway_trainer.backend import build_backend
from slipway_trainer.layout import resolve_layout
from slipway_trainer.settings import resolve_settings
from slipway_trainer.world import World

VOCABULARY, RANKS_OF_HOST = 512, 8
#: An AllReduce of 16 bytes on one and two ml.p5.48xlarge took 12.9 and 72.6 us (nccl-tests in awslabs/awsome-distributed-ai, 95b939c).
INSIDE_SECONDS, TWO_HOSTS_SECONDS = 12.88e-6, 72.64e-6
#: Steps that are not counted: the first ones allocate.
WARM_UP = 20
#: Parts of a step that are measured apart: where they are in the trainer, and their name.
PARTS = {
    "data": ("_data", "micro_batch"),
    "clipping": ("backend", "clip"),
    "tally": ("_tallies", "ask"),
    "progress": ("_results", "take"),
    "garbage": ("_garbage", "after_step"),
    "between": ("", "_between_steps"),
}


def all_reduce_seconds(ranks: int) -> float:
    """How long a few bytes take to be summed over all ranks: NCCL's trees climb the hosts and come back, log2(hosts) hops each way
    (ncclTopoTuneModel in src/graph/tuning.cc)."""
    hosts = max(1, ranks // RANKS_OF_HOST)
    return INSIDE_SECONDS + math.log2(hosts) * (TWO_HOSTS_SECONDS - INSIDE_SECONDS)


class EnoughSteps(Exception):
    """Ends a training loop from outside."""


class HostTime:
    """The seconds of each step, without what is `apart`, and of its parts."""

    def __init__(self, steps: int) -> None:
        self.steps: list[float] = []
        self.parts: defaultdict[str, list[float]] = defaultdict(list)
        #: All-reduces of a step outside of what is `apart`.
        self.all_reduces = 0
        self._wanted, self._apart, self._depth = steps, 0.0, 0
        #: Called after each step with its number.
        self.after_step: Callable[[int], None] = lambda _step: None
        self._began = time.perf_counter()

    @property
    def is_apart(self) -> bool:
        """Whether a function that is `apart` is running."""
        return self._depth > 0

    def apart(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose time does not count."""

        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            self._depth += 1
            try:
                return function(*arguments, **options)
            finally:
                self._depth -= 1
                self._apart += time.perf_counter() - began

        return timed

    def part(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose time is also counted under a name."""

        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.parts[name].append(time.perf_counter() - began)

        return timed

    def sent(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A collective that is counted where it is not `apart`."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self.all_reduces += not self.is_apart
            return function(*arguments, **options)

        return counted

    def step_ended(self) -> None:
        now = time.perf_counter()
        self.steps.append(now - self._began - self._apart)
        self.after_step(len(self.steps))
        if len(self.steps) == self._wanted:
            raise EnoughSteps
        self._began, self._apart = time.perf_counter(), 0.0


def job_of(ranks: int, layers: int, checkpoints: Path | None) -> dict[str, Any]:
    """A job of `ranks` ranks, each with one short sequence a step."""
    heads = {"attentionHeads": 4, "kvHeads": 2, "headSize": 16}
    model = heads | {"layers": layers, "hiddenSize": 64, "ffnHiddenSize": 128, "vocabularySize": VOCABULARY}
    training = {"sequenceLength": 32, "microBatchSize": 1, "globalBatchSize": ranks, "steps": 10**6, "precision": "bf16", "seed": 1}
    return {
        "model": model | {"gatedMlp": True, "tiedEmbeddings": False},
        "training": training | {"activationCheckpointing": "none"},
        "distribution": {"library": "fsdp", "collectives": "gloo", "parameters": {}},
        # An interval that is not over before the measurement: a save needs the other ranks.
        "checkpoints": {"mode": "uri", "uri": str(checkpoints), "intervalMinutes": 10**6} if checkpoints else {"mode": "none"},
    }


def _scattered(own: torch.Tensor, parts: torch.Tensor, *_arguments: Any, **_options: Any) -> None:
    """The fake group leaves the result of a reduce-scatter as it was, which may be no number."""
    own.copy_(parts.flatten()[: own.numel()].view_as(own))


@contextmanager
def first_of(ranks: int, job: dict[str, Any], tokens: Path) -> Iterator[loop.Trainer]:
    """The trainer of a job as the first of `ranks`, alone."""
    join, group = dist.init_process_group, dist.new_group

    def joined(_backend: str, **_options: Any) -> None:
        join("fake", rank=0, world_size=ranks, store=dist.HashStore())

    environ = {"RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": str(RANKS_OF_HOST), "SM_CHANNEL_TRAIN": str(tokens)}
    with (
        patch.dict(os.environ, environ),
        patch.object(dist, "init_process_group", joined),
        patch.object(dist, "new_group", lambda **_options: group(backend="fake")),
        patch.object(dist, "reduce_scatter_tensor", _scattered),
    ):
        settings = resolve_settings(job, ["--warmup-steps", "1"], {})
        # Nothing is saved, and the processes of the other ranks are not there.
        nothing = SimpleNamespace(set_up=lambda *_given: None, require_alive=lambda: None, close=lambda: None)
        nothing.descriptor = os.memfd_create("bench")
        world = World("gloo", 1800, saver=nothing)
        layout = resolve_layout(settings.parallel, ranks, settings.architecture, settings.training)
        trainer = loop.Trainer(settings, world, build_backend(settings, layout, world.device, None), os.environ)
        try:
            trainer.resume()
            yield trainer
        finally:
            trainer.close()
            world.close()


def train(trainer: loop.Trainer, clock: HostTime) -> None:
    """Runs the trainer's loop until the clock has seen its steps."""
    backend = trainer.backend
    backend.forward_backward = clock.apart(backend.forward_backward)
    backend.optimizer.zero_grad = clock.apart(backend.optimizer.zero_grad)
    for name, (owner, method) in PARTS.items():
        at = getattr(trainer, owner) if owner else trainer
        setattr(at, method, clock.part(name, getattr(at, method)))
    between = trainer._between_steps

    def ended() -> int | None:
        code = between()
        clock.step_ended()
        return code

    trainer._between_steps = ended
    with patch.object(loop, "step_unless", clock.apart(loop.step_unless)), _counted(clock):
        try:
            trainer.train()
        except EnoughSteps:
            return
    raise RuntimeError("the training loop ended before it was measured")


@contextmanager
def _counted(clock: HostTime) -> Iterator[None]:
    """All-reduces are counted, those that DTensor calls too."""
    functional = torch.distributed._functional_collectives
    with (
        patch.object(dist, "all_reduce", clock.sent(dist.all_reduce)),
        patch.object(functional, "all_reduce", clock.sent(functional.all_reduce)),
    ):
        yield


def measure(ranks: int, steps: int, layers: int) -> dict[str, Any]:
    """Milliseconds of the host per step as the first of `ranks`."""
    torch.set_num_threads(1)
    clock = HostTime(steps + WARM_UP)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_tokens(folder / "tokens", VOCABULARY, 10**6)
        with first_of(ranks, job_of(ranks, layers, folder / "checkpoints"), folder / "tokens") as trainer, redirect_stdout(io.StringIO()):
            train(trainer, clock)
    counted = sorted(clock.steps[WARM_UP:])
    all_reduces = clock.all_reduces / len(clock.steps)
    found = {"median": statistics.median(counted), "p95": counted[int(0.95 * len(counted))], "worst": counted[-1]}
    found |= {name: statistics.median(seconds[WARM_UP:]) for name, seconds in clock.parts.items()}
    found |= {"network": all_reduces * all_reduce_seconds(ranks)}
    return {"allReduces": all_reduces} | {name: 1e3 * seconds for name, seconds in found.items()}


def shown(ranks: int, found: dict[str, Any]) -> str:
    total = found["median"] + found["network"]
    parts = ", ".join(f"{name} {found[name]:.2f}" for name in PARTS)
    columns = f"{ranks:>6,} {found['median']:>8.2f} {found['p95']:>8.2f} {found['worst']:>8.2f} {found['network']:>9.2f} {total:>8.2f}"
    return f"{columns}   {parts}; {found['allReduces']:.0f} all-reduces"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench:host", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[32, 1024])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--alone", action="store_true", help="measure in this process and print JSON")
    given = parser.parse_args(words)
    if given.alone:
        print(json.dumps(measure(given.ranks[0], given.steps, given.layers)))
        return 0
    print(f"CPU, {os.cpu_count()} cores; {given.layers} layers, {given.steps} steps, torch {torch.__version__}; milliseconds a step")
    print(f"{'ranks':>6} {'median':>8} {'95 %':>8} {'worst':>8} {'network':>9} {'together':>8}   medians of the parts")
    for ranks in given.ranks:
        command = [sys.executable, __file__, "--alone", "--ranks", str(ranks), "--steps", str(given.steps), "--layers", str(given.layers)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        print(shown(ranks, json.loads(output.stdout.splitlines()[-1])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
