"""Drives a running sandbox with boto3, a client nobody here wrote: a job from request to logs, lists, tags, quotas.

Usage: sandbox-clients.py ROLE_ARN BUCKET     (endpoints and credentials come from the environment)
Prints one JSON document with what it saw.
"""

import json
import sys
import time

import boto3


def main(role_arn, bucket):
    sagemaker, quotas, logs = (boto3.client(name) for name in ("sagemaker", "service-quotas", "logs"))
    name = "from-boto3"
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn=role_arn,
        AlgorithmSpecification={
            "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/lab:1",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["/bin/bash"],
            "ContainerArguments": ["-c", "echo hello from $TRAINING_JOB_NAME"],
        },
        OutputDataConfig={"S3OutputPath": f"s3://{bucket}/out/"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
        Tags=[{"Key": "team", "Value": "a"}],
    )
    job = finished(sagemaker, name)
    events = logs.filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{name}/")["events"]
    pages = sagemaker.get_paginator("list_training_jobs").paginate(NameContains=name)
    print(
        json.dumps(
            {
                "status": job["TrainingJobStatus"],
                "transitions": [transition["Status"] for transition in job["SecondaryStatusTransitions"]],
                "created": job["CreationTime"].isoformat(),
                "logs": sorted(event["message"] for event in events),
                "listed": [summary["TrainingJobName"] for page in pages for summary in page["TrainingJobSummaries"]],
                "tags": sagemaker.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"],
                "refused": refusal(sagemaker.exceptions.ResourceInUse, sagemaker, job),
                "quota": quotas.get_service_quota(ServiceCode="sagemaker", QuotaCode="L-82E1C851")["Quota"]["QuotaName"],
                "quotas": sum(
                    len(page["Quotas"]) for page in quotas.get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
                ),
            }
        )
    )


def finished(sagemaker, name):
    while True:
        job = sagemaker.describe_training_job(TrainingJobName=name)
        if job["TrainingJobStatus"] != "InProgress":
            return job
        time.sleep(0.1)


def refusal(expected, sagemaker, job):
    fields = ("TrainingJobName", "RoleArn", "AlgorithmSpecification", "OutputDataConfig", "ResourceConfig", "StoppingCondition")
    try:
        sagemaker.create_training_job(**{field: job[field] for field in fields})
    except expected as error:
        return error.response["Error"]["Code"]
    return None


main(*sys.argv[1:])
