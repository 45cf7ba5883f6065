import {
  dlcImageUri,
  HUGGING_FACE_IMAGES,
  huggingFaceImageUri,
  neuronImageUri,
  smpImageUri,
} from '../catalog/images/images';

/** Region of a registry's address; undefined for images outside ECR. */
export const regionOfImage = (uri: string): string | undefined => /\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\./.exec(uri)?.[1];

/**
 * The `image` section that gives exactly this URI: one of AWS's own kinds where the catalog builds the same address, else `uri`.
 * @param instanceType the type whose processors the image was built for
 */
export function imageSection(uri: string, instanceType: string): { kind: string; version?: string; uri?: string } {
  const region = regionOfImage(uri) ?? '';
  const [, repository = '', tag = ''] = /\/([^/:@]+):([^:/@]+)$/.exec(uri) ?? [];
  const version = /^(\d+\.\d+(?:\.\d+)?)/.exec(tag)?.[1] ?? '';
  const transformers = /-transformers(\d+\.\d+\.\d+)-/.exec(tag)?.[1] ?? '';
  const kinds: Record<string, () => string | undefined> = {
    smp: () => smpImageUri(version, region, instanceType),
    dlc: () =>
      repository === 'pytorch-training-neuron'
        ? neuronImageUri(version, region)
        : dlcImageUri(version, region, !tag.includes('-cpu-')),
    huggingface: () => (transformers in HUGGING_FACE_IMAGES ? huggingFaceImageUri(transformers, region) : undefined),
  };
  const kind = Object.keys(kinds).find((name) => kinds[name]?.() === uri);
  if (!kind) return { kind: 'uri', uri };
  return { kind, version: kind === 'huggingface' ? transformers : version };
}
