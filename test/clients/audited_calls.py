"""What the Python client does when the launcher's alias may not be invoked: prints each alias that it asks, and how the call ended.

audited_calls.py DESCRIPTOR
"""

import io
import json
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients/python/src"))


class ClientError(Exception):
    """As botocore has it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


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


class Lambda:
    """Denies every alias of control."""

    def __init__(self, code: str) -> None:
        self.code = code

    def invoke(self, FunctionName: str, Payload: bytes) -> dict:
        print(FunctionName.split(":function:")[1], json.loads(Payload)["action"])
        if FunctionName.split(":function:")[1].startswith("control"):
            raise ClientError(self.code)
        return {"Payload": io.BytesIO(json.dumps({"ok": True, "runs": []}).encode())}


class Session:
    def __init__(self, code: str) -> None:
        self.code = code

    def client(self, service: str, region_name: str) -> Lambda:
        return Lambda(self.code)


def tried(call) -> None:
    try:
        call()
        print("answered")
    except slipway.ServiceError as error:
        print("failed", "AccessDeniedException" in str(error) or "Throttling" in str(error))


if __name__ == "__main__":
    env = slipway.Environment(sys.argv[1], region="us-west-2", session=Session("AccessDeniedException"))
    tried(env.run("a-261121120000").stop)
    tried(env.runs)
    tried(env.runs)
    tried(env.run("a-261121120000").stop)
    throttled = slipway.Environment(sys.argv[1], region="us-west-2", session=Session("Throttling"))
    tried(throttled.runs)
