import { dlcImageUri, smpImageUri } from './images';
import { SMDDP_BY_PYTORCH } from './smddp';
import { SMP_RELEASES } from './smp-releases';

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

/** PYTORCH_VERSION of containers/training/cuda.Dockerfile. */
const CUDA_BUILD_PYTORCH = '2.13.0';

/** Releases in the environment's own image, as listed in its descriptor. */
export function baseImageContents(
  base: ImageBase,
): { pytorch: string; cuda?: string; smp?: string; smddp?: string } | undefined {
  // Tag 2.13.0-cu133 of the Deep Learning Container: lib/core/catalog/images/images.ts.
  if (base === 'pytorch-2.13') return { pytorch: '2.13.0', cuda: '13.3' };
  // The PyTorch wheel contains its CUDA libraries.
  if (base === 'cuda') return { pytorch: CUDA_BUILD_PYTORCH };
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
