"""A client that knows nothing of Slipway: plain boto3 puts what `--dry-run --out` wrote into S3 and creates the job from the request.

    plain_client.py OUT_FOLDER DATA_BUCKET TOKEN_FOLDER    prints the job's last description as JSON
"""
import json
import pathlib
import sys
import time

import boto3

out, data_bucket, tokens = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
iam, s3, sagemaker = boto3.client("iam"), boto3.client("s3"), boto3.client("sagemaker")
request = json.loads((out / "request.json").read_text())

role = request["RoleArn"].split("/")[-1]
trust = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
access = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"], "Resource": "*"}
iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}))
iam.put_role_policy(RoleName=role, PolicyName="s3", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [access]}))

objects = [f for f in (out / "s3").rglob("*") if f.is_file()]
buckets = {f.relative_to(out / "s3").parts[0] for f in objects} | {data_bucket, "e2e-checkpoints"}
for bucket in sorted(buckets):
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
for file in objects:
    bucket, *key = file.relative_to(out / "s3").parts
    s3.upload_file(str(file), bucket, "/".join(key))
for file in tokens.iterdir():
    s3.upload_file(str(file), data_bucket, f"demo-tokens/{file.name}")

name = request["TrainingJobName"]
sagemaker.create_training_job(**request)
for _ in range(600):
    job = sagemaker.describe_training_job(TrainingJobName=name)
    if job["TrainingJobStatus"] not in ("InProgress", "Stopping"):
        break
    time.sleep(0.5)
print(json.dumps(job, default=str))
