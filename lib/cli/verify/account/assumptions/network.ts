import type { AssumptionArea } from '../assumption';

/** Assumptions about the network of jobs. */
export const NETWORK: AssumptionArea = {
  title: 'Network',
  assumptions: [
    {
      id: 'mlflow-endpoint',
      claim:
        'An interface endpoint for aws.sagemaker.<region>.experiments is used by calls of the MLflow client to the normal addresses of tracking servers.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-interface-endpoint.html; the address in the tests of the sagemaker-mlflow package',
      usedBy: 'MLflow from jobs in a locked network',
      ifWrong: 'the MLflow client times out; a network with vpc-nat reaches the server',
      embedded: 'not modelled',
    },
    {
      id: 'zone-ids',
      claim: 'Zone ids of a Region start with the prefix that the catalog derives from its name.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html',
      usedBy: 'checks of availabilityZoneIds',
      ifWrong: 'a valid zone ID is rejected',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'endpoint-zones',
      claim:
        'The endpoint services of the locked network are offered in every zone of the Region that the environment uses.',
      basis: 'guessed',
      source: 'some services are known to be missing in use1-az3',
      usedBy: 'network.mode vpc-locked',
      ifWrong: 'the deploy of the network fails',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'pull-outside-vpc',
      claim:
        'SageMaker pulls images and sends logs outside the subnets of a job, so that a locked network needs endpoints only for services that containers call.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html names only S3',
      usedBy: 'endpoints of the locked network',
      ifWrong: 'jobs in the locked network fail to start',
      embedded: 'not modelled',
      probe: 'train',
    },
    {
      id: 'addresses-per-instance',
      claim: 'An instance uses at most two addresses of its subnet, five with EFA.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html',
      usedBy: 'preflight, size of subnets',
      ifWrong: 'a job fails for lack of addresses although preflight accepted it',
      embedded: 'not modelled',
    },
    {
      id: 'buckets-guarded',
      claim: 'The buckets of the environment are encrypted with its key, versioned, not public, and reject plain HTTP.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html',
      usedBy: 'security review',
      ifWrong: 'somebody changed a bucket after the deploy',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'self-rules',
      claim:
        'The security group of the environment allows traffic between its members in both directions on every protocol.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html',
      usedBy: 'EFA',
      ifWrong: 'jobs fall back to sockets, which `efa: required` rejects',
      embedded: 'independent',
      probe: 'read',
    },
  ],
};
