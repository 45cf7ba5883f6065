"""What the Python client asks of control, one request of JSON a line; the answers are the least that it needs. No boto3 is needed.

    record_calls.py DESCRIPTOR RUN_FILE
"""

import datetime
import io
import json
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients/python/src"))


class ClientError(Exception):
    """One that says nothing more than its words, as botocore's own does in `response`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code, "Message": ""}}


#: What the client takes from boto3 and botocore by name.
NAMES = {
    "boto3": {},
    "boto3.session": {"Session": object},
    "botocore": {},
    "botocore.exceptions": {"BotoCoreError": OSError, "ClientError": ClientError},
}
for name, members in NAMES.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)
sys.modules["boto3"].session = sys.modules["boto3.session"]

import slipway  # noqa: E402
from slipway._checkpoints import checkpoint_origin  # noqa: E402,F401

RUN = {
    "runId": "a-261121120000",
    "state": "completed",
    "attempts": [{}, {"number": 5}],
    "configuration": {"spec": {}, "codeSha256": None, "driverHash": "d", "trainingImageUri": None},
}
ANSWERS = {"validate": {"isValid": True, "issues": [], "codeSource": "builtin"}, "start": {"runId": RUN["runId"], "uploads": []}, "status": RUN,
           "list": {"runs": [RUN]}, "note": {"note": "x"}, "logs": {"events": []}, "events": {"events": [], "next": None}}  # fmt: skip


class Lambda:
    def invoke(self, FunctionName: str, Payload: bytes) -> dict:
        request = json.loads(Payload)
        print(json.dumps(request))
        return {"Payload": io.BytesIO(json.dumps({"ok": True, **ANSWERS.get(request["action"], {})}).encode())}


class Session:
    def client(self, service: str, region_name: str) -> Lambda:
        return Lambda()


if __name__ == "__main__":
    env = slipway.Environment(sys.argv[1], region="us-west-2", session=Session())
    env.launch(sys.argv[2], set={"training.steps": 5}, run_id="r", client_request_id="c", note="best rate", after=["latest:base"],
               preemptible=True, accept_unknown_price=True, at=datetime.datetime(2027, 1, 2, tzinfo=datetime.timezone.utc))  # fmt: skip
    env.runs(states=["running", "queued"], tags=["matrix=x", "project"], search="rate")
    run = env.run("a-261121120000")
    run.note("half of it")
    run.configuration()
    list(run.logs(host=2, since=datetime.datetime(2026, 11, 22, tzinfo=datetime.timezone.utc)))
    run.stop()
    run.resume()
    run.release()
