// The CPU types of TrainingInstanceType in @aws-sdk/client-sagemaker 3.1142.0,
// retrieved 2026-11-20. vCPUs and memory follow from size and family (instances.ts).
const SIZES: Readonly<Record<string, string>> = {
  c4: '2xlarge 4xlarge 8xlarge xlarge',
  c5: '18xlarge 2xlarge 4xlarge 9xlarge xlarge',
  c5n: '18xlarge 2xlarge 4xlarge 9xlarge xlarge',
  c6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge xlarge',
  c7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  c8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge xlarge',
  m4: '10xlarge 16xlarge 2xlarge 4xlarge xlarge',
  m5: '12xlarge 24xlarge 2xlarge 4xlarge large xlarge',
  m6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge large xlarge',
  m7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  m8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge large xlarge',
  r5: '12xlarge 16xlarge 24xlarge 2xlarge 4xlarge 8xlarge large xlarge',
  r5d: '12xlarge 16xlarge 24xlarge 2xlarge 4xlarge 8xlarge large xlarge',
  r6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge large xlarge',
  r7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  r8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge large xlarge',
  t3: '2xlarge large medium xlarge',
};

/** Instance types without accelerators that SageMaker training and processing jobs support. */
export const CPU_INSTANCE_TYPES: readonly string[] = Object.entries(SIZES).flatMap(([family, sizes]) =>
  sizes.split(' ').map((size) => `ml.${family}.${size}`),
);
