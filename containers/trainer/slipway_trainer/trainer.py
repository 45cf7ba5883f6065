"""The training loop: steps, saves, and the reasons to exit."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from slipway_trainer import exits, progress
from slipway_trainer.backend import Backend
from slipway_trainer.balance import expert_balance
from slipway_trainer.batches import Batches, MicroBatch, Prefetch, channel_folder, report_data, training_folders
from slipway_trainer.continuation import Continuation
from slipway_trainer.departure import Departure
from slipway_trainer.evaluation import evaluation_loss
from slipway_trainer.garbage import ScheduledCollection
from slipway_trainer.limits import compiles
from slipway_trainer.loss import IGNORED
from slipway_trainer.optimizer import learning_rate, set_learning_rate, step_unless, warmup_steps
from slipway_trainer.order import batch_of
from slipway_trainer.profiling import open_trace, place_of
from slipway_trainer.published_config import write_config
from slipway_trainer.results import Launched, StepResults
from slipway_trainer.samples import open_samples
from slipway_trainer.saves import Saves
from slipway_trainer.settings import RunSettings
from slipway_trainer.slow_hosts import SlowHosts
from slipway_trainer.stalls import watch_steps
from slipway_trainer.step_clock import StepClock
from slipway_trainer.tally import REQUESTS, Tallies
from slipway_trainer.trackers import close_failed, log_all, open_trackers
from slipway_trainer.weights import export_adapter, export_weights
from slipway_trainer.world import World


class Trainer:
    """A run on one rank."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, environ: Mapping[str, str]) -> None:
        self.settings, self.world, self.backend = settings, world, backend
        training = settings.training
        vocabulary = settings.architecture.vocabulary_size
        ranks = backend.layout.data_ranks
        self.batches = Batches(training_folders(settings, environ), training, vocabulary, backend.data_rank, ranks)
        self._evaluation: Batches | None = None
        if channel := settings.arguments.eval_channel:
            # The samples are always the same, so that losses are comparable.
            folder = channel_folder(channel, dict(environ), "code.arguments.eval-channel")
            self._evaluation = Batches(folder, training, vocabulary, backend.data_rank, ranks)
        if world.rank == 0:
            report_data(self.batches, self._evaluation, settings)
        self._compiles = compiles(settings, world.device.type)
        counts = settings.library in ("fsdp", "ddp") and not self._compiles
        self._experts = expert_balance(backend.model, settings.arguments, self.batches.micro_steps, world.device) if counts else None
        self._samples = open_samples(settings, world, backend, self._evaluation or self.batches, environ)
        self._evaluated_step: int | None = None
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
        #: Seconds for which the current step has waited for data, and its share of the tokens, which others of its group have too.
        self._waited, self._tokens = 0.0, 0.0
        self._clock, self._garbage = StepClock(), ScheduledCollection()
        #: Number of steps that are launched before the host reads a result. This keeps a GPU busy; on a CPU, steps are synchronous.
        self.ahead = 1 if world.device.type == "cuda" else 0
        #: Launched steps whose results were not read yet.
        self._launched: deque[Launched] = deque()
        #: Requests of any rank in the steps that were read, not handled yet, and all requests of the newest of them.
        self._requests: frozenset[str] = frozenset()
        self._newest_requests: frozenset[str] = frozenset()
        self._stalls = watch_steps(world, self._saves)
        self._hosts = SlowHosts(world.device, world.control, world.hosts, settings.arguments.host_check_seconds)

    def resume(self) -> None:
        """Continues from the newest state of the run, or begins if there is none."""
        record = self._saves.resume()
        if record is None:
            self.backend.begin()
            return
        self.step = int(record["step"])
        for difference in self._continuation.take(record):
            if self.world.rank == 0:
                print(f"continuing from another run with a difference: {difference}", flush=True)

    def train(self) -> int:
        """Trains until the last step or an early exit; returns the exit code."""
        training = self.settings.training
        self._clock.begin()
        if self.step < training.steps:
            self.world.announce("compile" if self._compiles else "first-step", begin=True)
        while self.step < training.steps:
            began = time.monotonic()
            self._one_step()
            wanted = self.settings.arguments.minimum_step_seconds - (time.monotonic() - began)
            if wanted > 0:
                with self._clock.stopped():
                    time.sleep(wanted)
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
        if self._evaluated_step != self.step:
            self._evaluate_model()
        return 0

    def _save(self, wait: bool) -> None:
        # A checkpoint must contain only steps with finite results.
        self._read_steps()
        with self._stalls.still, self._clock.stopped():
            self._saves.save(self._continuation.facts(self.step), wait)
            self._stalls.go_on()

    def export(self, folder: Path, imported: Path | None = None) -> None:
        """Exports the weights in published format, and the adapter, as requested. `imported`: folder of the initial weights."""
        settings, world, end = self.settings, self.world, self.batches.end_of_turn
        world.announce("save", begin=True)
        if settings.arguments.export_weights:
            export_weights(self.backend.whole_tensors(), self.backend.shapes, folder, settings.training, world.rank, settings.architecture)
            if world.rank == 0:
                write_config(folder, settings.architecture, settings.training.sequence_length, imported, settings.training.precision, end)
        if settings.arguments.export_adapter:
            export_adapter(self.backend.whole_tensors(), self.backend.shapes, folder, settings, world.rank)
        world.announce("save", begin=False)

    def _between_steps(self) -> int | None:
        """Handles requests and saves between steps. Returns the exit code if the run must exit before its last step."""
        with self._stalls.still:
            self._saves.collect()
            facts = self._continuation.facts(self.step)
            self._saves.after_step(self._newest_requests, self.step - len(self._launched), facts, self._step_seconds)
        if self._requests:
            # The launched steps contain the same requests again, because these were not handled yet.
            self._read_steps()
        requests, self._requests = self._requests, frozenset()
        self.world.timeouts.tighten(self._step_seconds)
        if "check_hosts" in requests:
            self._hosts.compare(self._step_seconds)
        if self.step >= self.settings.training.steps:
            return None
        every = self.settings.arguments.eval_every_steps
        if every and self.step % every == 0:
            self._evaluate_model()
        if requests & {"leave", "hand_over"}:
            self._save(wait=True)
            return exits.TRY_AGAIN if "leave" in requests else exits.HAND_OVER
        is_now = self._saves.lacks_copy(self.step) or self._saves.due_at(self.step)
        if is_now or ("save" in requests and not self._saves.save_next_copy(self.step)):
            self._save(wait=False)
        return None

    def _own_requests(self) -> dict[str, bool]:
        """The requests of this rank with the current step. Only rank 0 checks the time for saves and host comparisons."""
        first = self.world.rank == 0
        return {
            "leave": self._departure.requested,
            "hand_over": self._departure.due(self._step_seconds, self._saves.seconds),
            "save": first and self._saves.due,
            "check_hosts": first and self._hosts.due,
            **self._saves.requests(self.step + 1),
        }

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
        self._stalls.computes = True
        loss, data_seconds = self._accumulate()
        self._hosts.waited(data_seconds)
        self.world.end("compile", then="first-step")
        norm = self.backend.clip(arguments.clip_norm)
        pending = self._tallies.ask(loss, norm, self._own_requests(), self._experts.take() if self._experts else None, self._tokens)
        with self._stalls.still, self._saves.updating(self._continuation.facts(self.step + 1)):
            step_unless(self.backend.optimizer, self._tallies.bad)
            if self._experts and pending.loads_YX is not None:
                self._experts.move_bias(pending.loads_YX, self._tallies.bad)
            self.backend.optimizer.zero_grad()
            self.step += 1
        self._stalls.computes = False
        seconds = self._clock.lap() if pending.is_over else None
        self._launched.append(Launched(self.step, pending, rate, data_seconds, seconds))

    def _read_steps(self, leave: int = 0) -> None:
        """Reads the results of launched steps except the newest `leave`. Raises LossFailed."""
        while len(self._launched) > leave:
            launched = self._launched.popleft()
            self._stalls.computes = True
            found = launched.pending.read()
            self._stalls.computes = False
            self._step_seconds = self._clock.lap() if launched.seconds is None else launched.seconds
            self.world.end("first-step")
            self._results.take(launched, found, self._step_seconds)
            self._requests, self._newest_requests = self._requests | (found.requests & REQUESTS), found.requests
            if self._saves.watches:
                self._stalls.ended()

    def _accumulate(self) -> tuple[Tensor, float]:
        """Computes the gradients of one global batch. Returns this rank's part of its loss, whose mean over the ranks is the loss, and the
        seconds spent waiting for data."""
        self._waited, self._tokens = 0.0, 0.0
        batches = self._micro_batches(batch_of(self.settings.training.skips, self.step))
        count, share = self.batches.micro_steps, 1.0 / self.batches.micro_steps
        if self.settings.training.counts_targets:
            # Micro-batches differ in their number of targets, so the total must be known before the first backward pass.
            held = list(batches)
            batches, share = iter(held), self.world.ranks / self._targets(held)
        total = torch.zeros((), device=self.world.device)
        for number, batch in enumerate(batches):
            total += self.backend.forward_backward(batch, share, last=number == count - 1) * share
        return total, self._waited

    def _micro_batches(self, batch: int) -> Iterator[MicroBatch]:
        for micro_step in range(self.batches.micro_steps):
            began, self._stalls.computes = time.monotonic(), False
            found = self._data.micro_batch(batch, micro_step, self.world.device)
            self._waited, self._stalls.computes = self._waited + time.monotonic() - began, True
            self._tokens = self._tokens + found.tokens * (self.backend.layout.data_ranks / self.world.ranks)
            yield found

    def _targets(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Number of targets of these micro-batches over all ranks, on the device. Ranks of a tensor parallel group count the same targets,
        as they do for the loss; ranks of a context parallel group count their part."""
        total = torch.stack([(batch.targets_BL != IGNORED).sum() for batch in batches]).sum().float() / self.backend.layout.context
        dist.all_reduce(total)
        return total.clamp(min=1.0)

    def _evaluate_model(self) -> None:
        """Evaluates the loss on the evaluation channel and prints sample generations."""
        self._evaluated_step = self.step
        if self._evaluation is None and self._samples is None:
            return
        self._read_steps()
        with self._clock.stopped():
            self.world.announce("eval", begin=True)
            self._stalls.go_on()
            if self._evaluation is not None:
                loss = evaluation_loss(self.backend, self._evaluation, self.settings, self.world, self._stalls.go_on)
                if self.world.rank == 0:
                    progress.emit("eval", step=self.step, loss=loss)
                    log_all(self._trackers, self.step, {"evalLoss": loss})
            if self._samples is not None:
                self._samples.emit(self.step)
            self._stalls.go_on()
            self.world.announce("eval", begin=False)

    def fail(self, code: int) -> None:
        """Ends the trackers with the exit code of a failed rank; does not release other resources."""
        close_failed(self._trackers, code)

    def close(self, code: int = 0) -> None:
        """Closes data loading, saves, backend and finally the trackers with the exit code: a server must not delay a save."""
        for part in (self._garbage, self._data, self._stalls, self._trace, self._saves, self.backend):
            if part is not None:
                part.close()
        for tracker in self._trackers:
            tracker.close(code)
