import { BatchGetImageCommand, ECRClient, GetDownloadUrlForLayerCommand } from '@aws-sdk/client-ecr';
import type { EcrUri } from '../../core/catalog/images/base-images';

/** Versions that an image declares, by component: `CUDA`, `NCCL`, `EFA`, `PyTorch`. */
export type ImageVersions = Readonly<Record<string, string>>;

/**
 * Environment variables and build arguments that contain versions, by component: those of NVIDIA's CUDA images and of AWS Deep Learning
 * Containers (https://github.com/aws/deep-learning-containers, pytorch/training/docker; https://gitlab.com/nvidia/container-images/cuda,
 * 2026-11-23).
 */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  CUDA: ['CUDA_VERSION'],
  cuDNN: ['CUDNN_VERSION', 'NV_CUDNN_VERSION'],
  NCCL: ['NCCL_VERSION', 'NV_LIBNCCL_PACKAGE_VERSION'],
  EFA: ['EFA_VERSION', 'EFA_INSTALLER_VERSION'],
  'AWS OFI NCCL': ['AWS_OFI_NCCL_VERSION', 'OFI_NCCL_VERSION'],
  PyTorch: ['PYTORCH_VERSION', 'TORCH_VERSION'],
  Python: ['PYTHON_VERSION'],
};

const MANIFESTS = [
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.index.v1+json',
];
/** The used fields of a manifest of one image, or of an index over those of several architectures. */
interface Manifest {
  config?: { digest?: string };
  manifests?: { digest?: string; platform?: { architecture?: string } }[];
}

/** The used fields of an image's configuration. */
interface Configuration {
  config?: { Env?: string[] | null };
  history?: { created_by?: string }[] | null;
}

/**
 * Build arguments of commands in the history, `RUN |2 A=1 B=2 /bin/sh -c ...`: newer Deep Learning Containers declare versions only there.
 */
const buildArguments = (history: readonly { created_by?: string }[]): string[] =>
  history.flatMap(({ created_by: text = '' }) => {
    const [, given = ''] = /^(?:RUN )?\|\d+ (.*?) \S*sh -c /.exec(text) ?? [];
    return given.split(' ').filter((word) => /^\w+=./.test(word));
  });

/** Downloads a presigned URL; tests provide their own. */
export type Download = (url: string) => Promise<{ ok: boolean; status: number; json(): Promise<unknown> }>;

/** A network that drops packets must not prevent a lock file from being written. */
const PATIENCE_MS = 20_000;
const fetchSoon: Download = (url) => fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });

/**
 * The versions that an image declares in the environment variables and build arguments of its configuration: reads a few kilobytes and
 * pulls no layer. Throws with the reason when manifest or configuration cannot be read.
 */
export async function readImageVersions(
  { account, region, repository }: EcrUri,
  digest: string,
  download: Download = fetchSoon,
): Promise<ImageVersions> {
  const ecr = new ECRClient({ region });
  const place = { registryId: account, repositoryName: repository };
  const manifest = async (imageDigest: string): Promise<Manifest> => {
    const words = { ...place, imageIds: [{ imageDigest }], acceptedMediaTypes: MANIFESTS };
    const { images = [], failures = [] } = await ecr.send(new BatchGetImageCommand(words));
    const text = images[0]?.imageManifest;
    if (text === undefined) throw new Error(failures[0]?.failureReason ?? 'ECR returned no manifest');
    return JSON.parse(text) as Manifest;
  };
  const first = await manifest(digest);
  const chosen = first.manifests?.find(({ platform }) => platform?.architecture === 'amd64')?.digest;
  const { config } = chosen ? await manifest(chosen) : first;
  if (!config?.digest) throw new Error('its manifest has no configuration');
  const { downloadUrl = '' } = await ecr.send(
    new GetDownloadUrlForLayerCommand({ ...place, layerDigest: config.digest }),
  );
  const answer = await download(downloadUrl);
  if (!answer.ok) throw new Error(`the download of the image configuration failed with status ${answer.status}`);
  const { config: own, history } = (await answer.json()) as Configuration;
  return versionsIn([...buildArguments(history ?? []), ...(own?.Env ?? [])]);
}

function versionsIn(variables: readonly string[]): ImageVersions {
  const values = new Map(variables.map((text) => [text.split('=')[0], text.slice(text.indexOf('=') + 1)]));
  return Object.fromEntries(
    Object.entries(VARIABLES).flatMap(([what, names]) => {
      const value = names.map((name) => values.get(name)).find((found) => found);
      return value === undefined ? [] : [[what, value]];
    }),
  );
}

/** `CUDA 12.8.1 -> 13.0.0, NCCL 2.27.3 (same), EFA not said`: differences between the declared versions of two images. */
export function versionChanges(before: ImageVersions, after: ImageVersions): string {
  const shown = (value: string | undefined) => value ?? 'not specified';
  return Object.keys(VARIABLES)
    .flatMap((what) => {
      const [old, now] = [before[what], after[what]];
      if (old === now) return old === undefined ? [] : [`${what} ${old} (same)`];
      return [`${what} ${shown(old)} -> ${shown(now)}`];
    })
    .join(', ');
}
