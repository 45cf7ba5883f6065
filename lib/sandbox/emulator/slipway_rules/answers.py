"""Calls that AWS answers differently from MiniStack, each with its own reference; most were found with a second emulator
(docs/emulator.md).

- A subject of SNS has at most 100 characters: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
- The detail of an event must be a JSON object, otherwise the entry fails with MalformedDetail:
  https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html,
  https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
- A bucket policy must be JSON, otherwise MalformedPolicy: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
- PutObject returns the checksum of the request: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
- DescribeRepositories is authorized on the repositories that it names (here on the first one), whereas MiniStack uses `*`:
  https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelasticcontainerregistry.html
- DescribeImages fails for an image that does not exist:
  https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_DescribeImages.html
"""

import json

from ministack.core import iam_actions
from ministack.core.responses import error_response_json, json_response
from ministack.services import ecr, eventbridge, s3, sns

from slipway_rules.hooks import wrap

SUBJECT_CHARACTERS = 100
#: Headers about checksums that are no checksum themselves.
ABOUT_CHECKSUMS = ("x-amz-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-type")


def publish(original, params, *more):
    subject = sns._p(params, "Subject")
    if len(subject) > SUBJECT_CHARACTERS:
        return sns._error("InvalidParameter", "Invalid parameter: Subject", 400)
    return original(params, *more)


def is_object(detail: str | None) -> bool:
    try:
        return isinstance(json.loads(detail or ""), dict)
    except ValueError:
        return False


def put_events(original, data, **options):
    """Entries with a malformed detail fail individually; the others are put."""
    entries = data.get("Entries") or []
    good = [entry for entry in entries if entry.get("Detail") is None or is_object(entry["Detail"])]
    if len(good) == len(entries):
        return original(data, **options)
    status, headers, body = original({**data, "Entries": good}, **options) if good else json_response({"Entries": []})
    if status != 200:
        return status, headers, body
    answers = iter(json.loads(body)["Entries"])
    malformed = {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
    results = [next(answers) if entry in good else malformed for entry in entries]
    return json_response({"FailedEntryCount": sum("ErrorCode" in result for result in results), "Entries": results})


def describe_images(original, data):
    requested, name = data.get("imageIds") or [], data.get("repositoryName", "")
    images = ecr._images.get(name) or []
    for wanted in requested if name in ecr._repositories else []:
        if not any(wanted.get("imageTag") in i.get("imageTags", []) or wanted.get("imageDigest") == i["imageDigest"] for i in images):
            message = f"The image with imageId {wanted} does not exist within the repository with name '{name}'"
            return error_response_json("ImageNotFoundException", message, 400)
    return original(data)


def put_bucket_policy(original, name, body):
    if name in s3._buckets and not is_object(body.decode("utf-8", "replace")):
        return s3._error("MalformedPolicy", "Policies must be valid JSON and the first byte must be '{'", 400)
    return original(name, body)


def put_object(original, bucket_name, key, body, headers):
    status, answered, content = original(bucket_name, key, body, headers)
    if status == 200:
        given = {name.lower(): value for name, value in headers.items()}
        sums = {name: value for name, value in given.items() if name.startswith("x-amz-checksum-") and name not in ABOUT_CHECKSUMS}
        answered = {**sums, **answered}
    return status, answered, content


def resource_of_request(original, service, method, path, headers, body, query_params, region, account_id):
    found = original(service, method, path, headers, body, query_params, region, account_id)
    if service != "ecr" or found != "*":
        return found
    names = json.loads(body or b"{}").get("repositoryNames")
    return f"arn:aws:ecr:{region}:{account_id}:repository/{names[0]}" if names else found


def install() -> None:
    wrap(iam_actions, "extract_resource_arn", resource_of_request)
    wrap(s3, "_put_bucket_policy", put_bucket_policy)
    wrap(s3, "_put_object", put_object)
    wrap(sns, "_publish", publish)
    wrap(eventbridge, "_put_events", put_events)
    wrap(ecr, "_describe_images", describe_images)
