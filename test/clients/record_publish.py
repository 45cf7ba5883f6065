"""What a publish of the Python client asks of S3, SageMaker and control, one call of JSON a line; the card is answered on stdin.

record_publish.py DESCRIPTOR: each line of stdin is a world and what is asked for there.
"""

import io
import json
import runpy
import sys
import threading
from pathlib import Path

found = runpy.run_path(str(Path(__file__).parent / "record_calls.py"))
ClientError = sys.modules["botocore.exceptions"].ClientError

import slipway  # noqa: E402

world: dict = {}
printing = threading.Lock()


def record(name: str, asked: dict) -> None:
    text = {key: value.decode() if isinstance(value, bytes) else value for key, value in asked.items()}
    with printing:  # Parts are copied by several threads.
        print(json.dumps({"call": name, "input": text}), flush=True)


class Gone(Exception):
    pass


class Service:
    exceptions = type("Exceptions", (), {"NoSuchKey": Gone})

    def __getattr__(self, name: str):
        def called(**asked) -> dict:
            record("".join(part.title() for part in name.split("_")), asked)
            if name in world["fails"]:
                raise ClientError(world["fails"][name])
            answer = getattr(type(self), f"answer_{name}", None)
            return answer(self, **asked) if answer else {"UploadId": "u1", "ModelPackageArn": "arn:package"}

        return called

    def answer_upload_part_copy(self, PartNumber: int, **_) -> dict:
        return {"CopyPartResult": {"ETag": f"e{PartNumber}"}}

    def answer_head_bucket(self, Bucket: str) -> dict:
        return {"BucketRegion": world["regions"].get(Bucket)}

    def answer_describe_training_job(self, TrainingJobName: str) -> dict:
        return world["job"]

    def answer_get_object(self, Bucket: str, Key: str) -> dict:
        text = world["objects"].get(f"s3://{Bucket}/{Key}", {}).get("text")
        if text is None:
            raise Gone
        return {"Body": io.BytesIO(text.encode())}

    def answer_list_objects_v2(self, Bucket: str, Prefix: str) -> dict:
        place = f"s3://{Bucket}/"
        return {
            "Contents": [
                {"Key": uri[len(place) :], "Size": one["bytes"]} for uri, one in world["objects"].items() if uri.startswith(place + Prefix)
            ]
        }

    def get_paginator(self, name: str):
        paginate = lambda **asked: [getattr(self, name)(**asked)]  # noqa: E731
        return type("Paginator", (), {"paginate": staticmethod(paginate)})


class Lambda:
    def invoke(self, FunctionName: str, Payload: bytes) -> dict:
        request = json.loads(Payload)
        record("Invoke", request)
        answer = json.loads(sys.stdin.readline()) if request["action"] == "card" else world["answers"][request["action"]]
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


class Session:
    def client(self, service: str, region_name: str) -> object:
        return Lambda() if service == "lambda" else Service()


if __name__ == "__main__":
    env = slipway.Environment(sys.argv[1], region="us-west-2", session=Session())
    while line := sys.stdin.readline():
        world = json.loads(line)
        try:
            print(json.dumps({"published": env.run(world["runId"]).publish(**world["wanted"])}), flush=True)
        except slipway.SlipwayError as error:
            print(json.dumps({"failed": [error.exit_code, str(error)]}), flush=True)
