"""Puts MiniStack's S3 and SQS on the clock of the test. Python imports this file by itself, before MiniStack.

Times that S3 and SQS tell and compare are ahead by what SLIPWAY_TEST_CLOCK says, in milliseconds; everything else, time-outs above all, stays
with the clock of the machine.
"""

import datetime
import os
import sys
import time

AHEAD = ("ministack.services.s3", "ministack.services.sqs")
real_time = time.time


def ahead() -> float:
    with open(os.environ["SLIPWAY_TEST_CLOCK"], encoding="ascii") as file:
        return float(file.read() or 0) / 1000


def test_time() -> float:
    caller = sys._getframe(1).f_globals.get("__name__")
    return real_time() + (ahead() if caller in AHEAD else 0)


if "SLIPWAY_TEST_CLOCK" in os.environ and "GATEWAY_PORT" in os.environ:
    time.time = test_time
    from ministack.core import responses

    def now_iso() -> str:
        now = datetime.datetime.fromtimestamp(real_time() + ahead(), datetime.timezone.utc)
        return now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    # S3 takes its own copy of the name: it is set before S3 is imported, and only S3 and few others have it.
    responses.now_iso = now_iso
