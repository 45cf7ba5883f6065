import { REGIONS } from '../regions';
import { SMDDP_BY_PYTORCH, SMP_RELEASES } from './smddp';

/**
 * PyTorch training images that the SageMaker Python SDK lists, the oldest first, with their Python version. The SDK's short tag is used:
 * `<version>-<gpu|cpu>-<python>`. Source: sagemaker 2.257.7 image_uri_config/pytorch.json (Apache-2.0), retrieved 2026-11-20.
 */
export const PYTORCH_PYTHON: Readonly<Record<string, string>> = {
  '1.8.0': 'py36',
  '1.8.1': 'py36',
  '1.9.0': 'py38',
  '1.9.1': 'py38',
  '1.10.0': 'py38',
  '1.10.2': 'py38',
  '1.11.0': 'py38',
  '1.12.0': 'py38',
  '1.12.1': 'py38',
  '1.13.1': 'py39',
  '2.0.0': 'py310',
  '2.0.1': 'py310',
  '2.1.0': 'py310',
  '2.2.0': 'py310',
  '2.3.0': 'py311',
  '2.4.0': 'py311',
  '2.5.1': 'py311',
  '2.6.0': 'py312',
  '2.7.1': 'py312',
  '2.8.0': 'py312',
};

/** GPU images newer than those in the SDK. Source: aws/deep-learning-containers@e0ecedea6a docs/src/data, retrieved 2026-11-20. */
const NEWER_PYTORCH: Readonly<Record<string, { repository: string; tag: string }>> = {
  '2.9.0': { repository: 'pytorch-training', tag: '2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker' },
  '2.10.0': { repository: 'pytorch-training', tag: '2.10.0-gpu-py313-cu130-ubuntu22.04-sagemaker' },
  '2.11.0': { repository: 'pytorch', tag: '2.11.0-cu130-amzn2023-sagemaker' },
  '2.12.1': { repository: 'pytorch', tag: '2.12.1-cu130-amzn2023-sagemaker' },
  '2.13.0': { repository: 'pytorch', tag: '2.13.0-cu133-amzn2023-sagemaker' },
};

/** End-of-patch dates of images that were still patched in 2026. Same source. */
export const PYTORCH_END_OF_PATCH: Readonly<Record<string, string>> = {
  '2.6': '2026-01-29',
  '2.7': '2026-04-23',
  '2.8': '2026-08-06',
  '2.9': '2026-10-15',
  '2.10': '2027-01-21',
  '2.11': '2027-04-30',
  '2.12': '2027-07-02',
  '2.13': '2027-07-20',
};

/**
 * Hugging Face training images by transformers version: PyTorch, Python and tag suffix (GPU only).
 * Source: sagemaker 2.257.7 image_uri_config/huggingface.json, retrieved 2026-11-20.
 */
export const HUGGING_FACE_IMAGES: Readonly<Record<string, { pytorch: string; python: string; suffix: string }>> = {
  '4.6.1': { pytorch: '1.8.1', python: 'py36', suffix: 'cu111-ubuntu18.04' },
  '4.10.2': { pytorch: '1.9.0', python: 'py38', suffix: 'cu111-ubuntu20.04' },
  '4.11.0': { pytorch: '1.9.0', python: 'py38', suffix: 'cu111-ubuntu20.04' },
  '4.12.3': { pytorch: '1.9.1', python: 'py38', suffix: 'cu111-ubuntu20.04' },
  '4.17.0': { pytorch: '1.10.2', python: 'py38', suffix: 'cu113-ubuntu20.04' },
  '4.26.0': { pytorch: '1.13.1', python: 'py39', suffix: 'cu117-ubuntu20.04' },
  '4.28.1': { pytorch: '2.0.0', python: 'py310', suffix: 'cu118-ubuntu20.04' },
  '4.36.0': { pytorch: '2.1.0', python: 'py310', suffix: 'cu121-ubuntu20.04' },
  '4.46.1': { pytorch: '2.3.0', python: 'py311', suffix: 'cu121-ubuntu20.04' },
  '4.48.0': { pytorch: '2.3.0', python: 'py311', suffix: 'cu121-ubuntu20.04' },
  '4.49.0': { pytorch: '2.5.1', python: 'py311', suffix: 'cu124-ubuntu22.04' },
  '4.55.0': { pytorch: '2.7.1', python: 'py312', suffix: 'cu128-ubuntu22.04' },
  '4.56.2': { pytorch: '2.8.0', python: 'py312', suffix: 'cu129-ubuntu22.04' },
  // sagemaker-core 2.27.0 (Apache-2.0), retrieved 2026-11-22.
  '5.3.0': { pytorch: '2.9.0', python: 'py312', suffix: 'cu130-ubuntu22.04' },
};

/** Python version by PyTorch version of SMP v2 images, which `framework_version` accepts; the oldest first. */
export const SMP_PYTHON: Readonly<Record<string, string>> = Object.fromEntries(
  SMP_RELEASES.map(({ pytorch, python }) => [pytorch, python]).reverse(),
);

/**
 * PyTorch image for Trainium, with the tag suffix and the regions that have it. The SDK only lists this image and uses it for every
 * requested version; here a rule rejects other versions.
 * Source: sagemaker 2.257.7 image_uri_config/pytorch-neuron.json (Apache-2.0), retrieved 2026-11-21.
 */
const NEURON_PYTORCH = {
  version: '1.11.0',
  repository: 'pytorch-training-neuron',
  suffix: 'neuron-py38-sdk2.4.0-ubuntu20.04',
  regions: [
    'ap-northeast-1',
    'ap-south-1',
    'ap-south-2',
    'ap-southeast-1',
    'ap-southeast-2',
    'ap-southeast-4',
    'ca-west-1',
    'eu-central-1',
    'eu-central-2',
    'eu-south-2',
    'eu-west-1',
    'eu-west-3',
    'il-central-1',
    'sa-east-1',
    'us-east-1',
    'us-east-2',
    'us-west-2',
  ],
};

/** Kinds of image that AWS publishes. */
export type AwsImageKind = 'dlc' | 'huggingface' | 'smp';

const HUGGING_FACE_REPOSITORY = 'huggingface-pytorch-training';
const SMP_REPOSITORY = 'smdistributed-modelparallel';
/** Repositories with images for Trainium to which messages refer; this catalog has no tags of them. */
export const NEURONX_REPOSITORY: Readonly<Record<Exclude<AwsImageKind, 'smp'>, string>> = {
  dlc: 'pytorch-training-neuronx',
  huggingface: 'huggingface-pytorch-training-neuronx',
};

/** The repositories of AWS's images, by kind: those of every URI below. */
const REPOSITORIES: Readonly<Record<AwsImageKind, readonly string[]>> = {
  dlc: [
    ...new Set(['pytorch-training', ...Object.values(NEWER_PYTORCH).map(({ repository }) => repository)]),
    NEURON_PYTORCH.repository,
    NEURONX_REPOSITORY.dlc,
  ],
  huggingface: [HUGGING_FACE_REPOSITORY, NEURONX_REPOSITORY.huggingface],
  smp: [SMP_REPOSITORY],
};

/** The repositories of a region from which AWS's images are pulled, with the account of their registry. */
export function awsRepositories(region: string): { kind: AwsImageKind; account: string; repository: string }[] {
  const { dlcAccount, smpAccount } = REGIONS[region] ?? {};
  const accounts = { dlc: dlcAccount, huggingface: dlcAccount, smp: smpAccount };
  return (['dlc', 'huggingface', 'smp'] as const).flatMap((kind) => {
    const account = accounts[kind];
    return account === undefined ? [] : REPOSITORIES[kind].map((repository) => ({ kind, account, repository }));
  });
}

/** PyTorch versions for Trainium of image kind dlc, and the regions with those images. */
export const NEURON_VERSIONS: readonly string[] = [NEURON_PYTORCH.version];
export const NEURON_REGIONS: readonly string[] = NEURON_PYTORCH.regions;

/** The full PyTorch version for `version` of a dlc image, by default its newest patch release; undefined when there is none. */
export function fullPytorchVersion(version: string): string | undefined {
  const known = dlcVersions();
  return known.includes(version) ? version : known.findLast((full) => full.replace(/\.\d+$/, '') === version);
}

/** The full transformers version for `version` of a huggingface image. */
export function fullTransformersVersion(version: string): string | undefined {
  if (version in HUGGING_FACE_IMAGES) return version;
  return Object.keys(HUGGING_FACE_IMAGES).find((full) => full.startsWith(`${version}.`));
}

/** PyTorch versions of the AWS Deep Learning Containers in the catalog. */
export const dlcVersions = (): string[] => [...Object.keys(PYTORCH_PYTHON), ...Object.keys(NEWER_PYTORCH)];

/** The URI of an image in a registry of a region; undefined where the region has no such registry. */
const uriIn = (region: string, account: string | undefined, image: string): string | undefined =>
  account && `${account}.dkr.ecr.${region}.${REGIONS[region]?.domain ?? 'amazonaws.com'}/${image}`;

/**
 * URI of the SageMaker PyTorch image, with the tag format of the SDK; undefined when there is none for the version, region or processor.
 */
export function dlcImageUri(version: string, region: string, accelerated: boolean): string | undefined {
  const account = REGIONS[region]?.dlcAccount;
  const full = fullPytorchVersion(version) ?? '';
  const newer = NEWER_PYTORCH[full];
  if (newer) return accelerated ? uriIn(region, account, `${newer.repository}:${newer.tag}`) : undefined;
  const [python, processor] = [PYTORCH_PYTHON[full], accelerated ? 'gpu' : 'cpu'];
  return python && uriIn(region, account, `pytorch-training:${version}-${processor}-${python}`);
}

/** URI of the PyTorch image for Trainium, with the tag format of the SDK; undefined when there is none for the version or region. */
export function neuronImageUri(version: string, region: string): string | undefined {
  const { version: only, repository, suffix, regions } = NEURON_PYTORCH;
  if (fullPytorchVersion(version) !== only || !regions.includes(region)) return undefined;
  return uriIn(region, REGIONS[region]?.dlcAccount, `${repository}:${version}-${suffix}`);
}

/** URI of the SMP v2 image. The CUDA suffix follows the SDK: cu124 for 2.5, cu121 for 2.1-2.4 and any p5, else cu118. */
export function smpImageUri(version: string, region: string, instanceType: string): string | undefined {
  const python = SMP_PYTHON[version];
  const older = /^2\.[1-4]\./.test(version) || instanceType.includes('p5') ? 'cu121' : 'cu118';
  const cuda = version.startsWith('2.5') ? 'cu124' : older;
  return python && uriIn(region, REGIONS[region]?.smpAccount, `${SMP_REPOSITORY}:${version}-gpu-${python}-${cuda}`);
}

/** URI of the Hugging Face training image. */
export function huggingFaceImageUri(version: string, region: string): string | undefined {
  const full = fullTransformersVersion(version) ?? '';
  const image = HUGGING_FACE_IMAGES[full];
  if (!image) return undefined;
  const tag = `${image.pytorch}-transformers${full}-gpu-${image.python}-${image.suffix}`;
  return uriIn(region, REGIONS[region]?.dlcAccount, `${HUGGING_FACE_REPOSITORY}:${tag}`);
}

/** Supported base images for an environment's own image. */
export type ImageBase = 'pytorch-2.13' | 'smp-2.8.0' | 'cuda';

/**
 * URI of the published base image in a region, with tag. Undefined when the region has none, and for `cuda`, which is an nvidia/cuda image
 * in a repository of the account.
 */
export function publishedBaseUri(base: ImageBase, region: string): string | undefined {
  if (base === 'cuda') return undefined;
  if (base === 'pytorch-2.13') return dlcImageUri('2.13.0', region, true);
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  return release && smpImageUri(release.pytorch, region, 'ml.p5.48xlarge');
}

/** Releases in the environment's own image, as listed in its descriptor. */
export function baseImageContents(base: ImageBase) {
  // Tag 2.13.0-cu133 of the Deep Learning Container.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  // PYTORCH_VERSION of containers/training/cuda.Dockerfile, whose wheel contains its CUDA libraries.
  if (base === 'cuda') return { pytorch: '2.13.0' };
  const release = SMP_RELEASES.find(({ smp }) => base === `smp-${smp}`);
  if (!release) return undefined;
  const { pytorch, cuda, smp } = release;
  return { pytorch, cuda, smp, smddp: SMDDP_BY_PYTORCH[pytorch] };
}

/** The parts of a private ECR image URI: `<account>.dkr.ecr.<region>.<domain>/<repository>[:<tag>][@<digest>]`. */
export interface EcrUri {
  account: string;
  region: string;
  domain: string;
  repository: string;
  tag?: string;
  digest?: string;
}

/** The domain depends on the partition: amazonaws.com, amazonaws.com.cn, amazonaws.eu, c2s.ic.gov and others. */
const FORM =
  /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.([a-z0-9]+(?:\.[a-z0-9]+)+)\/([a-z0-9][a-z0-9._/-]*)(?::([A-Za-z0-9_][A-Za-z0-9._-]*))?(?:@(sha256:[0-9a-f]{64}))?$/;

/** Parses the URI of an image in a private ECR registry; undefined for any other text. */
export function parseEcrUri(uri: string): EcrUri | undefined {
  const [, account, region, domain, repository, tag, digest] = FORM.exec(uri) ?? [];
  return account && region && domain && repository ? { account, region, domain, repository, tag, digest } : undefined;
}

/** URI of the same image with the digest instead of the tag. */
export const ecrImageByDigest = ({ account, region, domain, repository }: EcrUri, digest: string): string =>
  `${account}.dkr.ecr.${region}.${domain}/${repository}@${digest}`;
