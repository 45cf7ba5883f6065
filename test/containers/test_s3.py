"""The S3 client: signatures against AWS's worked examples, the rest against an S3 over HTTP that checks signatures."""

import itertools
import json
import ssl
from collections.abc import Iterator
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from fake_s3 import FakeS3
from slipway_s3.client import S3Client, S3Error, connection_to, parse_listing, trust
from slipway_s3.endpoint import endpoint_of, join_uri, parse_uri
from slipway_s3.sigv4 import (
    EMPTY_SHA256,
    Credentials,
    CredentialSource,
    NoCredentials,
    canonical_path,
    canonical_query,
    load_credentials,
    signed_headers,
)

# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, "Examples: Signature calculations" (2026-11-20).
EXAMPLE_KEYS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, None)
EXAMPLE_TIME = datetime(2013, 5, 24, tzinfo=timezone.utc)
PUT_SHA256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"


@pytest.mark.parametrize(
    ("method", "key", "query", "headers", "payload", "signature"),
    [
        ("GET", "test.txt", {}, {"Range": "bytes=0-9"}, EMPTY_SHA256,
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "test$file.text", {}, {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
         PUT_SHA256, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "", {"lifecycle": ""}, {}, EMPTY_SHA256,
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "", {"max-keys": "2", "prefix": "J"}, {}, EMPTY_SHA256,
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_worked_examples(method, key, query, headers, payload, signature) -> None:
    signed = signed_headers(
        method, "examplebucket.s3.amazonaws.com", "/" + canonical_path(key), canonical_query(query), headers, payload,
        EXAMPLE_KEYS, "us-east-1", EXAMPLE_TIME,
    )  # fmt: skip
    assert signed["authorization"].endswith("Signature=" + signature)


def test_a_session_token_is_sent_and_signed() -> None:
    keys = EXAMPLE_KEYS._replace(token="TOKEN")
    signed = signed_headers("GET", "h", "/", "", {}, EMPTY_SHA256, keys, "us-east-1", EXAMPLE_TIME)
    assert signed["x-amz-security-token"] == "TOKEN"
    assert "x-amz-security-token" in signed["authorization"]


@pytest.mark.parametrize(
    ("bucket", "region", "environ", "expected"),
    [
        ("b", "us-west-2", {}, (True, "b.s3.us-west-2.amazonaws.com", "")),
        ("b", "cn-north-1", {}, (True, "b.s3.cn-north-1.amazonaws.com.cn", "")),
        ("b", "eusc-de-east-1", {}, (True, "b.s3.eusc-de-east-1.amazonaws.eu", "")),
        ("b", "us-iso-east-1", {}, (True, "b.s3.us-iso-east-1.c2s.ic.gov", "")),
        ("b", "us-isob-east-1", {}, (True, "b.s3.us-isob-east-1.sc2s.sgov.gov", "")),
        ("b", "us-gov-west-1", {}, (True, "b.s3.us-gov-west-1.amazonaws.com", "")),
        ("a.b", "us-west-2", {}, (True, "s3.us-west-2.amazonaws.com", "/a.b")),
        ("b", "us-west-2", {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, (False, "127.0.0.1:4566", "/b")),
        ("b", "us-west-2", {"AWS_ENDPOINT_URL": "http://x", "AWS_ENDPOINT_URL_S3": "https://y:1"}, (True, "y:1", "/b")),
    ],
)
def test_endpoints_follow_the_variables_of_the_sdks(bucket, region, environ, expected) -> None:
    assert tuple(endpoint_of(bucket, region, environ)) == expected


def test_uris() -> None:
    assert parse_uri("s3://bucket/a/b") == ("bucket", "a/b")
    assert join_uri("s3://bucket/a/", "b") == "s3://bucket/a/b"
    with pytest.raises(ValueError, match="must begin with s3://"):
        parse_uri("/opt/ml")


def test_credentials_of_the_container_are_asked_for_again_before_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetch(url: str, headers: object) -> bytes:
        asked.append(url)
        answer = {"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T", "Expiration": "2026-11-21T12:00:00Z"}
        return json.dumps(answer).encode()

    expires = datetime(2026, 11, 21, 12, tzinfo=timezone.utc).timestamp()
    now = [expires - 3600]
    monkeypatch.setattr("slipway_s3.sigv4._fetch", fetch)
    monkeypatch.setattr("slipway_s3.sigv4.time", SimpleNamespace(time=lambda: now[0]))
    source = CredentialSource({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x"})
    assert source.get().token == "T"
    source.get()
    assert asked == ["http://169.254.170.2/v2/x"]
    now[0] = expires - 60
    source.get()
    assert len(asked) == 2


def test_fails_when_the_container_has_no_role() -> None:
    with pytest.raises(NoCredentials):
        load_credentials({})


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    world = FakeS3()
    yield world
    world.close()


def client(world: FakeS3, log: list[str] | None = None) -> S3Client:
    return S3Client(world.environ, log=(log if log is not None else []).append, sleep=lambda seconds: None)


def test_objects_go_in_and_out_whatever_their_names(s3: FakeS3) -> None:
    for key in ("plain", "with space/ünïcode+plus", "a=b&c;d$e~f", "dots/../kept"):
        client(s3).put("bucket", key, key.encode())
        assert client(s3).get("bucket", key) == key.encode()
        assert client(s3).size("bucket", key) == len(key.encode())
    assert client(s3).get("bucket", "plain", 1, 3) == b"lai"
    assert client(s3).get("bucket", "plain", 2) == b"ain"
    assert client(s3).size("bucket", "absent") is None


def test_a_denial_of_what_is_not_there_is_told_from_one_of_what_is(s3: FakeS3) -> None:
    client(s3).put("bucket", "p/there", b"x")
    client(s3).put("bucket", "p/absent.old", b"x")
    s3.fault = lambda method, path, query: 403 if method == "HEAD" else None
    assert client(s3).size("bucket", "p/absent") is None
    assert (client(s3).find("bucket", "p/none"), client(s3).find("bucket", "p/there")) == (None, b"x")
    with pytest.raises(S3Error, match="403"):
        client(s3).size("bucket", "p/there")
    s3.fault = lambda method, path, query: 403
    with pytest.raises(S3Error, match="403"):
        client(s3).size("bucket", "p/absent")


def test_listings_go_on_to_the_last_page(s3: FakeS3) -> None:
    for number in range(5):
        client(s3).put("bucket", f"p/{number}", b"x" * number)
    client(s3).put("bucket", "q/0", b"")
    assert [tuple(found) for found in client(s3).list("bucket", "p/")] == [(f"p/{number}", number) for number in range(5)]


def test_a_multipart_upload_is_put_together_in_order(s3: FakeS3) -> None:
    s3_client = client(s3)
    upload = s3_client.create_upload("bucket", "big")
    second = s3_client.upload_part("bucket", "big", upload, 2, b"two")
    first = s3_client.upload_part("bucket", "big", upload, 1, b"one")
    s3_client.complete_upload("bucket", "big", upload, [first, second])
    assert s3.objects["/bucket/big"] == b"onetwo"


def test_a_team_with_a_key_of_its_own_names_it_with_every_object_that_is_begun(s3: FakeS3) -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    own = S3Client({**s3.environ, "SLIPWAY_KMS_KEY_ARN": key})
    own.put("bucket", "small", b"data")
    upload = own.create_upload("bucket", "big")
    own.complete_upload("bucket", "big", upload, [own.upload_part("bucket", "big", upload, 1, b"one")])
    client(s3).put("bucket", "shared", b"data")
    assert s3.keys == {"/bucket/small": key, "/bucket/big": key}
    assert own.get("bucket", "big") == b"one"


def test_503_is_tried_again_and_its_request_id_logged(s3: FakeS3) -> None:
    s3.be_slow(2)
    log: list[str] = []
    client(s3, log).put("bucket", "key", b"data")
    assert s3.objects["/bucket/key"] == b"data"
    assert len(log) == 2
    assert "503 SlowDown (request id REQ123)" in log[0]


#: What AWS's SDKs repeat, too: TransientRetryableChecker of botocore (botocore/retries/standard.py), and
#: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html, both 2026-11-30.
PASSING = [(400, "RequestTimeout"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"), (503, "SlowDown")]


OPERATIONS = ("put", "get", "list", "delete", "create", "part", "complete")


@pytest.mark.parametrize(
    ("operation", "answer"),
    [*itertools.product(OPERATIONS, PASSING), ("complete", (200, "InternalError")), ("complete", (200, "SlowDown"))],
)
def test_what_passes_is_tried_again_in_every_operation(s3: FakeS3, operation: str, answer: tuple[int, str]) -> None:
    s3_client = client(s3)
    s3_client.put("bucket", "key", b"one")
    upload = s3_client.create_upload("bucket", "big")
    etags = [s3_client.upload_part("bucket", "big", upload, 1, b"one")]
    calls = {
        "put": lambda: s3_client.put("bucket", "key", b"one"),
        "get": lambda: s3_client.get("bucket", "key"),
        "list": lambda: list(s3_client.list("bucket", "")),
        "delete": lambda: s3_client.delete("bucket", "absent"),
        "create": lambda: s3_client.create_upload("bucket", "other"),
        "part": lambda: s3_client.upload_part("bucket", "big", upload, 1, b"one"),
        "complete": lambda: s3_client.complete_upload("bucket", "big", upload, etags),
    }
    left = iter([answer] * 2)
    s3.fault = lambda method, path, query: next(left, None)
    calls[operation]()
    assert next(left, None) is None
    s3.fault = lambda method, path, query: answer
    with pytest.raises(S3Error, match=answer[1]) as raised:
        calls[operation]()
    assert raised.value.passes


def test_an_upload_that_cannot_be_completed_is_not_tried_again(s3: FakeS3) -> None:
    s3.fault = lambda method, path, query: (200, "InvalidPart")
    with pytest.raises(S3Error, match="InvalidPart"):
        client(s3).complete_upload("bucket", "big", "upload", ["etag"])
    assert len(s3.requests) == 1


def test_403_is_not_tried_again_and_shows_no_signature(s3: FakeS3) -> None:
    s3.fault = lambda method, path, query: 403
    with pytest.raises(S3Error) as raised:
        client(s3).put("bucket", "key", b"data")
    assert len(s3.requests) == 1
    assert raised.value.status == 403
    assert "Signature" not in str(raised.value) and "AKID" not in str(raised.value)


def test_listings_without_a_namespace_are_read_too() -> None:
    objects, token = parse_listing(b"<L><IsTruncated>false</IsTruncated><Contents><Key>k</Key><Size>3</Size></Contents></L>")
    assert [tuple(found) for found in objects] == [("k", 3)]
    assert token is None


def test_an_error_survives_the_pickle_by_which_ranks_tell_each_other():
    import pickle

    error = S3Error("PUT s3://b/k", 403, "AccessDenied", "R1")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "PUT s3://b/k: S3 answered 403 AccessDenied (request id R1)"


def test_the_certificates_of_the_machine_are_read_once_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: made.append(make()) or made[-1])
    trust.cache_clear()
    assert [connection_to("localhost", tls).port for tls in (True, False, True)] == [443, 80, 443]
    assert len(made) == 1 and made[0].verify_mode is ssl.CERT_REQUIRED and made[0].check_hostname
    trust.cache_clear()
