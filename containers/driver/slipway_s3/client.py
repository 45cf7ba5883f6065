"""Requests to S3 with retries: objects, listings and multipart uploads.

Functions import http.client, ssl and ElementTree, because each job imports this module, and those take longer than all of the driver.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from slipway_s3.endpoint import endpoint_of, region_of
from slipway_s3.sigv4 import EMPTY_SHA256, CredentialSource, canonical_path, canonical_query, signed_headers

if TYPE_CHECKING:
    import http.client
    import ssl
    from xml.etree import ElementTree

T = TypeVar("T")

ATTEMPTS = 8
LONGEST_DELAY_SECONDS = 20.0
TIMEOUT_SECONDS = 60.0
# No response; 5xx, including 503 SlowDown while S3 scales a prefix; 408 and 429 from proxies and emulators.
RETRIED = (0, 408, 429, 500, 502, 503, 504)
# Under another status: a connection that was idle (400), and an upload that could not be completed now (200).
RETRIED_CODES = ("RequestTimeout", "InternalError", "ServiceUnavailable", "SlowDown")

#: The KMS key for all uploads; if it is not set, the default key of the bucket applies.
TEAM_KEY_VARIABLE = "SLIPWAY_KMS_KEY_ARN"


class S3Error(Exception):
    """An error response of S3, with the request id for AWS support. `status` 0: there was no response."""

    def __init__(self, operation: str, status: int, code: str, request_id: str) -> None:
        # Passes all arguments on, so that the error can be pickled and sent to other ranks.
        super().__init__(operation, status, code, request_id)
        self.operation = operation
        self.status = status
        self.code = code
        self.request_id = request_id
        #: Whether S3 may answer the same request later.
        self.passes = status in RETRIED or code in RETRIED_CODES

    def __str__(self) -> str:
        return "%s: S3 answered %s %s (request id %s)" % (self.operation, self.status, self.code, self.request_id or "none")


class Listed(NamedTuple):
    """An object in a listing: its key, and its size in bytes."""

    key: str
    bytes: int


class Answer(NamedTuple):
    """Status, headers and body of a response of S3."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@lru_cache(maxsize=None)
def trust() -> ssl.SSLContext:
    """The trusted certificates of this machine, cached because every connection without a context would read them again."""
    import ssl

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def connection_to(host: str, tls: bool) -> http.client.HTTPConnection:
    """Returns a connection that is not opened yet."""
    import http.client

    if tls:
        return http.client.HTTPSConnection(host, timeout=TIMEOUT_SECONDS, context=trust())
    return http.client.HTTPConnection(host, timeout=TIMEOUT_SECONDS)


def _elements(body: bytes) -> Iterator[Tuple[str, "ElementTree.Element"]]:
    """The elements of an answer by their names without the namespace."""
    from xml.etree import ElementTree

    for element in ElementTree.fromstring(body).iter():
        yield element.tag.rsplit("}", 1)[-1], element


def xml_text(body: bytes, name: str) -> str:
    """Text of the first element `name`; '' if there is none."""
    with contextlib.suppress(SyntaxError):  # Not XML.
        return next((element.text or "" for found, element in _elements(body) if found == name), "")
    return ""


def parse_listing(body: bytes) -> Tuple[List[Listed], Optional[str]]:
    """Objects of one ListObjectsV2 page, and the token of the next page (None for the last page)."""
    objects: List[Listed] = []
    for name, element in _elements(body):
        if name == "Contents":
            fields = {child.tag.rsplit("}", 1)[-1]: child.text or "" for child in element}
            objects.append(Listed(fields["Key"], int(fields.get("Size") or 0)))
    more = xml_text(body, "IsTruncated") == "true"
    return objects, (xml_text(body, "NextContinuationToken") or None) if more else None


class S3Client:
    """A client that may be shared between threads, because it holds no connection."""

    def __init__(
        self,
        environ: Optional[Mapping[str, str]] = None,
        log: Callable[[str], None] = lambda line: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._environ, self._log, self._sleep = os.environ if environ is None else environ, log, sleep
        self._credentials, self._region = CredentialSource(self._environ), region_of(self._environ)

    def put(self, bucket: str, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Writes an object in one request. Raises S3Error."""
        self._request("PUT", bucket, key, body=body, headers={"content-type": content_type, **self._encryption()})

    def get(self, bucket: str, key: str, first: int = 0, length: Optional[int] = None) -> bytes:
        """Returns the object, or `length` bytes of it from byte `first`. Raises S3Error."""
        headers = {}
        if first or length is not None:
            last = "" if length is None else str(first + length - 1)
            headers["range"] = "bytes=%d-%s" % (first, last)
        return self._request("GET", bucket, key, headers=headers).body

    def find(self, bucket: str, key: str) -> Optional[bytes]:
        """Returns the object; None if it does not exist. Raises S3Error."""
        return self._if_there(bucket, key, lambda: self.get(bucket, key))

    def size(self, bucket: str, key: str) -> Optional[int]:
        """Size in bytes; None if the object does not exist. Raises S3Error."""
        return self._if_there(bucket, key, lambda: int(self._request("HEAD", bucket, key).headers["content-length"]))

    def _if_there(self, bucket: str, key: str, read: Callable[[], T]) -> Optional[T]:
        """What `read` returns; None if the object does not exist. S3 returns 403 for that to a role that may not list the whole bucket."""
        try:
            return read()
        except S3Error as error:
            if error.status == 404:
                return None
            with contextlib.suppress(S3Error):
                first = next(self.list(bucket, key), None) if error.status == 403 else None
                if error.status == 403 and (first is None or first.key != key):
                    return None
            raise

    def delete(self, bucket: str, key: str) -> None:
        """Deletes an object; succeeds if it does not exist. Raises S3Error."""
        self._request("DELETE", bucket, key)

    def list(self, bucket: str, prefix: str) -> Iterator[Listed]:
        """All objects below `prefix`, in key order. Raises S3Error."""
        token: Optional[str] = None
        while True:
            query = {"list-type": "2", "prefix": prefix}
            if token:
                query["continuation-token"] = token
            objects, token = parse_listing(self._request("GET", bucket, "", query=query).body)
            yield from objects
            if token is None:
                return

    def create_upload(self, bucket: str, key: str) -> str:
        """Starts a multipart upload and returns its id. Raises S3Error."""
        return xml_text(self._request("POST", bucket, key, query={"uploads": ""}, headers=self._encryption()).body, "UploadId")

    def upload_part(self, bucket: str, key: str, upload_id: str, number: int, body: bytes) -> str:
        """Uploads part `number` (from 1) and returns its ETag. Raises S3Error."""
        query = {"partNumber": str(number), "uploadId": upload_id}
        return self._request("PUT", bucket, key, query=query, body=body).headers["etag"]

    def complete_upload(self, bucket: str, key: str, upload_id: str, etags: Sequence[str]) -> None:
        """Completes a multipart upload; `etags` are those of the parts, in order. Raises S3Error."""
        parts = "".join(
            "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>" % (number, etag) for number, etag in enumerate(etags, start=1)
        )
        body = ("<CompleteMultipartUpload>%s</CompleteMultipartUpload>" % parts).encode()
        self._request("POST", bucket, key, query={"uploadId": upload_id}, body=body)

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Aborts a multipart upload and deletes its parts. Raises S3Error."""
        self._request("DELETE", bucket, key, query={"uploadId": upload_id})

    def _encryption(self) -> Dict[str, str]:
        """Encryption headers for the team's KMS key, if it has one. Parts of an upload use the key with which it was started."""
        key = self._environ.get(TEAM_KEY_VARIABLE)
        if not key:
            return {}
        return {"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": key}

    def _request(
        self, method: str, bucket: str, key: str, query: Mapping[str, str] = {}, body: bytes = b"", headers: Mapping[str, str] = {}
    ) -> Answer:
        import http.client

        operation, attempt = "%s s3://%s/%s" % (method, bucket, key), 0
        while True:
            attempt += 1
            try:
                answer = self._send(method, bucket, key, query, body, headers)
                # CompleteMultipartUpload may return status 200 with an error in the body.
                code = xml_text(answer.body, "Code") if answer.status >= 300 or method == "POST" else ""
                if answer.status < 300 and not code:
                    return answer
                error = S3Error(operation, answer.status, code, answer.headers.get("x-amz-request-id", ""))
            except (OSError, http.client.HTTPException) as failure:
                error = S3Error("%s (%s)" % (operation, failure), 0, type(failure).__name__, "")
            if attempt == ATTEMPTS or not error.passes:
                raise error
            self._log("%s; retrying (%d of %d)" % (error, attempt + 1, ATTEMPTS))
            self._sleep(min(LONGEST_DELAY_SECONDS, 0.2 * 2**attempt) * random.uniform(0.5, 1.0))

    def _send(self, method: str, bucket: str, key: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str]) -> Answer:
        where = endpoint_of(bucket, self._region, self._environ)
        path, search, now = where.prefix + "/" + canonical_path(key), canonical_query(query), datetime.now(timezone.utc)
        digest = hashlib.sha256(body).hexdigest() if body else EMPTY_SHA256
        signed = signed_headers(method, where.host, path, search, headers, digest, self._credentials.get(), self._region, now)
        connection = connection_to(where.host, where.tls)
        try:
            connection.request(method, path + ("?" + search if search else ""), body=body, headers=signed)
            answer = connection.getresponse()
            found: Dict[str, str] = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()
