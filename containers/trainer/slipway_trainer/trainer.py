"""The training loop: steps, saves, and the ways to leave."""

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from slipway_trainer import exits, progress
from slipway_trainer.adapter_export import export_adapter
from slipway_trainer.backend import Backend
from slipway_trainer.backend_choice import compiles
from slipway_trainer.balance import expert_balance
from slipway_trainer.batches import Batches, MicroBatch, channel_folder, say_data, training_folders
from slipway_trainer.continuation import Continuation
from slipway_trainer.departure import Departure
from slipway_trainer.evaluation import evaluation_loss
from slipway_trainer.garbage import ScheduledCollection
from slipway_trainer.loss import IGNORED
from slipway_trainer.optimizer import set_learning_rate, step_unless
from slipway_trainer.prefetch import Prefetch
from slipway_trainer.profiling import open_trace, place_of
from slipway_trainer.published_config import write_config
from slipway_trainer.results import Launched, StepResults
from slipway_trainer.samples import open_samples
from slipway_trainer.saves import Saves
from slipway_trainer.schedule import learning_rate, warmup_steps
from slipway_trainer.settings import RunSettings
from slipway_trainer.skips import batch_of
from slipway_trainer.slow_hosts import SlowHosts
from slipway_trainer.stalls import PATIENCE, Ballot, StallWatch
from slipway_trainer.step_clock import StepClock
from slipway_trainer.tally import Tallies
from slipway_trainer.trackers import close_failed, log_all, open_trackers
from slipway_trainer.weights import export_weights
from slipway_trainer.world import World


class Trainer:
    """One run on one rank."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, environ: Mapping[str, str]) -> None:
        self.settings, self.world, self.backend = settings, world, backend
        training = settings.training
        vocabulary = settings.architecture.vocabulary_size
        ranks = backend.layout.data_ranks
        self.batches = Batches(training_folders(settings, environ), training, vocabulary, backend.data_rank, ranks)
        self._evaluation = self._eval_batches(environ)
        if world.rank == 0:
            say_data(self.batches, self._evaluation, settings)
        counts = settings.library in ("fsdp", "ddp") and not compiles(settings, world.device.type)
        self._experts = expert_balance(backend.model, settings.arguments, self.batches.micro_steps, world.device) if counts else None
        self._samples = open_samples(settings, world, backend, self._evaluation or self.batches, environ)
        self._looked_at_step: int | None = None
        self.step = 0
        self._data = Prefetch(self.batches, pinned=world.device.type == "cuda")
        self._continuation = Continuation(settings, self.batches)
        self._warmup = warmup_steps(settings.arguments.warmup_steps, training.steps)
        self._departure = Departure(settings.deadline, settings.hand_over_file)
        self._departure.listen()
        self._tallies = Tallies(world.device, world.ranks)
        self._saves = Saves(settings, world, backend, self._tallies.bad)
        self._trackers = open_trackers(settings.arguments, settings.run_id, world.rank, environ)
        place = place_of(settings.job.get("heartbeatUri"), settings.attempt, environ)
        self._trace = open_trace(settings.arguments, world.rank, world.device, place)
        self._results = StepResults(settings, world, self._saves, self._continuation, self._trackers)
        self._step_seconds = 0.0
        #: Seconds for which the step that is being computed has waited for data.
        self._waited = 0.0
        self._clock = StepClock()
        #: Steps that are launched before the host reads what came of them. A GPU then always has work to do; a CPU has done its steps.
        self.ahead = 1 if world.device.type == "cuda" else 0
        #: Steps that were launched and whose numbers were not read yet.
        self._launched: deque[Launched] = deque()
        #: What any rank asked for with the steps that were read, and was not done yet.
        self._wishes: frozenset[str] = frozenset()
        self._garbage = ScheduledCollection()
        self._stalls = StallWatch(self._saves, Ballot(world.store, world.ranks), self._patience)
        self._hosts = SlowHosts(world.device, world.control, world.hosts, settings.arguments.host_check_seconds)

    def _patience(self) -> float:
        """Seconds without the end of a step, or a batch of an evaluation, after which the state is worth a checkpoint."""
        return PATIENCE * self.world.timeouts.seconds if self.world.phase in (None, "eval") else math.inf

    def _eval_batches(self, environ: Mapping[str, str]) -> Batches | None:
        """Batches of the evaluation channel, if there is one. The same samples every time, so that losses can be compared."""
        name = self.settings.arguments.eval_channel
        if not name:
            return None
        shape, layout = self.settings.architecture, self.backend.layout
        folder = channel_folder(name, dict(environ))
        return Batches(folder, self.settings.training, shape.vocabulary_size, self.backend.data_rank, layout.data_ranks)

    def _facts(self) -> dict[str, Any]:
        """The fields of COMMITTED.json that change with the step."""
        return self._continuation.facts(self.step)

    def resume(self) -> None:
        """Continues from the newest complete checkpoint, if there is one."""
        record = self._saves.resume()
        if record is None:
            return
        self.step = int(record["step"])
        for difference in self._continuation.take(record):
            if self.world.rank == 0:
                print(f"continuing from another run with a difference: {difference}", flush=True)

    def train(self) -> int:
        """Trains to the last step or until it must leave; returns the exit code."""
        training = self.settings.training
        self._clock.begin()
        while self.step < training.steps:
            began = time.monotonic()
            self._one_step()
            self._pad_step(began)
            self._read_steps(leave=self.ahead)
            self._garbage.after_step(self.step)
            if self._trace:
                self._trace.after_step(self.step)
            code = self._between_steps()
            if code is not None:
                return code
        self._read_steps()
        self._stalls.close()
        if self._saves.newest_step != self.step:
            self._save(wait=True)
        if self._looked_at_step != self.step:
            self._look_at_model()
        return 0

    def _save(self, wait: bool) -> None:
        # A checkpoint is made of sound steps only.
        self._read_steps()
        with self._stalls.still, self._clock.stopped():
            self._saves.save(self._facts(), wait)
            self._stalls.go_on()

    def export(self, folder: Path, imported: Path | None = None) -> None:
        """Writes what the run asks for: its weights in published form with the config.json of those that it started from, its adapter."""
        settings, world, shapes = self.settings, self.world, self.backend.shapes
        world.announce("save", begin=True)
        if settings.arguments.export_weights:
            export_weights(self.backend.whole_tensors(), shapes, folder, settings.training, world.rank, settings.architecture)
            if world.rank == 0:
                write_config(folder, settings.architecture, settings.training.sequence_length, imported, settings.training.precision)
        if settings.arguments.export_adapter:
            export_adapter(self.backend.whole_tensors(), shapes, folder, settings, world.rank)
        world.announce("save", begin=False)

    def _between_steps(self) -> int | None:
        """Saves when it is time; the exit code when the run must leave before its last step."""
        with self._stalls.still:
            self._saves.collect()
        if self._wishes:
            # What ranks asked for before it was done, they have asked for with the steps on their way too.
            self._read_steps()
        wishes, self._wishes = self._wishes, frozenset()
        self.world.timeouts.tighten(self._step_seconds)
        if "check_hosts" in wishes:
            self._compare_hosts(self._step_seconds)
        if self.step >= self.settings.training.steps:
            return None
        every = self.settings.arguments.eval_every_steps
        if every and self.step % every == 0:
            self._look_at_model()
        if wishes & {"leave", "hand_over"}:
            self._save(wait=True)
            return exits.TRY_AGAIN if "leave" in wishes else exits.HAND_OVER
        if "save" in wishes or self._saves.due_at(self.step):
            self._save(wait=False)
        return None

    def _own_wishes(self) -> dict[str, bool]:
        """What this rank asks for with the step that is about to end. The first rank alone looks at the clock for saves and checks."""
        first = self.world.rank == 0
        return {
            "leave": self._departure.asked,
            "hand_over": self._departure.due(self._step_seconds, self._saves.seconds),
            "save": first and self._saves.due,
            "check_hosts": first and self._hosts.due,
        }

    def _compare_hosts(self, step_seconds: float) -> None:
        news, slow = self._hosts.check(step_seconds)
        if news and self.world.rank == 0:
            progress.say(
                "slow-host", host=slow.host if slow else None, **({"what": slow.what, "ratio": round(slow.ratio, 2)} if slow else {})
            )

    def _one_step(self) -> None:
        arguments, training = self.settings.arguments, self.settings.training
        rate = learning_rate(
            self.step,
            training.steps,
            arguments.learning_rate,
            self._warmup,
            arguments.schedule,
            arguments.minimum_learning_rate_ratio,
            arguments.decay_share,
        )
        set_learning_rate(self.backend.optimizer, rate)
        loss, data_seconds = self._accumulate()
        self._hosts.waited(data_seconds)
        norm = self.backend.clip(arguments.clip_norm)
        asked = self._tallies.ask(loss, norm, self._own_wishes(), self._experts.take() if self._experts else None)
        with self._stalls.still, self._saves.updating(self._continuation.facts(self.step + 1)):
            step_unless(self.backend.optimizer, self._tallies.bad)
            if self._experts and asked.loads_YX is not None:
                self._experts.move_bias(asked.loads_YX, self._tallies.bad)
            self.backend.optimizer.zero_grad()
            self.step += 1
        seconds = self._clock.lap() if asked.is_over else None
        self._launched.append(Launched(self.step, asked, rate, data_seconds, seconds))

    def _read_steps(self, leave: int = 0) -> None:
        """Reads what came of the steps that were launched, but for the newest `leave` of them. Raises LossFailed."""
        while len(self._launched) > leave:
            launched = self._launched.popleft()
            found = launched.asked.read()
            self._step_seconds = self._clock.lap() if launched.seconds is None else launched.seconds
            self._results.take(launched, found, self._step_seconds)
            self._wishes |= found.wishes
            if self._saves.watches:
                self._stalls.ended()

    def _accumulate(self) -> tuple[Tensor, float]:
        """Gradients of one global batch; this rank's part of its loss, whose mean over the ranks is the loss, and the seconds spent
        waiting for data."""
        self._waited = 0.0
        batches = self._micro_batches(batch_of(self.settings.training.skips, self.step))
        count, share = self.batches.micro_steps, 1.0 / self.batches.micro_steps
        if self.settings.training.counts_targets:
            # Each micro-batch has another number of targets: those of the whole batch must be known before its first gradient.
            held = list(batches)
            batches, share = iter(held), self.world.ranks / self._targets(held)
        total = torch.zeros((), device=self.world.device)
        for number, batch in enumerate(batches):
            total += self.backend.forward_backward(batch, share, last=number == count - 1) * share
        return total, self._waited

    def _micro_batches(self, batch: int) -> Iterator[MicroBatch]:
        for micro_step in range(self.batches.micro_steps):
            began = time.monotonic()
            found = self._data.micro_batch(batch, micro_step, self.world.device)
            self._waited += time.monotonic() - began
            yield found

    def _targets(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Targets of these micro-batches of all ranks, on the device; ranks that split a matrix count theirs twice, as they do the loss,
        and those that split a sequence only their part."""
        total = torch.stack([(batch.targets_BL != IGNORED).sum() for batch in batches]).sum().float() / self.backend.layout.context
        dist.all_reduce(total)
        return total.clamp(min=1.0)

    def _look_at_model(self) -> None:
        """What is asked of the model beside training: its loss on the evaluation channel, and sample generations."""
        self._looked_at_step = self.step
        if self._evaluation is None and self._samples is None:
            return
        self._read_steps()
        with self._clock.stopped():
            self.world.announce("eval", begin=True)
            self._stalls.go_on()
            if self._evaluation is not None:
                self._evaluate(self._evaluation)
            if self._samples is not None:
                self._samples.say(self.step)
            self._stalls.go_on()
            self.world.announce("eval", begin=False)

    def _evaluate(self, evaluation: Batches) -> None:
        loss = evaluation_loss(self.backend, evaluation, self.settings, self.world, self._stalls.go_on)
        if self.world.rank == 0:
            progress.say("eval", step=self.step, loss=loss)
            log_all(self._trackers, self.step, {"evalLoss": loss})

    def _pad_step(self, began: float) -> None:
        wanted = self.settings.arguments.minimum_step_seconds - (time.monotonic() - began)
        if wanted > 0:
            with self._clock.stopped():
                time.sleep(wanted)

    def fail(self, code: int) -> None:
        """Says in the trackers that this rank leaves with an error and this exit code; all else is left as it is."""
        close_failed(self._trackers, code)

    def close(self, code: int = 0) -> None:
        """Ends readers, saves, backend and trackers, in this order: a server that does not answer must not keep a save waiting. `code`:
        what the trainer leaves with."""
        for part in (self._garbage, self._data, self._stalls, self._trace, self._saves, self.backend):
            if part is not None:
                part.close()
        for tracker in self._trackers:
            tracker.close(code)
