import type { AssumptionArea } from '../assumption';

/** Quotas, rates, prices and images that the catalog contains as dated tables. */
export const QUOTAS: AssumptionArea = {
  title: 'Quotas, rates and clocks',
  assumptions: [
    {
      id: 'capacity-waits',
      claim:
        'Half of all jobs on accelerated types start within 20 minutes on demand, and 90 % within 2 h 40 min; a spot instance is interrupted with a probability of 20 % per month.',
      basis: 'guessed',
      source:
        'a few published waits (docs/facts/quotas-instances-prices.md) and the classes of the Spot Instance Advisor',
      usedBy: '`slipway plan --by`, until the environment has runs of its own',
      ifWrong: 'dates and costs of the first runs are too low or too high; the output states their source',
      embedded: 'not modelled',
    },
    {
      id: 'quota-codes',
      claim: 'Every quota code of the catalog has the name that the catalog gives it.',
      basis: 'reported',
      source: 'a listing of Service Quotas of us-east-1 and us-west-2, retrieved 2026-11-20',
      usedBy: 'quota check, increase requests',
      ifWrong: 'the wrong quota is compared or increased',
      embedded: 'repeats it',
      probe: 'read',
    },
    {
      id: 'quota-applied',
      claim:
        'GetServiceQuota returns the applied value of a quota, or NoSuchResourceException if none was ever applied; the limit is then that of GetAWSDefaultServiceQuota.',
      basis: 'reported',
      source:
        'service model of @aws-sdk/client-service-quotas: without an applied value the quota is not retrieved; issues of the AWS CLI and the Terraform provider differ',
      usedBy: 'quota check',
      ifWrong:
        'a deploy or a launch is refused although the limit is higher, or passes with an unknown limit and SageMaker answers ResourceLimitExceeded',
      embedded: 'repeats it',
      probe: 'read',
    },
    {
      id: 'create-rate',
      claim: 'CreateTrainingJob is allowed at least once per second.',
      basis: 'documented',
      source: 'Service Quotas, "Rate of CreateTrainingJob requests"',
      usedBy: 'rate at which reconcile creates jobs',
      ifWrong: 'starts are throttled and retried',
      embedded: 'repeats it',
      probe: 'read',
    },
    {
      id: 'list-rate',
      claim: 'ListTrainingJobs is allowed twice per second.',
      basis: 'reported',
      source: 'deepracer-on-aws#87',
      usedBy: 'reading the instances of other jobs',
      ifWrong: 'the queue waits longer than it has to, or is throttled',
      embedded: 'repeats it',
      probe: 'read',
    },
    {
      id: 'parameter-rate',
      claim: 'SSM GetParameter is allowed 40 times per second.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/general/latest/gr/ssm.html',
      usedBy: 'reading descriptors in reconcile',
      ifWrong: 'reconcile is throttled with fewer live runs',
      embedded: 'not modelled',
      probe: 'read',
    },
    {
      id: 'function-concurrency',
      claim: 'The account has at least 50 unused concurrent executions of Lambda functions.',
      basis: 'guessed',
      source: 'new accounts may start with 10',
      usedBy: 'control, reconcile and custom resources',
      ifWrong: 'ticks are throttled; decisions on many simultaneous runs are delayed',
      embedded: 'not modelled',
      probe: 'read',
    },
    {
      id: 'clock',
      claim: 'The clock of the caller differs from AWS by less than a minute.',
      basis: 'guessed',
      source: 'depends on the machine',
      usedBy: 'presigned uploads, ages in the output of status',
      ifWrong: 'signatures are rejected',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'increase-visible',
      claim: 'An increase that Service Quotas shows as approved applies to CreateTrainingJob within an hour.',
      basis: 'guessed',
      source: 'reports differ',
      usedBy: 'the queue, which reads the limit again',
      ifWrong: 'a run waits with ResourceLimitExceeded as its reason',
      embedded: 'repeats it',
    },
    {
      id: 'increase-in-part',
      claim:
        'An increase that AWS approves in part is APPROVED (or its case is closed) with the requested value, and GetServiceQuota returns the granted value within an hour.',
      basis: 'guessed',
      source:
        'the API has no field for a granted value (botocore, service-quotas 2019-06-24, RequestedServiceQuotaChange)',
      usedBy: '`slipway quota --wait`',
      ifWrong: 'the wait ends too early, with the limit at that time, or continues until it is interrupted',
      embedded: 'not modelled',
    },
  ],
};

/** Assumptions about instance types, images and prices. */
export const CATALOG: AssumptionArea = {
  title: 'Instances, prices and images',
  assumptions: [
    {
      id: 'instance-facts',
      claim:
        'vCPUs, GPUs, GPU memory, local disks and EFA interfaces of each accelerated type are those of the EC2 type of the same name.',
      basis: 'inferred',
      source: 'EC2 instance type pages, retrieved 2026-11-20',
      usedBy: 'planner, rules, ranks per host, addresses',
      ifWrong: 'plans and world sizes are wrong for that type',
      embedded: 'not modelled',
      probe: 'read',
    },
    {
      id: 'prices',
      claim: 'On-demand prices of the catalog are within 5 % of the price list of the Region.',
      basis: 'reported',
      source: 'dated tables of lib/core/catalog/prices/prices.ts',
      usedBy: 'plan, cost limits, spend',
      ifWrong: 'plans and limits are off by the difference; `prices:` of the environment overrides them',
      embedded: 'not modelled',
      probe: 'read',
    },
    {
      id: 'base-image',
      claim:
        'The published base image of the environment exists in the registry of the Region under its tag, and has the locked digest.',
      basis: 'reported',
      source: 'release notes of aws/deep-learning-containers; no registry was asked',
      usedBy: 'slipway preflight --lock, image build',
      ifWrong: 'lock or build fails with "no such image"',
      embedded: 'not modelled',
      probe: 'read',
    },
    {
      id: 'training-image',
      claim: 'The training image that the descriptor names is in the repository.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_DescribeImages.html',
      usedBy: 'every run with image.kind environment',
      ifWrong: 'jobs fail to pull; deploy the environment again',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'region-support',
      claim: 'SageMaker training is available in the Region.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/general/latest/gr/sagemaker.html',
      usedBy: 'everything',
      ifWrong: 'choose another Region',
      embedded: 'repeats it',
      probe: 'read',
    },
    {
      id: 'smp-image',
      claim: 'The SMP v2 image of the catalog can be pulled by a training job in every Region that the catalog lists.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/distributed-model-parallel-support-v2.html',
      usedBy: 'image.kind smp',
      ifWrong: 'the job fails to pull its image',
      embedded: 'not modelled',
    },
    {
      id: 'smp-rejects',
      claim: 'torch.sagemaker.init accepts every combination that the SMP v2 rules accept.',
      basis: 'inferred',
      source: 'the library is closed source; rules follow its documentation and AWS samples',
      usedBy: 'rules of library smp-v2',
      ifWrong: "the run ends in its first minute with the library's message",
      embedded: 'not modelled',
    },
    {
      id: 'volume-on-nvme',
      claim:
        'Types with local NVMe disks reject VolumeKmsKeyId, in training and processing jobs, and use those disks as their volume, whatever the value of VolumeSizeInGB. A job of types with and without them is rejected with the key.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ResourceConfig.html, https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProcessingClusterConfig.html (jobs of both kinds: inferred)',
      usedBy: 'requests for p4d, p5, g5 and newer types',
      ifWrong: 'CreateTrainingJob rejects the request',
      embedded: 'repeats it',
    },
    {
      id: 'plan-capacity',
      claim: 'A job with TrainingPlanArn waits for the start of the plan and is not billed on demand.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html',
      usedBy: 'compute.capacity with a training plan',
      ifWrong: 'recorded spend is wrong',
      embedded: 'not modelled',
    },
  ],
};
