"""Validate requests (one JSON object a line) against botocore's service model of SageMaker; prints one line per bad one."""
import json
import sys

import botocore.session
from botocore.validate import ParamValidator

model = botocore.session.get_session().get_service_model("sagemaker")
shapes = {name: model.operation_model(name).input_shape for name in ("CreateTrainingJob", "CreateProcessingJob")}
count = 0
for line in open(sys.argv[1], encoding="utf-8"):
    request = json.loads(line)
    name = "CreateProcessingJob" if "ProcessingJobName" in request else "CreateTrainingJob"
    report = ParamValidator().validate(request, shapes[name])
    if report.has_errors():
        print(report.generate_report().replace("\n", "; "), json.dumps(request)[:300])
    count += 1
print(f"{count} requests")
