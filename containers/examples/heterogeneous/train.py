"""GPU hosts train, CPU hosts prepare their batches: a heterogeneous cluster with plain DDP.

torchrun starts only on the groups of `distribution.instanceGroups`; each host of another group runs this script once. The hosts of group
`--feeders` read their part of channel `raw` (text, ShardedByS3Key) and serve batches of bytes over TCP. A batch depends only on step and
rank, so a resumed run gets the same batches as an uninterrupted run. More expensive work (decoding, augmentation) belongs in `prepare`;
ddp.py in this folder trains. Only the job's hosts can reach the port: the security group blocks all others.
"""

import argparse
import json
import os
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np

REQUEST = struct.Struct("!II")  # step and rank; QUIT instead of a step ends the feeder
QUIT = 0xFFFFFFFF


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--feeders", default="cpu", help="instance group whose hosts prepare batches")
    parser.add_argument("--feed-port", type=int, default=7790)
    parser.add_argument("--backend", default="", help="default: nccl on GPUs, otherwise gloo")
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--save-every", type=int, default=100)
    return parser.parse_args()


def prepare(text, args, step, rank):
    """Returns (batch, sequence + 1) bytes: the work that is moved to the CPU hosts."""
    starts = np.random.default_rng((step, rank)).integers(0, len(text) - args.sequence_length, args.batch_size)
    return np.stack([text[start : start + args.sequence_length + 1] for start in starts])


def feed(args):
    """Serves requests until a client reports that training has ended."""
    files = sorted(path for path in Path(os.environ["SM_CHANNEL_RAW"]).rglob("*") if path.is_file())
    text = np.frombuffer(b"".join(path.read_bytes() for path in files), dtype=np.uint8)
    if len(text) <= args.sequence_length:
        raise SystemExit(f"channel raw: must contain more than {args.sequence_length} bytes on each feeder, got {len(text)}")
    server = socket.create_server((os.environ.get("SLIPWAY_BIND_ADDRESS", ""), args.feed_port))
    server.settimeout(1.0)
    trained = threading.Event()

    def serve(connection):
        with connection:
            while True:
                request = receive(connection, REQUEST.size)
                if len(request) < REQUEST.size:
                    return
                step, rank = REQUEST.unpack(request)
                if step == QUIT:
                    trained.set()
                    return
                connection.sendall(prepare(text, args, step, rank).tobytes())

    while not trained.is_set():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def receive(connection, size):
    """Receives `size` bytes; fewer if the connection is closed."""
    parts, left = [], size
    while left:
        try:
            part = connection.recv(left)
        except ConnectionResetError:
            break
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def connect(host, port):
    """Connects to a feeder, with retries because it may still be reading its files."""
    address = json.loads(os.environ.get("SLIPWAY_HOSTS", "{}")).get(host, host)
    deadline = time.monotonic() + 900
    while True:
        try:
            return socket.create_connection((address, port), timeout=900)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


class Feed:
    """Batches for one rank from its feeder. The next batch is requested before the current one is used."""

    def __init__(self, feeders, args, rank, first_step):
        self.args, self.rank, self.step = args, rank, first_step
        self.connection = connect(feeders[rank % len(feeders)], args.feed_port)
        self.ask()

    def ask(self):
        if self.step <= self.args.max_steps:
            self.connection.sendall(REQUEST.pack(self.step, self.rank))
            self.step += 1

    def next(self):
        shape = (self.args.batch_size, self.args.sequence_length + 1)
        data = receive(self.connection, shape[0] * shape[1])
        if len(data) < shape[0] * shape[1]:
            raise ConnectionError("the connection to the feeder was lost")
        self.ask()
        return np.frombuffer(data, dtype=np.uint8).reshape(shape).astype(np.int64)


def dismiss(feeders, port):
    """Tells the feeders that training has ended."""
    for feeder in feeders:
        with connect(feeder, port) as connection:
            connection.sendall(REQUEST.pack(QUIT, 0))


def main():
    args = arguments()
    if os.environ["SM_CURRENT_INSTANCE_GROUP"] == args.feeders:
        feed(args)
    else:
        from ddp import train  # The feeders do not need PyTorch.

        train(args, json.loads(os.environ["SM_INSTANCE_GROUPS_DICT"])[args.feeders]["hosts"])


if __name__ == "__main__":
    main()
