"""GPU hosts train, CPU hosts prepare their batches: a heterogeneous cluster with plain DDP.

torchrun starts only on the groups of `distribution.instanceGroups`; each host of another group runs this script once. The hosts of group
`--feeders` read their part of channel `raw` (text, ShardedByS3Key) and serve batches of bytes over HTTP. A batch depends only on step and
rank, so a resumed run gets the same batches as an uninterrupted run. More expensive work (decoding, augmentation) belongs in `prepare`;
ddp.py in this folder trains. Only the job's hosts can reach the port: the security group blocks all others.
"""

import argparse
import http.client
import http.server
import json
import os
import threading
import time
from pathlib import Path

import numpy as np


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
    """Serves `GET /STEP/RANK` until a client reports with DELETE that training has ended."""
    files = sorted(path for path in Path(os.environ["SM_CHANNEL_RAW"]).rglob("*") if path.is_file())
    text = np.frombuffer(b"".join(path.read_bytes() for path in files), dtype=np.uint8)
    if len(text) <= args.sequence_length:
        raise SystemExit(f"channel raw: must contain more than {args.sequence_length} bytes on each feeder, got {len(text)}")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # Keeps the connection of a rank open.

        def answer(self, body=b""):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            _, step, rank = self.path.split("/")
            self.answer(prepare(text, args, int(step), int(rank)).tobytes())

        def do_DELETE(self):
            self.answer()
            threading.Thread(target=server.shutdown).start()

        def log_message(self, *_):
            """Requests are not logged."""

    server = http.server.ThreadingHTTPServer((os.environ.get("SLIPWAY_BIND_ADDRESS", ""), args.feed_port), Handler)
    server.serve_forever()


def connect(host, port):
    """Connects to a feeder, with retries because it may still be reading its files."""
    address = json.loads(os.environ.get("SLIPWAY_HOSTS", "{}")).get(host, host)
    connection, deadline = http.client.HTTPConnection(address, port, timeout=900), time.monotonic() + 900
    while True:
        try:
            connection.connect()
            return connection
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
            self.connection.request("GET", f"/{self.step}/{self.rank}")
            self.step += 1

    def next(self):
        data = self.connection.getresponse().read()
        self.ask()
        return np.frombuffer(data, dtype=np.uint8).reshape(-1, self.args.sequence_length + 1).astype(np.int64)


def dismiss(feeders, port):
    """Tells the feeders that training has ended."""
    for feeder in feeders:
        connection = connect(feeder, port)
        connection.request("DELETE", "/")
        connection.getresponse().read()


def main():
    args = arguments()
    if os.environ["SM_CURRENT_INSTANCE_GROUP"] == args.feeders:
        feed(args)
    else:
        from ddp import train  # The feeders do not need PyTorch.

        train(args, json.loads(os.environ["SM_INSTANCE_GROUPS_DICT"])[args.feeders]["hosts"])


if __name__ == "__main__":
    main()
