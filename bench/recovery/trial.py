"""Jobs of several hosts on this machine, the faults that strike them, and what each recovery took."""

import os
import random
import signal
import time
import uuid
from pathlib import Path
from typing import Any

from timeline import Recovery, Timeline, recovery

from fake_s3 import FakeS3
from fake_world import FakeWorld, direct_checkpoints, lose_gpu, with_gpus
from rank_world import trainer_job

#: Steps between the first save, or the last step before the previous fault, and the next fault.
STEPS_BEFORE = (2, 38)
#: Hosts that wait in one job: each costs memory and an import of PyTorch.
MAX_SPARES = 4
SAVE_EVERY_STEPS, STEP_SECONDS = 40, 0.25


class Job:
    """One attempt of a run on `hosts` training hosts and `spares`."""

    def __init__(self, folder: Path, tree: Path, s3: FakeS3, shards: Path, hosts: int, spares: int, attempt: int, **changes: Any) -> None:
        folder.mkdir(parents=True)
        arguments = ["--save-every-steps", str(SAVE_EVERY_STEPS), "--minimum-step-seconds", str(STEP_SECONDS)]
        checkpoints = direct_checkpoints("s3://checkpoints/run")
        memory = {"memory": {"everySteps": 1, "copies": 2}}
        own = {"checkpoints": checkpoints | memory | changes.pop("checkpoints", {}), "spareInstances": spares, "attempt": attempt}
        training = {"steps": 1_000_000, "globalBatchSize": hosts}
        job = trainer_job(training=training, arguments=arguments + changes.pop("arguments", []), **changes)
        self.world = FakeWorld(
            folder / "hosts", hosts + spares, job | own | {"launcher": "torchrun", "restartsInPlace": 10_000},
            name=f"bench-{uuid.uuid4().hex[:12]}-a001", tree=tree,
        )  # fmt: skip
        self.world.add_channel("train", shards)
        self.training = self.world.hosts[:hosts]
        self._environ = {"OMP_NUM_THREADS": "1", **s3.environ, **with_gpus(folder)}
        first, *others = [self.world.base(host) / "log" for host in self.world.hosts]
        self.timeline = Timeline(first, lambda: self.world.processes["algo-1"].poll() is not None, others)

    def start(self) -> float:
        """Starts the hosts; returns when."""
        began = time.monotonic()
        for host in self.world.hosts:
            # Otherwise all hosts of this machine would share the compiler's files.
            own = self.world.base(host) / "tmp"
            own.mkdir()
            self.world.start(self._environ | {"TMPDIR": str(own)}, only=[host])
        return began

    def await_step(self, step: int) -> None:
        """Waits for a step."""
        self.timeline.wait(lambda seen: seen.named("step") and seen.event["step"] >= step, 0)

    def kill_rank(self, host: str) -> None:
        """Kills the rank of a host."""
        self.world.kill_rank(host)

    def take_over(self) -> None:
        """Learns from the log which spare hosts train now."""
        for seen in self.timeline.seen:
            replaced = seen.event.get("replaced") or {}
            self.training = [replaced.get(host, host) for host in self.training]

    def end(self) -> None:
        """Kills every host, and waits for its processes."""
        self.world.kill()


class Bench:
    """The trials of one tree. `hosts`: those that train."""

    def __init__(self, folder: Path, tree: Path, shards: Path, hosts: int, trials: int, chooser: random.Random) -> None:
        self._folder, self._tree, self._shards = folder, tree, shards
        self._hosts, self._trials, self._random = hosts, trials, chooser
        self._jobs = 0
        #: Shares of the time of their steps for which the copies that were reported have blocked training.
        self.blocked: list[float] = []

    def _job(self, s3: FakeS3, spares: int = 0, attempt: int = 1, **changes: Any) -> Job:
        self._jobs += 1
        return Job(self._folder / f"job-{self._jobs}", self._tree, s3, self._shards, self._hosts, spares, attempt, **changes)

    def rank_killed(self) -> list[Recovery]:
        """A rank of a random host is killed."""
        return self._in_place(0, lambda job: job.kill_rank(self._random.choice(job.training)))

    def host_lost(self) -> list[Recovery]:
        """The GPU of a host breaks, so that a spare host takes its place; its own copies are out of reach."""
        return self._in_place(1, lambda job: self._lose(job, [self._random.choice(job.training)]))

    def two_hosts_lost(self) -> list[Recovery]:
        """The same for two neighbours at once, of which one holds the copies of the other."""

        def strike(job: Job) -> None:
            at = self._random.randrange(len(job.training) - 1)
            self._lose(job, job.training[at : at + 2])

        return self._in_place(2, strike)

    def _lose(self, job: Job, hosts: list[str]) -> None:
        for host in hosts:
            lose_gpu(job.world, host)
        for host in hosts:
            job.kill_rank(host)

    def _in_place(self, spares_used: int, strike: Any, most: int = 1_000_000) -> list[Recovery]:
        """Faults in one job after the other, `most` in one of them, until there are as many as asked for."""
        found: list[Recovery] = []
        while len(found) < self._trials:
            left = self._trials - len(found)
            here = min(left, most if spares_used == 0 else MAX_SPARES // spares_used)
            s3 = FakeS3()
            job = self._job(s3, spares=here * spares_used)
            try:
                job.start()
                for _ in range(here):
                    found.append(self._struck(job, strike))
                self._count_blocked(job)
            finally:
                job.end()
                s3.close()
        return found

    def _struck(self, job: Job, strike: Any) -> Recovery:
        before = max([SAVE_EVERY_STEPS, *(seen.event["step"] for seen in job.timeline.seen if seen.named("step"))])
        job.await_step(before + self._random.randint(*STEPS_BEFORE))
        since, struck_at = len(job.timeline.seen), time.monotonic()
        strike(job)
        found = recovery(job.timeline, job.timeline, since, struck_at)
        job.take_over()
        return found

    def driver_killed(self) -> list[Recovery]:
        """The driver of a host is killed: each host's once in a job."""
        left: list[str] = []

        def strike(job: Job) -> None:
            left.extend([] if left else self._random.sample(job.training, self._hosts))
            os.kill(job.world.driver(left.pop()), signal.SIGKILL)

        return self._in_place(0, strike, self._hosts)

    def new_attempt(self) -> list[Recovery]:
        """All hosts are lost. The service starts others at once: their time to start and the wait for capacity are not in these figures."""

        def strike(job: Job) -> None:
            for process in job.world.processes.values():
                process.kill()

        return self._new_attempts(strike)

    def compile_cold(self) -> list[Recovery]:
        """The first start of a compiled run."""
        return [self._compiled(kept=False) for _ in range(self._trials)]

    def compile_cached(self) -> list[Recovery]:
        """A later attempt of the same run, on other hosts."""
        return [self._compiled(kept=True) for _ in range(self._trials)]

    def _compiled(self, kept: bool) -> Recovery:
        s3 = FakeS3()
        # The steps of the first attempt are not saved: both attempts start with the first step.
        changes = {
            "parameters": {"compile": True},
            "checkpoints": {"mode": "none", "uri": ""},
            "compileCacheUri": "s3://checkpoints/cache/",
        }
        jobs = [self._job(s3, attempt=attempt, **changes) for attempt in ((1, 2) if kept else (1,))]
        try:
            for job in jobs:
                struck_at = job.start()
                found = recovery(None, job.timeline, 0, struck_at)
                for process in job.world.processes.values():
                    process.send_signal(signal.SIGTERM)
                job.world.wait(600)
        finally:
            for job in jobs:
                if job.world.processes:
                    job.end()
            s3.close()
        return found

    def _new_attempts(self, strike: Any) -> list[Recovery]:
        found: list[Recovery] = []
        for _ in range(self._trials):
            s3 = FakeS3()
            first = self._job(s3)
            second = self._job(s3, attempt=2)
            try:
                first.start()
                first.await_step(SAVE_EVERY_STEPS + self._random.randint(*STEPS_BEFORE))
                struck_at = time.monotonic()
                strike(first)
                first.world.wait(600)
                first.timeline.read_new()
                second.start()
                found.append(recovery(first.timeline, second.timeline, 0, struck_at))
            finally:
                first.end()
                if second.world.processes:
                    second.end()
                s3.close()
        return found

    def _count_blocked(self, job: Job) -> None:
        for seen in job.timeline.seen:
            if seen.named("memory-save"):
                self.blocked.append(seen.event["blockedSeconds"] / (seen.event["everySteps"] * STEP_SECONDS))
