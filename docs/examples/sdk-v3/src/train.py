"""Gradient descent on a small least-squares problem, so that the learning rate decides what comes of it."""

import argparse
import time

POINTS = [(x / 10, 3 * x / 10 + 1) for x in range(10)]
STEPS = 60


def main() -> None:
    """Prints the loss of every step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    rate = parser.parse_args().lr
    slope = offset = 0.0
    for step in range(1, STEPS + 1):
        errors = [(slope * x + offset - y, x) for x, y in POINTS]
        loss = sum(error * error for error, _ in errors) / len(POINTS)
        print(f"step={step} loss={loss:.5f}", flush=True)
        slope -= rate * sum(2 * error * x for error, x in errors) / len(POINTS)
        offset -= rate * sum(2 * error for error, _ in errors) / len(POINTS)
        # An observation of a run is a heartbeat a minute: a sweep that stops its losers needs runs of several minutes.
        time.sleep(4)


if __name__ == "__main__":
    main()
