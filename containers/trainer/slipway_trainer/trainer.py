"""The training loop: steps, saves, and the ways to leave."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slipway_trainer import exits, progress
from slipway_trainer.backend import Backend
from slipway_trainer.batches import Batches, channel_folder
from slipway_trainer.continuation import Continuation
from slipway_trainer.departure import Departure
from slipway_trainer.garbage import ScheduledCollection
from slipway_trainer.optimizer import set_learning_rate
from slipway_trainer.prefetch import Prefetch
from slipway_trainer.profiling import open_trace, place_of
from slipway_trainer.published_config import write_config
from slipway_trainer.saves import Saves
from slipway_trainer.schedule import learning_rate, warmup_steps
from slipway_trainer.settings import RunSettings
from slipway_trainer.skips import batch_of
from slipway_trainer.slow_hosts import SlowHosts
from slipway_trainer.stalls import PATIENCE, Ballot, StallWatch
from slipway_trainer.step_clock import StepClock
from slipway_trainer.tally import tally
from slipway_trainer.trackers import log_all, open_trackers
from slipway_trainer.weights import export_weights
from slipway_trainer.world import World

RECENT_LOSSES = 50


class Trainer:
    """One run on one rank."""

    def __init__(self, settings: RunSettings, world: World, backend: Backend, environ: Mapping[str, str]) -> None:
        self.settings, self.world, self.backend = settings, world, backend
        training = settings.training
        vocabulary = settings.architecture.vocabulary_size
        ranks = backend.layout.data_ranks
        folder = channel_folder(settings.arguments.data_channel, dict(environ))
        self.batches = Batches(folder, training, vocabulary, backend.data_rank, ranks)
        self._evaluation = self._eval_batches(environ)
        self._evaluated_step: int | None = None
        self.step = 0
        self._data = Prefetch(self.batches, pinned=world.device.type == "cuda")
        self._continuation = Continuation(settings, self.batches)
        self._warmup = warmup_steps(settings.arguments.warmup_steps, training.steps)
        self._departure = Departure(settings.deadline, settings.hand_over_file)
        self._departure.listen()
        self._saves = Saves(settings, world, backend)
        self._trackers = open_trackers(settings.arguments, settings.run_id, world.rank, environ)
        place = place_of(settings.job.get("heartbeatUri"), settings.attempt, environ)
        self._trace = open_trace(settings.arguments, world.rank, world.device, place)
        self._recent: list[float] = []
        self._step_seconds = 0.0
        self._clock = StepClock()
        #: What any rank asked for with the last step.
        self._wishes: frozenset[str] = frozenset()
        self._garbage = ScheduledCollection()
        self._stalls = StallWatch(self._saves, Ballot(world.store, world.ranks), self._patience)
        self._hosts = SlowHosts(world.device, world.control, world.hosts, settings.arguments.host_check_seconds)

    def _patience(self) -> float:
        """Seconds without the end of a step after which its beginning is worth a checkpoint."""
        return math.inf if self.world.in_phase else PATIENCE * self.world.timeouts.seconds

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
            self._step_seconds = time.monotonic() - began
            self._garbage.after_step(self.step)
            if self._trace:
                self._trace.after_step(self.step)
            code = self._between_steps(self._step_seconds)
            if code is not None:
                return code
        self._stalls.close()
        if self._saves.newest_step != self.step:
            self._save(wait=True)
        if self._evaluation is not None and self._evaluated_step != self.step:
            self.evaluate()
        return 0

    def _save(self, wait: bool) -> None:
        with self._stalls.still, self._clock.stopped():
            self._saves.save(self._facts(), wait)
            self._stalls.go_on()

    def export(self, folder: Path) -> None:
        """Writes the weights in published form."""
        self.world.announce("save", begin=True)
        export_weights(
            self.backend.whole_tensors(), self.backend.shapes, folder, self.settings.training, self.world.rank, self.settings.architecture
        )
        if self.world.rank == 0:
            write_config(folder, self.settings.architecture, self.settings.training.sequence_length)
        self.world.announce("save", begin=False)

    def _between_steps(self, step_seconds: float) -> int | None:
        """Saves when it is time; the exit code when the run must leave before its last step."""
        with self._stalls.still:
            self._saves.collect()
        wishes, self._wishes = self._wishes, frozenset()
        self.world.timeouts.tighten(step_seconds)
        if "check_hosts" in wishes:
            self._compare_hosts(step_seconds)
        if self.step >= self.settings.training.steps:
            return None
        every = self.settings.arguments.eval_every_steps
        if self._evaluation is not None and every and self.step % every == 0:
            with self._clock.stopped():
                self.evaluate()
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
        found = tally(loss, norm, self._own_wishes(), self.world.ranks)
        self._check_loss(found.loss, found.norm)
        self._wishes = found.wishes
        with self._stalls.still:
            self.backend.optimizer.step()
            self.backend.optimizer.zero_grad()
            self.step += 1
            # Both at once: a watch that saw the new state under the old step would vote for what the other ranks do not have.
            if self._saves.stand(self._facts()):
                self._stalls.ended(self.step)
        if self.world.rank == 0 and (self.step % arguments.log_every_steps == 0 or self.step == training.steps):
            self._say_step(found.loss, found.norm, rate, self._clock.seconds(), data_seconds)
        self._clock.begin()

    def _accumulate(self) -> tuple[Tensor, float]:
        """Gradients of one global batch; the mean loss of this rank, and the seconds spent waiting for data."""
        count = self.batches.micro_steps
        total = torch.zeros((), device=self.world.device)
        waited = 0.0
        batch = batch_of(self.settings.training.skips, self.step)
        for micro_step in range(count):
            began = time.monotonic()
            tokens_BL, targets_BL = self._data.micro_batch(batch, micro_step, self.world.device)
            waited += time.monotonic() - began
            total += self.backend.forward_backward(tokens_BL, targets_BL, 1.0 / count, last=micro_step == count - 1)
        return total / count, waited

    def evaluate(self) -> float:
        """Mean loss over the first global batches of the evaluation channel."""
        assert self._evaluation is not None
        self.world.announce("eval", begin=True)
        total = torch.zeros((), device=self.world.device)
        # Whole global batches, each sample once: the same samples whatever the number of ranks.
        whole = self._evaluation.samples // self.settings.training.global_batch_size
        batches = max(1, min(self.settings.arguments.eval_batches, whole))
        count = batches * self._evaluation.micro_steps
        for number in range(count):
            batch, micro_step = divmod(number, self._evaluation.micro_steps)
            total += self.backend.evaluate(*self._evaluation.micro_batch(batch, micro_step, self.world.device))
        mean = self.world.mean(total / count)
        self._evaluated_step = self.step
        if self.world.rank == 0:
            progress.say("eval", step=self.step, loss=mean)
            log_all(self._trackers, self.step, {"evalLoss": mean})
        self._stalls.go_on()
        self.world.announce("eval", begin=False)
        return mean

    def _check_loss(self, loss: float, norm: float) -> None:
        """Before the optimizer step, so that a bad update never reaches a checkpoint."""
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise exits.LossFailed(f"step {self.step + 1}: loss {loss} and gradient norm {norm} must be finite")
        factor = self.settings.arguments.loss_spike_factor
        if factor and len(self._recent) == RECENT_LOSSES and loss > factor * sum(self._recent) / RECENT_LOSSES:
            reason = f"step {self.step + 1}: loss {loss:.4f} is more than {factor} times its recent mean"
            if self.settings.arguments.loss_policy != "alert":
                raise exits.LossFailed(reason)
            if self.world.rank == 0:
                progress.say("loss", step=self.step + 1, reason=reason)
        self._recent = (self._recent + [loss])[-RECENT_LOSSES:]

    def _say_step(self, loss: float, norm: float, rate: float, seconds: float, data_seconds: float) -> None:
        numbers = progress.step_numbers(
            self.settings.architecture, self.settings.training, self.world.ranks, seconds, self.world.device_name
        )
        memory = None
        if self.world.device.type == "cuda":
            memory = round(torch.cuda.max_memory_reserved(self.world.device) / 2**30, 2)
        fields = dict(
            step=self.step,
            loss=loss,
            tokens=self._continuation.tokens(self.step),
            **numbers,
            learningRate=rate,
            gradientNorm=norm,
            dataSeconds=round(data_seconds, 4),
            saveBlockedSeconds=round(self._saves.take_blocked_seconds(), 3),
            memoryGiB=memory,
        )
        progress.say("step", **fields)
        log_all(self._trackers, self.step, fields)

    def _pad_step(self, began: float) -> None:
        wanted = self.settings.arguments.minimum_step_seconds - (time.monotonic() - began)
        if wanted > 0:
            with self._clock.stopped():
                time.sleep(wanted)

    def close(self) -> None:
        self._garbage.close()
        self._data.close()
        self._stalls.close()
        if self._trace:
            self._trace.close()
        for tracker in self._trackers:
            tracker.close()
        self._saves.close()
        self.backend.close()
