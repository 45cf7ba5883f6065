"""A small S3 over HTTP: enough of the protocol for the client, with faults to order. Every request's signature is checked."""

import re
import threading
import urllib.parse
from collections.abc import Callable
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from slipway_s3.sigv4 import Credentials, canonical_query, signed_headers

LONG_AGO = "Sat, 21 Nov 2026 00:00:00 GMT"
KEYS = Credentials("AKIDTEST", "secret", None, None)


class FakeS3:
    """Objects by `/bucket/key`. `fault(method, path, query)` may return a status, or a status and an error code, to answer with instead."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        # Key that began an object, by its path; an upload in parts is begun with its first request.
        self.keys: dict[str, str] = {}
        self.fault: Callable[[str, str, str], int | tuple[int, str] | None] = lambda method, path, query: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": KEYS.access_key,
            "AWS_SECRET_ACCESS_KEY": KEYS.secret_key,
            "AWS_REGION": "us-west-2",
        }

    def be_slow(self, times: int) -> None:
        """Answers so many requests with 503 SlowDown, and those after them as asked."""
        left = iter([503] * times)
        self.fault = lambda method, path, query: next(left, None)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def listing(self, bucket: str, prefix: str, after: str, limit: int = 2) -> bytes:
        keys = sorted(path.removeprefix(f"/{bucket}/") for path in self.objects if path.startswith(f"/{bucket}/{prefix}"))
        keys = [key for key in keys if key > after]
        more = len(keys) > limit
        items = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.objects[f'/{bucket}/{key}'])}</Size></Contents>" for key in keys[:limit]
        )
        token = f"<NextContinuationToken>{keys[limit - 1]}</NextContinuationToken>" if more else ""
        body = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}"
        return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{body}</ListBucketResult>'.encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        world = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: object) -> None: ...

            def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                self.send_header("x-amz-request-id", "REQ123")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                if "content_length" not in headers:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def _signature_is_right(self, path: str, query: str) -> bool:
                sent = self.headers.get("authorization", "")
                names = re.search(r"SignedHeaders=([^,]+)", sent)
                if names is None:
                    return False
                left_out = ("host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token")
                extra = {name: self.headers[name] for name in names.group(1).split(";") if name not in left_out}
                when = datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
                query = canonical_query(dict(urllib.parse.parse_qsl(query, keep_blank_values=True)))
                right = signed_headers(
                    self.command, self.headers["host"], path, query, extra, self.headers["x-amz-content-sha256"], KEYS,
                    "us-west-2", when,
                )  # fmt: skip
                # Clients differ in the spaces of this header.
                return right["authorization"] == sent.replace(", ", ",")

            def _serve(self) -> None:
                raw_path, _, query = self.path.partition("?")
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                world.requests.append(f"{self.command} {self.path}")
                fault = world.fault(self.command, raw_path, query)
                if fault is not None:
                    # AWS's client tries again what is called SlowDown, whatever the status.
                    known = (fault, "SlowDown" if fault == 503 else "AccessDenied")
                    status, code = fault if isinstance(fault, tuple) else known
                    return self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())
                if not self._signature_is_right(raw_path, query):
                    return self._answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
                path = urllib.parse.unquote(raw_path)
                if self.headers.get("x-amz-server-side-encryption") == "aws:kms":
                    world.keys[path] = self.headers["x-amz-server-side-encryption-aws-kms-key-id"]
                wanted = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
                return getattr(self, f"_{self.command.lower()}")(path, wanted, body)

            def _put(self, path: str, query: dict[str, str], body: bytes) -> None:
                if "uploadId" in query:
                    if query["uploadId"] not in world.uploads:
                        return self._answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
                    world.uploads[query["uploadId"]][int(query["partNumber"])] = body
                    return self._answer(200, etag=f'"part{query["partNumber"]}"')
                world.objects[path] = body
                return self._answer(200, etag='"whole"')

            def _post(self, path: str, query: dict[str, str], body: bytes) -> None:
                if "uploads" in query:
                    upload = f"upload{len(world.uploads)}"
                    world.uploads[upload] = {}
                    return self._answer(
                        200, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode()
                    )
                parts = world.uploads.pop(query["uploadId"])
                order = [int(number) for number in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
                world.objects[path] = b"".join(parts[number] for number in order)
                return self._answer(200, b'<CompleteMultipartUploadResult><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>')

            def _get(self, path: str, query: dict[str, str], _body: bytes) -> None:
                if "list-type" in query:
                    bucket = path.strip("/")
                    return self._answer(200, world.listing(bucket, query.get("prefix", ""), query.get("continuation-token", "")))
                if path not in world.objects:
                    return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                data = world.objects[path]
                ranged = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
                if ranged:
                    first, end = int(ranged.group(1)), int(ranged.group(2) or len(data) - 1) + 1
                    place = f"bytes {first}-{min(end, len(data)) - 1}/{len(data)}"
                    return self._answer(206, data[first:end], content_range=place, etag='"whole"', last_modified=LONG_AGO)
                return self._answer(200, data, etag='"whole"', last_modified=LONG_AGO)

            def _head(self, path: str, _query: dict[str, str], _body: bytes) -> None:
                if path not in world.objects:
                    return self._answer(404)
                return self._answer(200, content_length=str(len(world.objects[path])))

            def _delete(self, path: str, query: dict[str, str], _body: bytes) -> None:
                if "uploadId" in query:
                    world.uploads.pop(query["uploadId"], None)
                else:
                    world.objects.pop(path, None)
                return self._answer(204)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

        return Handler
