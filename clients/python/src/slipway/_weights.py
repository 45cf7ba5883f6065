"""Weights of a job as files in S3, and their copies: what `slipway publish` does with the rights of the caller."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ._service_errors import service_error

#: Largest object that S3 copies at once: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html, 2026-11-23.
_MAX_AT_ONCE = 5 * 1024**3
#: 10,000 parts at most: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html, 2026-11-23.
_PART = 512 * 1024**2
_PARTS_AT_ONCE = 8


@dataclass(frozen=True)
class WeightFile:
    """A file of weights where the job left it; `name` is below the folder."""

    name: str
    bucket: str
    key: str
    bytes: int


@dataclass(frozen=True)
class Place:
    """Where weights go, with a slash at the end of `prefix`, and the key that they are encrypted with (None = the bucket's own)."""

    bucket: str
    prefix: str
    key_arn: str | None = None

    @property
    def uri(self) -> str:
        """Address of the folder."""
        return f"s3://{self.bucket}/{self.prefix}"

    def target(self, name: str) -> dict[str, str]:
        """Bucket, key and encryption of a file there."""
        own = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.key_arn} if self.key_arn else {}
        return {"Bucket": self.bucket, "Key": self.prefix + name, **own}


def objects_below(client: Any, bucket: str, prefix: str) -> list[tuple[str, int]]:
    """Keys that begin so and their sizes, without the empty objects that stand for folders."""
    try:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = [(str(item["Key"]), int(item["Size"])) for page in pages for item in page.get("Contents", [])]
    except (BotoCoreError, ClientError) as error:
        raise service_error(f"listing s3://{bucket}/{prefix}", error) from error
    return [(key, size) for key, size in found if not key.endswith("/")]


def weight_files(client: Any, uri: str) -> list[WeightFile]:
    """Files at `uri`: one archive, or everything below a folder, which SageMaker names with or without a slash at its end."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    is_folder = not key.endswith(".tar.gz")
    prefix = f"{key}/" if is_folder and not key.endswith("/") else key
    start = prefix.rfind("/") + 1
    found = objects_below(client, bucket, prefix)
    return [WeightFile(one[start:], bucket, one, size) for one, size in found if is_folder or one == key]


def copy_weights(client: Any, file: WeightFile, to: Place) -> None:
    """Copies one file inside S3, without its tags. Interrupted or failed, a copy in parts aborts its upload."""
    target = to.target(file.name)
    # As a text botocore would quote it, and what is quoted already twice.
    source = {"Bucket": file.bucket, "Key": file.key}
    try:
        if file.bytes > _MAX_AT_ONCE:
            _copy_in_parts(client, file.bytes, source, target)
        else:
            client.copy_object(**target, CopySource=source, TaggingDirective="REPLACE")
    except (BotoCoreError, ClientError) as error:
        doing = f"copying s3://{file.bucket}/{file.key} to s3://{to.bucket}/{target['Key']}"
        raise service_error(doing, error, _left(error)) from error


def _copy_in_parts(client: Any, size: int, source: Mapping[str, str], target: Mapping[str, str]) -> None:
    upload = {"Bucket": target["Bucket"], "Key": target["Key"], "UploadId": client.create_multipart_upload(**target)["UploadId"]}
    try:
        parts = _copy_parts(client, size, source, upload)
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    except BaseException as error:
        _give_up(client, upload, error)
        raise


def _copy_parts(client: Any, size: int, source: Mapping[str, str], upload: Mapping[str, str]) -> list[dict[str, Any]]:
    """Copies the parts. After a failure or Ctrl-C none is begun, and those under way are waited for: a part that arrives after its upload
    was aborted stays and costs storage (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html, 2026-11-23)."""

    def copied(number: int) -> dict[str, Any]:
        first = (number - 1) * _PART
        part = f"bytes={first}-{min(first + _PART, size) - 1}"
        answer = client.upload_part_copy(**upload, PartNumber=number, CopySource=source, CopySourceRange=part)
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    with ThreadPoolExecutor(_PARTS_AT_ONCE) as pool:
        parts: list[Future[dict[str, Any]]] = []
        try:
            parts += [pool.submit(copied, number) for number in range(1, math.ceil(size / _PART) + 1)]
            wait(parts, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        failed = next((part.exception() for part in parts if not part.cancelled() and part.exception()), None)
        if failed:
            raise failed
        return [part.result() for part in parts]


def _give_up(client: Any, upload: Mapping[str, str], why: BaseException) -> None:
    """Aborts an upload; what stopped the copy is the error to show, and an upload that is left is named in it."""
    try:
        client.abort_multipart_upload(**upload)
    except (BotoCoreError, ClientError) as error:
        text = f"; its incomplete upload {upload['UploadId']} was not aborted ({error}) and costs storage until it is"
        why.__dict__["left_upload"] = text


def _left(error: BaseException) -> str:
    return str(error.__dict__.get("left_upload", ""))


def names(files: Iterable[WeightFile]) -> Sequence[dict[str, Any]]:
    """Names and sizes, as cards and answers have them."""
    return [{"name": file.name, "bytes": file.bytes} for file in files]
