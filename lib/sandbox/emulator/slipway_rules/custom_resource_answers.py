"""The response of a custom resource is limited to 4,096 bytes; a longer one fails the resource.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html: "The total size of the response body can't exceed
4096 bytes."
"""

import json

from ministack.services.cloudformation import custom_resource

from slipway_rules.hooks import wrap

LIMIT_BYTES = 4096


def deliver(original, token, response):
    size = len(json.dumps(response, separators=(",", ":"), ensure_ascii=False).encode())
    if size <= LIMIT_BYTES:
        return original(token, response)
    return original(token, {**response, "Status": "FAILED", "Data": {}, "Reason": "Response object is too long."})


def install() -> None:
    wrap(custom_resource, "deliver_response", deliver)
