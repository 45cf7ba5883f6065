"""s3:// URIs, and endpoints of AWS services: from the endpoint variables of the AWS SDKs, otherwise the regional endpoint."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit


class Endpoint(NamedTuple):
    """`host`: for the connection and the signature; `prefix`: precedes the key (path style: `/bucket`)."""

    tls: bool
    host: str
    prefix: str


# DNS suffix of a partition, by the prefix of its regions; botocore's endpoints.json and partitions.json, 2026-11-22.
DOMAINS = {
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
    "eu-isoe-": "cloud.adc-e.uk",
}


def domain_of(region: str) -> str:
    """DNS suffix of the AWS service endpoints in a region."""
    return next((domain for prefix, domain in DOMAINS.items() if region.startswith(prefix)), "amazonaws.com")


def region_of(environ: Mapping[str, str]) -> str:
    """The region for signing. SageMaker sets AWS_REGION in every container."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def own_endpoint(environ: Mapping[str, str], service: str = "S3") -> Optional[str]:
    """A custom endpoint URL; None if it is not set. `service`: the suffix of the SDKs' variables."""
    return environ.get("AWS_ENDPOINT_URL_" + service) or environ.get("AWS_ENDPOINT_URL") or None


def endpoint_of(bucket: str, region: str, environ: Mapping[str, str]) -> Endpoint:
    """Path-style addressing for a custom endpoint and for buckets with dots; otherwise the bucket is in the host name."""
    own = own_endpoint(environ)
    if own:
        parts = urlsplit(own)
        return Endpoint(parts.scheme == "https", parts.netloc, parts.path.rstrip("/") + "/" + bucket)
    suffix = domain_of(region)
    if "." in bucket:
        return Endpoint(True, "s3.%s.%s" % (region, suffix), "/" + bucket)
    return Endpoint(True, "%s.s3.%s.%s" % (bucket, region, suffix), "")


def parse_uri(uri: str) -> Tuple[str, str]:
    """(bucket, key) of `s3://bucket/key`. Raises ValueError for anything else."""
    if not uri.startswith("s3://"):
        raise ValueError("must begin with s3://, got %s" % uri)
    bucket, _, key = uri[len("s3://") :].partition("/")
    if not bucket:
        raise ValueError("must name a bucket, got %s" % uri)
    return bucket, key


def join_uri(folder: str, name: str) -> str:
    """`name` below `folder`, with exactly one slash between them."""
    return folder.rstrip("/") + "/" + name
