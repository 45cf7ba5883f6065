import {
  dlcImageUri,
  HUGGING_FACE_IMAGES,
  huggingFaceImageUri,
  neuronImageUri,
  smpImageUri,
} from '../../core/catalog/images/images';

/** Region in the URI of a registry; undefined for images outside ECR. */
export const regionOfImage = (uri: string): string | undefined => /\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\./.exec(uri)?.[1];

/**
 * The `image` section for exactly this URI: an AWS image kind if the catalog produces the same URI, otherwise `uri`.
 * @param instanceType the type whose processors the image supports
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
