"""A bucket that contains objects, versions or delete markers is not deleted with its stack.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html#troubleshooting-errors-delete-stack-fails: "Some
resources must be empty before they can be deleted. For example, you must delete all objects in an Amazon S3 bucket". S3 itself answers
BucketNotEmpty (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html). The stack ends in DELETE_FAILED, or a rollback in
ROLLBACK_FAILED: MiniStack sets these states itself once the resource fails.
"""

from ministack.services import s3
from ministack.services.cloudformation import provisioners

from slipway_rules.hooks import failed, wrap


def delete_bucket(original, physical_id, props):
    bucket = s3._buckets.get(physical_id)
    if bucket is not None and (bucket["objects"] or s3._bucket_has_versions(physical_id)):
        reason = "The bucket you tried to delete is not empty (Service: S3, Status Code: 409, Error Code: BucketNotEmpty)"
        raise failed("AWS::S3::Bucket", reason, "GeneralServiceException")
    return original(physical_id, props)


def install() -> None:
    wrap(provisioners, "_s3_delete", delete_bucket)
