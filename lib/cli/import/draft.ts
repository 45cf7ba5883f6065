import {
  dlcImageUri,
  HUGGING_FACE_IMAGES,
  huggingFaceImageUri,
  neuronImageUri,
  smpImageUri,
} from '../../core/catalog/images/images';

/** Options of a run file, by section. */
export type Draft = Record<string, unknown>;

/** A draft, and remarks about values that have no place in a request. */
export interface Drafted {
  draft: Draft;
  /** Values of the source that were converted, or could not be imported: field, value, reason. */
  remarks: { field: string; value: unknown; why: string }[];
}

/** Maximum length of a run name. */
const NAME_LENGTH = 32;

/** Converts a job name to lower-case letters, digits and inner hyphens, without the timestamp that SDKs append. */
export function runName(jobName: string): string {
  const plain = jobName.replace(/-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}(-\d{1,3})?$|-\d{12,14}$/, '');
  const name = plain
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LENGTH);
  return name.replace(/^-+|-+$/g, '') || 'imported';
}

/** Removes empty sections, so that defaults apply. */
export function filled(section: Draft | undefined): Draft | undefined {
  const kept = Object.entries(section ?? {}).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

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
