"""Laws of the pairing of losses with steps: a loss is never shown at a step that it was not logged at."""

import os
import random
import sys
from collections.abc import Iterator

import pytest

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.output_lines import Lines, passed_on
from slipway_driver.progress import FoundSteps, ProgressReader, parse_event
from slipway_driver.rank_output import RankOutput, Writer

Pairs = list[tuple[int, float | None]]


def dice_of(draw: int) -> random.Random:
    return random.Random(f"{os.environ['SLIPWAY_TEST_SEED']} {draw}")


def pairs_in(lines: list[str], reader: ProgressReader, steps: FoundSteps, times: list[float]) -> Pairs:
    """The steps with their losses that the driver prints. `times`: when it reads each line."""
    said: list[str] = []
    for line, now in zip(lines, times, strict=True):
        event = reader.read(line)
        said += steps.feed(line, event, now=now) if event else []
    events = [parse_event(line)[0] or {} for line in [*said, *steps.end()]]
    return [(event["step"], event.get("loss")) for event in events]


class Stream:
    """Stands for stdout or stderr: notes what is written, in the order of both streams."""

    def __init__(self, name: str, written: list[tuple[str, bytes]]) -> None:
        self.name, self.written = name, written

    def write(self, text: str) -> None:
        self.written += [(self.name, text.encode())] if text else []

    def flush(self) -> None:
        pass


def trained(dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, bytes]], Pairs]:
    """What the Trainer of transformers writes between a resume and its end, with the real tqdm on a clock of its own, and its losses."""
    tqdm = pytest.importorskip("tqdm").std.tqdm
    written: list[tuple[str, bytes]] = []
    clock = [1000.0]
    with monkeypatch.context() as patched:
        patched.setattr("tqdm.std.time", lambda: clock[0])
        patched.setattr(tqdm, "monitor_interval", 0)
        patched.setattr(sys, "stdout", Stream("out", written))
        patched.setattr(sys, "stderr", Stream("err", written))
        prints = dice.random() < 0.3
        resumed, logs, evaluates = dice.choice([0, 1, 20, 700]), dice.choice([1, 5, 10]), dice.choice([3, 10, 10**9])
        total = resumed + 12 * logs
        bar, seconds, losses = tqdm(total=total), dice.choice([0.001, 0.03, 0.3, 8.0]), []
        for step in range(resumed + 1, total + 1):
            clock[0] += seconds * dice.uniform(0.8, 1.2)
            bar.update(step - bar.n)
            if step % logs == 0:
                losses.append((step, round(1 + dice.random() / dice.choice([1, 200]), 3)))
                tqdm.write(str({"loss": losses[-1][1], "grad_norm": 1.5, "epoch": 0.1}))
                if prints:  # A callback of the script shows it again, below the bar.
                    sys.stdout.write(str({"loss": losses[-1][1] + 1e-5}) + "\n")
            if step % evaluates == 0:
                tqdm.write(str({"eval_loss": 7.0, "eval_runtime": 2.0}))
        bar.close()
    return written, losses


def as_read(dice: random.Random, written: list[tuple[str, bytes]], most: int) -> list[str]:
    """The lines as the driver reads them: parts of stderr of at most `most` writes, before each what was written to stdout until then, and
    perhaps some writes more, so that stdout is at most one line ahead, whose bar is not drawn yet."""
    streams, at = {"out": Lines(), "err": Lines()}, {"out": 0, "err": 0}
    ends = [place for place, (name, data) in enumerate(written) if name == "out" and data.endswith(b"\n")]

    def take(name: str, end: int) -> Iterator[str]:
        part = b"".join(data for stream, data in written[at[name] : end] if stream == name)
        at[name] = max(at[name], end)
        yield from (text for text, _ in streams[name].feed(part))

    lines: list[str] = []
    while at["err"] < len(written):
        limit = max(at["err"] + 1, [*(end for end in ends if end + 2 >= at["err"]), len(written), len(written)][1])
        end = min(limit, at["err"] + dice.randint(1, most))
        # A return ends a state that was read before, and comes before what is on stdout now.
        if written[at["err"]][0] == "err" and written[at["err"]][1].startswith(b"\r"):
            lines += [text for text, _ in streams["err"].feed(b"\r")]
            written = [*written[: at["err"]], ("err", written[at["err"]][1][1:]), *written[at["err"] + 1 :]]
        lines += take("out", min(limit, end + dice.randrange(most)))
        lines += take("err", end)
    return lines


@pytest.mark.parametrize("name", ["auto", "transformers"])
@pytest.mark.parametrize("draw", range(50))
def test_a_loss_of_a_trainer_with_a_bar_has_its_step_wherever_it_is_resumed(draw: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = dice_of(draw)
    written, losses = trained(dice, monkeypatch)
    most = dice.choice([1, 1, 2, 9])
    lines = as_read(dice, written, most)
    found = pairs_in(lines, ProgressReader(None, None, name), FoundSteps(True), [0.0] * len(lines))
    # The first one decides the format; where much is read at once, bars do not yet show how they are drawn.
    left_out = int(most > 1)
    paired = [pair for pair in found if pair[1] is not None][left_out:]
    paired = [(step, round(loss or 0, 3)) for step, loss in paired]
    assert set(paired) <= set(losses), lines
    assert paired == losses[left_out:] or (most > 1 and len(paired) > len(losses) / 2), lines
    assert [step for step, _ in found] == sorted(step for step, _ in found)


def read_together(stdout: bytes, stderr: bytes) -> list[str]:
    """The lines and states that are passed on where both streams wait when the driver comes to read them."""
    pipes = {name: os.pipe() for name in ("out", "err", "passed")}
    writer = Writer(pipes["passed"][1])
    out, err = (os.fdopen(pipes[name][0], "rb") for name in ("out", "err"))
    first = RankOutput(out, 0, ErrorCollector(), writer)
    second = RankOutput(err, 0, ErrorCollector(), writer, first)
    os.write(pipes["out"][1], stdout)
    os.write(pipes["err"][1], stderr)
    assert second.read_waiting()
    assert first.read_waiting() is None
    writer.close()
    os.close(pipes["passed"][1])
    with os.fdopen(pipes["passed"][0], "rb") as passed:
        found = [line.removeprefix("[rank 0] ") for line, _ in passed_on(passed)]
    for name in ("out", "err"):
        os.close(pipes[name][1])
    out.close()
    err.close()
    return found


def test_what_a_rank_wrote_to_stdout_is_read_before_what_it_then_wrote_to_stderr() -> None:
    bar = " 25%|##  | 10/40 [00:01<00:03]"
    assert read_together(b"{'loss': 2.5}\n", b"\r%s\n" % bar.encode()) == ["{'loss': 2.5}", bar]


@pytest.mark.parametrize("resumed", [0, 20])
def test_the_first_loss_after_a_start_is_not_that_of_a_bar_that_was_drawn_before(resumed: int) -> None:
    bar = "\r 50%%|##  | %d/40 [00:01<00:03]"
    erased = "\r" + " " * 30 + "\r"
    stderr = "".join([bar % resumed, bar % (resumed + 1), erased, (bar % (resumed + 5))[1:], "\n"])
    lines = read_together(b"{'loss': 2.5}\n", stderr.encode())
    found = pairs_in(lines, ProgressReader(None, None), FoundSteps(True), [0.0] * len(lines))
    assert found[-1] == (resumed + 5, 2.5) and [loss for _, loss in found[:-1]] == [None] * (len(found) - 1), lines


def printed(dice: random.Random) -> tuple[list[tuple[float, str]], Pairs]:
    """What a script with a loop of its own prints on lines of their own, each with its time, and its losses."""
    order = dice.choice(["after", "before", "at the end"])
    every, seconds, validates = dice.choice([1, 1, 5]), dice.choice([0.02, 1.0, 60.0]), dice.choice([10, 35, 10**9])
    copies, resumed = dice.choice([1, 1, 2]), dice.choice([0, 300])
    said: list[tuple[float, str]] = []
    losses: Pairs = []
    if resumed and order != "at the end":
        said.append((-dice.uniform(1.2, 9) * seconds, "resumed, loss=9.5"))
    for step in range(resumed + 1, resumed + 40):
        now = step * seconds - (resumed + 1) * seconds
        lines = [f"step={step}"]
        late = 0.0
        if step % every == 0 or order == "before":
            losses.append((step, round(1 + dice.random(), 5)))
            lines.insert(0 if order == "before" else 1, f"loss={losses[-1][1]}")
            late = seconds * (0.9 if order == "at the end" else dice.uniform(0, 0.2))
        lines = [line for line in lines for _ in range(copies)] if dice.random() < 0.5 else lines * copies
        said += [(now + late * place / len(lines), line) for place, line in enumerate(lines)]
        if step % validates == 0:
            said.append((now + 0.95 * seconds, "validation, loss=8.5"))
    # What waits in a buffer comes at once; the order is known by then.
    held = dice.choice([1, 1, 30])
    times = [
        said[min(len(said) - 1, place // held * held + held - 1)][0] if place > 5 * copies else said[place][0] for place in range(len(said))
    ]
    return [(time, line) for time, (_, line) in zip(times, said, strict=True)], losses


@pytest.mark.parametrize("draw", range(100))
def test_a_loss_on_a_line_of_its_own_has_its_step_whatever_else_is_printed(draw: int) -> None:
    said, losses = printed(dice_of(draw))
    reader, steps = ProgressReader(r"step=(\d+)", r"loss=([\d.]+)"), FoundSteps(True)
    found = pairs_in([line for _, line in said], reader, steps, [time for time, _ in said])
    assert [pair for pair in found if pair[1] is not None] == losses, said
    assert [step for step, _ in found] == sorted({step for step, _ in found}), said
