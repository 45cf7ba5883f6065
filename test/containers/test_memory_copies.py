"""Copies of the state in memory: what counts as one, and runs that are killed anywhere and go on bit for bit."""

import dataclasses
import itertools
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from fake_world import direct_checkpoints
from rank_world import events, losses_of, run_ranks, trainer_job

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.jobs]

from conftest import SEED  # noqa: E402

from slipway_trainer.checkpoint.interval import History, auto_every_steps, auto_interval_minutes, ended_share  # noqa: E402
from slipway_trainer.checkpoint.memory_file import HEADER_BYTES, OWN, PIECE_BYTES, Header, MemoryFile, packed, unpacked  # noqa: E402
from slipway_trainer.checkpoint.memory_plan import Partners  # noqa: E402
from slipway_trainer.checkpoint.memory_restore import Offer, Source, sources_of  # noqa: E402
from slipway_trainer.memory import Memory, free_bytes  # noqa: E402

STEPS = 14


class Hosts:
    """The memory of each rank, as the drivers of hosts with one rank each own it."""

    def __init__(self, ranks: int) -> None:
        self._files = [os.memfd_create(f"rank-{rank}") for rank in range(ranks)]

    def lose(self, rank: int) -> None:
        """A spare host takes the place of this one: its memory is empty."""
        os.close(self._files[rank])
        self._files[rank] = os.memfd_create(f"rank-{rank}")

    def path(self, rank: int) -> str:
        return f"/proc/{os.getpid()}/fd/{self._files[rank]}"

    @property
    def environ(self) -> dict[str, str]:
        return {"SLIPWAY_MEMORY": ":".join(map(self.path, range(len(self._files)))), "LOCAL_WORLD_SIZE": "1"}

    @property
    def sizes(self) -> list[int]:
        return [os.fstat(file).st_size for file in self._files]

    def close(self) -> None:
        for file in self._files:
            os.close(file)


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    found = Hosts(getattr(request, "param", 2))
    yield found
    found.close()


def header(step: int = 3, **changes: Any) -> Header:
    return dataclasses.replace(Header(0, step, "", "shape", {"step": step, "runId": "a"}), **changes)


def test_a_header_counts_only_whole() -> None:
    data = packed(header())
    assert unpacked(data) == header() and len(data) == HEADER_BYTES
    for at in (0, 40, HEADER_BYTES - 1):
        assert unpacked(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None
    assert unpacked(bytes(HEADER_BYTES)) is None


def test_fails_for_a_record_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="more than the header of a memory copy can contain"):
        packed(header(facts={"step": 3, "long": "x" * HEADER_BYTES}))


def test_a_slot_survives_its_writer_and_shows_every_change(hosts: Hosts) -> None:
    first = MemoryFile(hosts.path(0), 4 * PIECE_BYTES, 2)
    first.content(1).copy_(torch.randint(0, 255, (4 * PIECE_BYTES,), dtype=torch.uint8))
    first.commit(1, header(digest=first.digest(1)))
    del first
    second = MemoryFile(hosts.path(0), 4 * PIECE_BYTES, 2)
    assert second.header(1) is not None and second.is_intact(1) and second.header(0) is None
    second.content(1)[-1] += 1
    assert not second.is_intact(1)
    second.clear(1)
    assert second.header(1) is None
    # Another layout needs another size: nothing of the old content is left.
    assert MemoryFile(hosts.path(0), PIECE_BYTES, 4).header(1) is None


def test_every_rank_has_one_holder_on_the_next_host_unless_a_replica_is_on_another() -> None:
    sharded = Partners(ranks=8, per_host=2, replicate=1, copies=2)
    assert sharded.are_sent and [sharded.holder(rank) for rank in range(8)] == [2, 3, 4, 5, 6, 7, 0, 1]
    assert all(sharded.held_by(sharded.holder(rank)) == rank for rank in range(8))
    replicated = Partners(ranks=8, per_host=2, replicate=2, copies=2)
    assert not replicated.are_sent and replicated.count == 2 and replicated.mirrors(1) == [5]
    assert not Partners(ranks=8, per_host=8, replicate=1, copies=2).are_sent
    assert Partners(ranks=4, per_host=2, replicate=1, copies=1).count == 1


def offers(*copies: Offer) -> list[Offer]:
    return list(copies)


@pytest.mark.parametrize(
    ("found", "step", "sources"),
    [
        (offers({(0, 5): "k", (1, 5): "k"}, {(1, 5): "k", (0, 5): "k"}), 5, [Source(0, 0), Source(1, 1)]),
        (offers({}, {(1, 5): "k", (0, 5): "k"}), 5, [Source(1, 0), Source(1, 1)]),
        (offers({(0, 5): "k"}, {(1, 4): "k"}), 5, None),
        (offers({(0, 5): "k"}, {(1, 5): "another run"}), 5, None),
        (offers({}, {}), 5, None),
    ],
    ids=["own", "from the holder", "no common step", "another run", "both hosts lost"],
)
def test_all_ranks_continue_from_one_step_or_none(found: list[Offer], step: int, sources: "list[Source] | None") -> None:
    assert sources_of(step, "k", found, Partners(ranks=2, per_host=1, replicate=1, copies=2)) == sources


def test_a_replica_is_a_source() -> None:
    found = offers({}, {(1, 5): "k"}, {(2, 5): "k"}, {(3, 5): "k"})
    assert sources_of(5, "k", found, Partners(ranks=4, per_host=2, replicate=2, copies=2))[0] == Source(2, 2)


def test_copies_are_as_rare_as_their_cost_demands() -> None:
    calm = History(0.0, 2000.0)
    assert auto_every_steps(0.0, 1.0, 64) == 1
    assert auto_every_steps(0.5, 1.0, 1) > auto_every_steps(0.5, 1.0, 64) > 1
    assert auto_every_steps(0.5, 1.0, 64, calm) > auto_every_steps(0.5, 1.0, 64)
    # However often hosts fail, copies do not cost more than 1 % of the time.
    assert auto_every_steps(0.5, 1.0, 10**6) == 50


def test_checkpoints_are_as_rare_as_lost_jobs() -> None:
    """A failure that copies in memory cover does not make checkpoints more frequent."""
    for spares in (False, True):
        plain, covered, share = History(), History().of_jobs(0, spares), ended_share(spares)
        assert plain.failures_per_node_day * share == pytest.approx(covered.failures_per_node_day)
        assert auto_interval_minutes(1.0, 0.0, 64, covered) == pytest.approx(auto_interval_minutes(1.0, 0.0, 64) / share**0.5)
        restarted = History(3.0, 10.0)
        assert restarted.of_jobs(3.0, spares).failures_per_node_day < restarted.of_jobs(0.0, spares).failures_per_node_day
    # A broken host ends the job where no spare host takes its place.
    assert ended_share(True) < ended_share(False) / 5


class FakeCopies:
    """Copies that are complete as soon as they are taken. `taken`: their steps."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.busy = False

    def take(self, facts: dict[str, int], write: Any) -> None:
        self.taken.append(facts["step"])
        if write is not None:
            write({}, facts, 0.0)

    def sound_until(self, step: int) -> None: ...

    def collect(self) -> None: ...


def test_requests_that_were_made_before_a_copy_ask_for_no_other() -> None:
    """As on a GPU, where the requests of a step are read after the next step was launched."""
    copies = FakeCopies()
    memory = Memory(copies, Partners(2, 1, 1, 2), SimpleNamespace(rank=0), 1, History())  # type: ignore[arg-type]
    asked, busy = frozenset({"copy"}), frozenset({"copy", "copying"})
    for requests, read in ((asked, 4), (asked, 5), (busy, 6), (asked, 7), (asked, 7), (frozenset(), 8), (asked, 9)):
        memory.after_step(requests, read, {"step": read + 1}, 1.0)
    assert copies.taken == [5, 8, 10]


def test_a_copy_that_becomes_a_checkpoint_is_taken_at_once() -> None:
    copies, written = FakeCopies(), []
    memory = Memory(copies, Partners(2, 1, 1, 2), SimpleNamespace(rank=0), 100, History())  # type: ignore[arg-type]
    assert not memory.requests(7)["copy"]
    memory.write_next(lambda shards, facts, blocked: written.append(facts["step"]))
    assert memory.requests(8)["copy"] and memory.awaits_copy
    memory.after_step(frozenset({"copy", "copying"}), 7, {"step": 8}, 1.0)
    assert memory.awaits_copy, "a rank has not completed the one before"
    memory.after_step(frozenset({"copy"}), 8, {"step": 9}, 1.0)
    assert written == [9] and not memory.awaits_copy and not memory.requests(10)["copy"]


def test_free_memory_is_that_of_the_container(tmp_path: Path) -> None:
    proc, group = tmp_path / "meminfo", tmp_path / "group"
    proc.write_text("MemTotal: 100 kB\nMemAvailable:    80 kB\n")
    assert free_bytes(proc, group) == 80 * 1024
    group.mkdir()
    (group / "memory.current").write_text("1000\n")
    (group / "memory.max").write_text("max\n")
    assert free_bytes(proc, group) == 80 * 1024
    (group / "memory.max").write_text("5000\n")
    assert free_bytes(proc, group) == 4000


#: Kills a rank with SIGKILL at a point of a step, as KILL says: `rank point step`.
KILLS = """
import os, signal
from slipway_trainer.checkpoint import memory_copies, memory_restore
from slipway_trainer.checkpoint.memory_copies import MemoryCopies
from slipway_trainer.checkpoint.saver import CheckpointSaver
from slipway_trainer.trainer import Trainer

def die(point, step):
    rank, at, when = os.environ.get("KILL", "0 never 0").split()
    if (os.environ["RANK"], point) == (rank, at) and step >= int(when):
        os.kill(os.getpid(), signal.SIGKILL)

def before(kind, name, point, step_of):
    real = getattr(kind, name)
    def replaced(self, *arguments):
        die(point, step_of(self, *arguments))
        return real(self, *arguments)
    setattr(kind, name, replaced)

before(Trainer, "_accumulate", "step", lambda trainer: trainer.step + 1)
before(MemoryCopies, "_finish", "unmarked", lambda copies, copied: copied.facts["step"])
before(MemoryCopies, "_exchange", "unsent", lambda copies, slot, header, group: header.step)
before(CheckpointSaver, "write", "save", lambda saver, step, *rest: step)
before(CheckpointSaver, "write_copy", "save", lambda saver, step, *rest: step)

take = MemoryCopies.take
def half_taken(self, facts, write):
    real = self._tensors
    half = {slot: dict(list(tensors.items())[: len(tensors) // 2]) for slot, tensors in real.items()}
    self._tensors = half
    take(self, facts)
    die("half", facts["step"])
    self._tensors = real
    self._copied = None
    take(self, facts, write)
MemoryCopies.take = half_taken

receive = memory_copies.receive
def half_received(file, slot, source, group):
    found = receive(file, slot, source, group)
    if found is not None:
        die("received", found.step)
    return found
memory_copies.receive = half_received
"""
POINTS = ("step", "half", "unmarked", "unsent", "received", "save")


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("patch") / "kills.py"
    path.write_text(KILLS)
    return str(path)


def memory_job(root: Path, every_steps: int = 1, copies: int = 2, by_time: bool = False, **changes: Any) -> dict[str, Any]:
    """`by_time`: checkpoints follow each other in 0.3 s and are written from the copies in memory, otherwise every five steps."""
    memory = {"everySteps": every_steps, "copies": copies}
    checkpoints = direct_checkpoints(root / "checkpoints") | {"memory": memory} | ({"intervalMinutes": 0.005} if by_time else {})
    training = {"steps": STEPS, **changes.pop("training", {})}
    arguments = [*([] if by_time else ["--save-every-steps", "5"]), "--collective-timeout-seconds", "20"]
    return trainer_job(checkpoints=checkpoints, training=training, arguments=arguments, **changes)


class Run:
    """A run whose starts follow each other in the same containers."""

    def __init__(self, root: Path, job: dict[str, Any], ranks: int, shards: Path, patch: str, hosts: Hosts) -> None:
        self._root, self._job, self._ranks, self._shards, self._patch, self._hosts = root, job, ranks, shards, patch, hosts
        self._starts = 0
        self.losses: dict[int, float] = {}

    def start(self, kill: str = "0 never 0") -> tuple[int, list[dict[str, Any]], str]:
        """(exit code, where it resumed from, output). A step that is repeated must have its loss again."""
        self._starts += 1
        again = {"SLIPWAY_RESTART": str(self._starts - 1), "KILL": kill, "SLIPWAY_RESUME_FROM": self._newest()}
        folder = self._root / f"start-{self._starts}"
        code, output = run_ranks(folder, self._ranks, self._job, {"train": self._shards}, patch=self._patch, **self._hosts.environ, **again)
        for event in events(output, "step"):
            assert self.losses.setdefault(event["step"], event["loss"]) == event["loss"], f"step {event['step']} differs\n{output}"
        return code, events(output, "resume"), output

    def _newest(self) -> str:
        from slipway_driver.newest_checkpoint import newest_checkpoint

        return newest_checkpoint(self._job["checkpoints"]["uri"])


class Kill(NamedTuple):
    """One kill of a rank. `hosts_lost`: after it, its host (1), or its neighbour's too (2). `at_once`: at the first chance of its start."""

    point: str
    hosts_lost: int
    at_once: bool


def kills_of(points: Sequence[str], count: int, chooser: random.Random) -> list[Kill]:
    """Every combination of point and lost hosts is among any 3 * len(points) kills. Every third is at once after the one before."""
    found: list[Kill] = []
    while len(found) < count:
        kinds = list(itertools.product(points, (0, 1, 2)))
        found += [Kill(*kind, at_once=number % 3 == 2) for number, kind in enumerate(chooser.sample(kinds, len(kinds)))]
    return found[:count]


def play(run: Run, hosts: Hosts, ranks: int, kills: Sequence[Kill], chooser: random.Random) -> None:
    """Kills a rank at each of these points. The run must not be done before."""
    done = 0
    for kill in kills:
        rank = chooser.randrange(ranks)
        code, _resumed, output = run.start(f"{rank} {kill.point} {0 if kill.at_once else done + chooser.choice((1, 2))}")
        assert code == -9, f"{kill} of rank {rank} ended the ranks with {code}\n{output}"
        done = max([done, *(event["step"] for event in events(output, "step"))])
        for which in range(kill.hosts_lost):
            hosts.lose((rank + which) % ranks)


LAYOUTS = {
    "sharded": (2, {}),
    "sharded over four": (4, {}),
    "replicated": (2, {"library": "ddp"}),
    "hybrid": (4, {"parameters": {"replicate_degree": 2}}),
    "tensor parallel": (4, {"parameters": {"tensor_parallel_degree": 2}}),
    "mixture": (2, {"model": {"experts": 4, "expertsPerToken": 2}}),
    "expert parallel": (2, {"model": {"experts": 4, "expertsPerToken": 2}, "parameters": {"expert_parallel_degree": 2}}),
    "compiled": (2, {"parameters": {"compile": True}}),
}


#: Their checkpoints are written from the copies in memory.
BY_TIME = ("sharded", "hybrid", "tensor parallel", "expert parallel", "compiled")


def points_of(layout: str) -> list[str]:
    """The points at which a rank of this layout can be killed: nothing is sent where a replica on another host is the copy."""
    return [point for point in POINTS if layout not in ("replicated", "hybrid") or point not in ("unsent", "received")]


def undisturbed(root: Path, layout: str, shards: Path, steps: int = STEPS) -> dict[int, float]:
    ranks, changes = LAYOUTS[layout]
    job = memory_job(root, training={"steps": steps}, **changes)
    job["checkpoints"] = job["checkpoints"] | {"memory": None, "mode": "none"}
    return dict(enumerate(losses_of(root, ranks, job, {"train": shards}), 1))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "compiled"])
def test_a_run_that_is_killed_anywhere_goes_on_bit_for_bit(tmp_path: Path, shards: Path, kills: str, layout: str) -> None:
    killed_run(tmp_path, shards, kills, layout, 2, 24)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_that_is_killed_fifty_times_goes_on_bit_for_bit(tmp_path: Path, shards: Path, kills: str, layout: str) -> None:
    killed_run(tmp_path, shards, kills, layout, 50, 400)


def killed_run(root: Path, shards: Path, kills: str, layout: str, count: int, steps: int) -> None:
    (ranks, changes), chooser = LAYOUTS[layout], random.Random(SEED + layout)
    hosts = Hosts(ranks)
    try:
        job = memory_job(root, by_time=layout in BY_TIME, training={"steps": steps}, **changes)
        run = Run(root / "run", job, ranks, shards, kills, hosts)
        play(run, hosts, ranks, kills_of(points_of(layout), count, chooser), chooser)
        code, _resumed, output = run.start()
        assert code == 0, output
    finally:
        hosts.close()
    assert run.losses == undisturbed(root / "undisturbed", layout, shards, steps)


def test_sources_in_their_order(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    """A killed rank comes back from its own memory, a lost host from its partner, a lost pair from the checkpoint."""
    run = Run(tmp_path, memory_job(tmp_path, training={"steps": 18}), 2, shards, kills, hosts)
    assert run.start("1 step 8")[0] == -9
    code, (first,), _output = run.start("1 step 10")
    assert (code, first["source"]) == (-9, "memory") and 1 <= first["step"] <= 7
    hosts.lose(1)
    # The save of step 15 has waited for that of step 10.
    code, (second,), _output = run.start("0 step 16")
    assert (code, second["source"]) == (-9, "partner") and first["step"] < second["step"] <= 9
    hosts.lose(0)
    hosts.lose(1)
    code, (third,), output = run.start()
    assert (code, third["source"]) == (0, "disk") and third["step"] in (10, 15)
    saved = events(output, "memory-save")
    assert saved and {"step", "seconds", "blockedSeconds", "bytes", "copies"} <= saved[0].keys() and saved[0]["copies"] == 2


@pytest.mark.parametrize(
    "change", [{"runId": "another-261121120000"}, {"attempt": 2}, {"configHash": "another"}], ids=["run", "attempt", "configuration"]
)
def test_a_copy_of_another_run_is_not_used(tmp_path: Path, shards: Path, kills: str, hosts: Hosts, change: dict[str, Any]) -> None:
    job = memory_job(tmp_path)
    assert Run(tmp_path / "first", job, 2, shards, kills, hosts).start("1 step 4")[0] == -9
    code, resumed, output = Run(tmp_path / "second", job | change, 2, shards, kills, hosts).start("1 step 3")
    assert (code, resumed) == (-9, []), output


def test_a_damaged_copy_is_not_used_on_any_rank(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    run = Run(tmp_path, memory_job(tmp_path, copies=1), 2, shards, kills, hosts)
    # The save of step 10 has waited for that of step 5.
    assert run.start("1 step 11")[0] == -9
    size = hosts.sizes[0] // 2 - HEADER_BYTES
    file = MemoryFile(hosts.path(0), size, 2)
    for slot in OWN:
        file.content(slot)[100] += 1
    code, (resumed,), output = run.start()
    assert (code, resumed["source"]) == (0, "disk") and resumed["step"] in (5, 10)
    assert "in memory are not intact on all ranks, and are not used" in output


def test_copies_of_other_steps_no_longer_count_after_a_restart(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    """A repeated step may have another result, which must not be combined with the first one."""
    run = Run(tmp_path, memory_job(tmp_path), 2, shards, kills, hosts)
    assert run.start("1 unsent 6")[0] == -9
    code, (resumed,), _output = run.start("0 step 1")
    assert (code, resumed["source"]) == (-9, "memory")
    files = [MemoryFile(hosts.path(rank), hosts.sizes[rank] // 4 - HEADER_BYTES, 4) for rank in range(2)]
    steps = {found.step for file in files for slot in range(4) if (found := file.header(slot)) is not None}
    assert steps == {resumed["step"]}


#: Prints a line for each model that is filled with initial values.
FILLING = """
from slipway_trainer import fsdp2
fill_all = fsdp2.fill_all
def filling(*arguments):
    print("initial values", flush=True)
    return fill_all(*arguments)
fsdp2.fill_all = filling
"""


def test_initial_values_are_set_only_where_no_state_is_loaded(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    patch = tmp_path / "filling.py"
    patch.write_text(KILLS + FILLING)
    run = Run(tmp_path, memory_job(tmp_path), 2, shards, str(patch), hosts)
    found = []
    # At step 11, the save of step 10 has waited for that of step 5.
    for kill, lost in (("1 step 1", 0), ("1 step 11", 0), ("1 step 13", 2), ("0 never 0", 0)):
        _code, resumed, output = run.start(kill)
        found.append((output.count("initial values"), [event["source"] for event in resumed]))
        for which in range(lost):
            hosts.lose(which)
    # Killed before its first step, the run begins again.
    assert found == [(1, []), (1, []), (0, ["memory"]), (0, ["disk"])]
    assert run.losses == undisturbed(tmp_path / "undisturbed", "sharded", shards)


#: Prints a line for each save for which training copies the state.
BLOCKING = """
from slipway_trainer.checkpoint.saver import CheckpointSaver
stage = CheckpointSaver.stage
def blocking(self, state):
    print("training waits for a save", flush=True)
    return stage(self, state)
CheckpointSaver.stage = blocking
"""


def test_checkpoints_are_written_from_copies_and_hold_the_same_state(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    """Training does not wait for them; another job continues from one as from any other."""
    patch = tmp_path / "blocking.py"
    patch.write_text(BLOCKING)
    job = memory_job(tmp_path, by_time=True, training={"steps": 200})
    code, _resumed, output = Run(tmp_path / "first", job, 2, shards, str(patch), hosts).start()
    assert code == 0, output
    saved = events(output, "checkpoint")
    assert len(saved) > 2 and output.count("training waits for a save") <= 1, "for the last step, unless a copy has it"
    losses = {event["step"]: event["loss"] for event in events(output, "step")}
    for which in range(2):
        hosts.lose(which)
    again = job | {"attempt": 2}
    again["checkpoints"] = job["checkpoints"] | {"keep": 9}
    from_copy = saved[-2]["step"]
    folder = Path(job["checkpoints"]["uri"])
    for name in folder.iterdir():
        if name.name.startswith("step-") and int(name.name[5:]) > from_copy:
            shutil.rmtree(name)
    second = Run(tmp_path / "second", again, 2, shards, kills, hosts)
    code, (resumed,), output = second.start()
    assert (code, resumed["step"], resumed["source"]) == (0, from_copy, "disk"), output
    assert second.losses == {step: loss for step, loss in losses.items() if step > from_copy}


def test_a_copy_that_comes_too_late_leaves_later_checkpoints_to_copies(tmp_path: Path, shards: Path, hosts: Hosts) -> None:
    patch = tmp_path / "slow.py"
    patch.write_text(
        BLOCKING
        + "import time\nfrom slipway_trainer.checkpoint.memory_copies import MemoryCopies\n"
        + "exchange, slow = MemoryCopies._exchange, [1]\n"
        + "def once(self, slot, header, group):\n    if header.step >= 20 and slow:\n        time.sleep(slow.pop() * 1.5)\n"
        + "    return exchange(self, slot, header, group)\nMemoryCopies._exchange = once\n"
    )
    job = memory_job(tmp_path, by_time=True, training={"steps": 300})
    code, _resumed, output = Run(tmp_path, job, 2, shards, str(patch), hosts).start()
    assert code == 0, output
    assert len(events(output, "checkpoint")) > 5 and output.count("training waits for a save") <= 4


def test_the_last_step_is_written_once(tmp_path: Path, shards: Path, hosts: Hosts) -> None:
    patch = tmp_path / "last.py"
    patch.write_text(
        "from slipway_trainer.saves import Saves\nfrom slipway_trainer.checkpoint import writing\n"
        "Saves.due = property(lambda self: self._world.rank == 0 and self._memory is not None and not self._memory.awaits_copy)\n"
        "write = writing.CheckpointWriter.write\n"
        "def counted(self, facts, **rest):\n    print(f'written {facts[\"step\"]}', flush=True)\n    return write(self, facts, **rest)\n"
        "writing.CheckpointWriter.write = counted\n"
    )
    # Each copy is complete before the next step ends, and that of every other step becomes a checkpoint, usually the last one too.
    job = memory_job(tmp_path, by_time=True, training={"steps": 13})
    job["arguments"] += ["--minimum-step-seconds", "0.1"]
    code, _resumed, output = Run(tmp_path, job, 2, shards, str(patch), hosts).start()
    assert code == 0, output
    written = [line for line in output.splitlines() if line.startswith("written ")]
    assert written[-1] == "written 13" and len(written) == len({*written}) > 5, written
    assert events(output, "checkpoint")[-1]["step"] == 13


def test_checkpoints_are_written_without_copies_once_these_have_ended(tmp_path: Path, shards: Path, hosts: Hosts) -> None:
    patch = tmp_path / "unreachable.py"
    patch.write_text(UNREACHABLE + BLOCKING)
    job = memory_job(tmp_path, by_time=True, training={"steps": 200})
    code, _resumed, output = Run(tmp_path, job, 2, shards, str(patch), hosts).start()
    assert code == 0, output
    saved = events(output, "checkpoint")
    assert len(saved) > 2 and output.count("training waits for a save") == len(saved)


def test_memory_is_bounded_and_stays_the_same_over_starts(tmp_path: Path, shards: Path, kills: str, hosts: Hosts) -> None:
    run = Run(tmp_path, memory_job(tmp_path), 2, shards, kills, hosts)
    assert run.start("1 step 3")[0] == -9
    before = hosts.sizes
    assert before[0] == before[1] > 0 and before[0] % 4 == 0
    assert run.start()[0] == 0
    assert hosts.sizes == before


def test_a_run_without_enough_memory_trains_without_copies(tmp_path: Path, shards: Path, hosts: Hosts) -> None:
    patch = tmp_path / "little.py"
    patch.write_text("import slipway_trainer.memory as memory\nmemory.free_bytes = lambda: 1 << 20\n")
    code, _resumed, output = Run(tmp_path, memory_job(tmp_path), 2, shards, str(patch), hosts).start()
    assert code == 0 and events(output, "memory-save") == []
    assert "the state is not kept in memory: " in output and "GiB; use more instances, or a type with more memory" in output


UNREACHABLE = """
from slipway_trainer.checkpoint.memory_copies import MemoryCopies
def fail(*_arguments):
    raise RuntimeError('no route to host')
MemoryCopies._exchange = fail
"""


def test_an_exchange_that_fails_ends_the_copies_and_not_the_run(tmp_path: Path, shards: Path, hosts: Hosts) -> None:
    patch = tmp_path / "unreachable.py"
    patch.write_text(UNREACHABLE)
    code, _resumed, output = Run(tmp_path, memory_job(tmp_path), 2, shards, str(patch), hosts).start()
    assert code == 0
    assert output.count("no further copies of the state are kept in memory: no route to host; training continues") == 1
