"""Laws of the reading of output: however a stream is cut and whatever it contains, the steps are those of the clean stream."""

import io
import os
import random
import re
import threading

import pytest

from slipway_driver.error_collector import ErrorCollector
from slipway_driver.output_lines import LINE, LONGEST_LINE, SHOWN, STATE, Lines, passed_on
from slipway_driver.progress import ProgressReader
from slipway_driver.rank_output import BURST_LINES, RankOutput, Writer

STEP = r"step (\d+)"
#: Ends of a state of a redrawn line, and of a line.
REDRAWN = [b"\r", b"\r\r", b"\x1b[G", b"\r\x1b[K", b"\x1b[2K\r", b"\b" * 9, b"\x1b[8D", b"\x1b[1A", b"\x1b[s\x1b[u"]
ENDS = [b"\n", b"\r\n", b"\r\r\n", b"\v", b"\f\n"]
#: What a program may print around a step without changing it.
TEXT = [b"", b" 10%|##", b"x" * 300, b"\xe2\x96\x88" * 4, b"\xff\xfe", b"\xf0\x9f", b"\x00\x01"]
NOISE = [*TEXT, b"\x1b[31m", b"\x1b[0m", b"\x1b]0;title\x07", b"\x1b[?25l"]


def cut(dice: random.Random, data: bytes) -> list[bytes]:
    """The data in parts of random sizes."""
    parts, at = [], 0
    while at < len(data):
        size = dice.choice([1, 2, 3, 7, 64, 1000, 1 << 16])
        parts.append(data[at : at + size])
        at += size
    return parts


def stream(dice: random.Random, steps: range) -> bytes:
    """Output with the steps, as bars and lines among noise."""
    data = b""
    for step in steps:
        data += dice.choice(NOISE) + b" step %d" % step + b" of 9" + dice.choice(NOISE) + dice.choice(REDRAWN + ENDS)
        if dice.random() < 0.2:
            data += dice.choice(NOISE) + dice.choice(ENDS)
    return data


class Driver:
    """Reads what a RankOutput passes on, as the driver does. `waiting`: what the rank has written before it is read."""

    def __init__(self, parts: list[bytes], waiting: bytes = b"") -> None:
        ends, passed = os.pipe(), os.pipe()
        self.errors = ErrorCollector()
        writer = Writer(passed[1])
        output = RankOutput(os.fdopen(ends[0], "rb"), None, self.errors, writer)
        os.write(ends[1], waiting)
        output.start()
        self.seen: list[tuple[str, str]] = []
        reader = threading.Thread(target=lambda: self.seen.extend(passed_on(os.fdopen(passed[0], "rb"))))
        reader.start()
        for part in parts:
            while part:
                part = part[os.write(ends[1], part) :]
        os.close(ends[1])
        output.join(60)
        assert not output.is_alive(), "the reader did not end"
        writer.close()
        os.close(passed[1])
        reader.join(60)

    @property
    def steps(self) -> list[int]:
        reader = ProgressReader(STEP)
        events = [reader.read(line) for line, kind in self.seen if kind != SHOWN]
        return [event["step"] for event in events if event]

    @property
    def logged(self) -> list[str]:
        return [line for line, kind in self.seen if kind != STATE]


def test_the_steps_of_a_stream_are_those_of_the_clean_one_however_it_is_cut(plays_all: bool) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(200 if plays_all else 40):
        steps = range(1, dice.randint(2, 200))
        data = stream(dice, steps)
        found = Driver(cut(dice, data))
        assert found.steps == list(steps), data
        assert len(found.logged) <= data.count(b"\n") + data.count(b"\v") + data.count(b"\f") + 5
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", "".join(found.logged))


def test_any_bytes_are_read_to_their_end_and_the_log_is_bounded() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(10):
        data = dice.randbytes(dice.randint(0, 300_000))
        found = Driver([*cut(dice, data), b"\nstep 7\n"])
        assert found.steps[-1:] == [7]
        assert len(found.logged) <= BURST_LINES + 200


def test_lines_do_not_depend_on_how_they_were_cut() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(300):
        data = b"".join(dice.choice([*NOISE, *REDRAWN, *ENDS, b"a", b"\x1b", b"[", b"2", b"A"]) for _ in range(dice.randint(0, 60)))

        def text(parts: list[bytes]) -> tuple[str, str]:
            lines = Lines()
            found = [piece for part in parts for piece in lines.feed(part)]
            return "".join(line for line, _ in found), lines.rest

        assert text([data]) == text(cut(dice, data)) == text([data[at : at + 1] for at in range(len(data))]), data


@pytest.mark.parametrize("size", [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 10_000_000])
def test_a_line_without_an_end_is_passed_on_in_parts(size: int) -> None:
    found = Driver([b"y" * size, b"\nstep 3\n"])
    assert found.steps == [3]
    assert max(map(len, found.logged)) <= LONGEST_LINE
    logged = sum(line.count("y") for line in found.logged)
    assert logged >= min(size, LONGEST_LINE) or any("lines dropped" in line for line in found.logged)


def test_a_flood_is_bounded_in_the_log_and_its_last_state_is_read() -> None:
    bar = b"".join(b"\r step %d" % step for step in range(200_000))
    found = Driver([bar + b"\n"])
    assert found.steps[-1] == 199_999 and found.steps == sorted(found.steps)
    assert len(found.logged) < 10
    found = Driver([b"noise\n" * 200_000])
    assert len(found.logged) < BURST_LINES + 500
    assert any("lines dropped" in line for line in found.logged)


def test_a_rank_is_never_blocked_by_a_driver_that_does_not_read() -> None:
    ends, passed = os.pipe(), os.pipe()
    output = RankOutput(os.fdopen(ends[0], "rb"), None, ErrorCollector(), Writer(passed[1]))
    output.start()
    line = b"slipway {" + b"x" * 8000 + b"\n"
    for _ in range(4000):
        os.write(ends[1], line)
    os.close(ends[1])
    output.join(60)
    assert not output.is_alive()


def test_only_the_end_is_processed_of_output_that_nearly_fills_the_pipe() -> None:
    lines = ["step %d and more text" % step for step in range(40_000)]
    found = Driver([], waiting="\n".join([*lines, ""]).encode())
    assert found.steps == list(range(40_000 - len(found.steps), 40_000)) and len(found.steps) < 4000
    assert any("lines dropped" in line for line in found.logged)


@pytest.mark.parametrize(
    ("data", "logged"),
    [
        (b"\r 1\r 2\r 3\n", [" 3"]),
        (b"\r 1\r 2\r 3", [" 3"]),
        (b"\r 1\r 2\r 3\ndone\n", [" 3", "done"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n\nend\n", ["", "", "end"]),
        # Two bars of tqdm: the lower one is drawn by moving down and up again.
        (b"\n\rinner 1\x1b[A\router 1\n\rinner 2\x1b[A\router 2\n\rinner 3\x1b[A", ["", "inner 3"]),
        # grep and compilers print the erasing sequence after each color.
        (b"\x1b[01;31m\x1b[Kerror:\x1b[m\x1b[K no such file\n", ["error: no such file"]),
    ],
)
def test_a_redrawn_line_is_one_line_of_the_log(data: bytes, logged: list[str]) -> None:
    assert Driver([data]).logged == logged


def test_an_error_behind_a_bar_is_found() -> None:
    text = b'\r 50%|##  | 1/2Traceback (most recent call last):\r\n  File "a.py", line 1\r\nValueError: odd\r\n'
    found = Driver([text])
    assert (found.errors.summary, found.errors.unhandled) == ("ValueError: odd", "ValueError: odd")


def test_what_the_launcher_prints_itself_is_read_as_lines() -> None:
    source = io.BufferedReader(io.BytesIO(b"torchrun\r\nbar\rshown\v\xff\nlast"))  # type: ignore[arg-type]
    assert list(passed_on(source)) == [("torchrun", LINE), ("bar", STATE), ("shown", SHOWN), ("\ufffd", LINE), ("last", LINE)]
