// Newest first.
// Source: https://docs.aws.amazon.com/sagemaker/latest/dg/model-parallel-release-notes.html, retrieved 2026-11-20.
// Several SMP releases share one mutable tag: a tag names the PyTorch version and does not pin an SMP release.

/** One release of SMP v2: its version, PyTorch, CUDA, and the image that contains it. */
export interface SmpRelease {
  smp: string;
  date: string;
  pytorch: string;
  python: string;
  cuda: string;
  smddp?: string;
  transformerEngine?: string;
  transformers?: string;
  nccl?: string;
  efa?: string;
  imageTag: string;
}

/** Releases of SMP v2 from the AWS release notes, newest first. */
export const SMP_RELEASES: readonly SmpRelease[] = [
  {
    smp: '2.8.0',
    date: '2025-04-01',
    pytorch: '2.5.1',
    python: 'py311',
    cuda: '12.4',
    smddp: '2.6.0',
    transformerEngine: '1.10',
    transformers: '4.44.2',
    nccl: '2.23.4',
    efa: '1.36.0',
    imageTag: '2.5.1-gpu-py311-cu124',
  },
  {
    smp: '2.7.0',
    date: '2024-12-04',
    pytorch: '2.4.1',
    python: 'py311',
    cuda: '12.1',
    smddp: '2.5.0',
    transformerEngine: '1.10',
    transformers: '4.44.2',
    nccl: '2.21.5',
    efa: '1.32.0',
    imageTag: '2.4.1-gpu-py311-cu121',
  },
  {
    smp: '2.6.1',
    date: '2024-10-31',
    pytorch: '2.4.1',
    python: 'py311',
    cuda: '12.1',
    smddp: '2.5.0',
    transformerEngine: '1.10',
    transformers: '4.44.2',
    nccl: '2.21.5',
    efa: '1.32.0',
    imageTag: '2.4.1-gpu-py311-cu121',
  },
  {
    smp: '2.6.0',
    date: '2024-10-17',
    pytorch: '2.4.1',
    python: 'py311',
    cuda: '12.1',
    smddp: '2.5.0',
    transformerEngine: '1.10',
    transformers: '4.44.2',
    nccl: '2.21.5',
    efa: '1.32.0',
    imageTag: '2.4.1-gpu-py311-cu121',
  },
  {
    smp: '2.5.0',
    date: '2024-08-28',
    pytorch: '2.3.1',
    python: 'py311',
    cuda: '12.1',
    smddp: '2.3.0',
    transformerEngine: '1.8',
    transformers: '4.40.1',
    nccl: '2.21.5',
    efa: '1.32.0',
    imageTag: '2.3.1-gpu-py311-cu121',
  },
  {
    smp: '2.4.0',
    date: '2024-06-20',
    pytorch: '2.3.1',
    python: 'py311',
    cuda: '12.1',
    smddp: '2.3.0',
    transformerEngine: '1.2.1',
    transformers: '4.40.1',
    nccl: '2.21.5',
    efa: '1.32.0',
    imageTag: '2.3.1-gpu-py311-cu121',
  },
  {
    smp: '2.3.1',
    date: '2024-05-09',
    pytorch: '2.2.0',
    python: 'py310',
    cuda: '12.1',
    imageTag: '2.2.0-gpu-py310-cu121',
  },
  {
    smp: '2.3.0',
    date: '2024-04-11',
    pytorch: '2.2.0',
    python: 'py310',
    cuda: '12.1',
    smddp: '2.2.0',
    transformerEngine: '1.2.1',
    transformers: '4.37.1',
    nccl: '2.19.4',
    efa: '1.30.0',
    imageTag: '2.2.0-gpu-py310-cu121',
  },
  {
    smp: '2.2.0',
    date: '2024-03-07',
    pytorch: '2.2.0',
    python: 'py310',
    cuda: '12.1',
    smddp: '2.2.0',
    transformerEngine: '1.2.1',
    transformers: '4.37.1',
    nccl: '2.19.4',
    efa: '1.30.0',
    imageTag: '2.2.0-gpu-py310-cu121',
  },
  {
    smp: '2.1.0',
    date: '2024-02-06',
    pytorch: '2.1.2',
    python: 'py310',
    cuda: '12.1',
    smddp: '2.1.0',
    transformerEngine: '1.2.1',
    transformers: '4.37.1',
    efa: '1.30.0',
    imageTag: '2.1.2-gpu-py310-cu121',
  },
  {
    smp: '2.0.0',
    date: '2023-12-19',
    pytorch: '2.0.1',
    python: 'py310',
    cuda: '12.1',
    imageTag: '2.0.1-gpu-py310-cu121',
  },
];

/** Regions with SMP v2 images. */
export const SMP_REGIONS: readonly string[] = [
  'ap-northeast-1',
  'ap-northeast-2',
  'ap-northeast-3',
  'ap-south-1',
  'ap-southeast-1',
  'ap-southeast-2',
  'ca-central-1',
  'eu-central-1',
  'eu-north-1',
  'eu-west-1',
  'eu-west-2',
  'eu-west-3',
  'sa-east-1',
  'us-east-1',
  'us-east-2',
  'us-west-1',
  'us-west-2',
];
