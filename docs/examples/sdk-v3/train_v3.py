"""A training job as the SageMaker Python SDK v3 makes it. The lines of docs/import.md write its request down instead of sending it."""

import json

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, SourceCode


def keep(params: dict, **_: object) -> None:
    """Writes the request to a file and ends the script."""
    with open("request.json", "w") as file:
        json.dump(params, file, default=str, indent=1)
    raise SystemExit("request.json written; nothing was launched")


boto3.setup_default_session(region_name="us-west-2")
boto3.DEFAULT_SESSION.events.register("provide-client-params.sagemaker.CreateTrainingJob", keep)

trainer = ModelTrainer(
    training_image="763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
    source_code=SourceCode(source_dir="src", entry_script="train.py"),
    compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
    hyperparameters={"lr": 0.3},
    role="arn:aws:iam::000000000000:role/train",
    base_job_name="descent",
    sagemaker_session=Session(boto_session=boto3.DEFAULT_SESSION),
)
trainer.train(wait=False)
