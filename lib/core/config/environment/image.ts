import { stringify } from 'yaml';
import { z } from 'zod';
import { ecrImageByDigest, parseEcrUri } from '../../catalog/images/images';
import { flag, formed, option } from '../formats/field';
import type { Issue } from '../issue';
import { parseYaml, type YamlFile } from '../reading/yaml-file';
import { zodIssues } from '../reading/zod-issues';

export const image = z.strictObject({
  base: option(
    z.enum(['pytorch-2.13', 'smp-2.8.0', 'cuda']),
    'Base of the image: an AWS image with PyTorch or the SageMaker model parallel library, to which a few layers are added, or a full build with the EFA installer (cuda).',
    { default: 'pytorch-2.13' },
  ),
  build: flag('Whether the stack builds the image with CodeBuild in the account.', true),
  uri: option(
    z.string().min(1).max(255),
    'Existing image in Amazon ECR, instead of an image that the stack builds. Default: none.',
    { examples: ['111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1.0'] },
  ),
  encryption: option(
    z.enum(['kms', 'aes256']),
    'Encryption of the image repository, which cannot be changed later: with the key of the environment (kms), or with a key that ECR owns (aes256).',
    { default: 'kms' },
  ),
});

const lockedBase = z.strictObject({
  /** ECR image with the tag that was resolved. */
  image: z.string().refine((uri) => parseEcrUri(uri)?.tag !== undefined, 'must be an ECR image with a tag'),
  digest: formed(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hexadecimal digits'),
  /** When it was resolved, ISO 8601. */
  resolvedAt: z.string(),
});
const schema = z.strictObject({
  schema: z.literal(1),
  /** By region, then by `image.base`. */
  bases: z.record(z.string(), z.record(z.string(), lockedBase)),
});

/** A base image and its digest. */
export type LockedBase = z.infer<typeof lockedBase>;
/** `<environment>.lock.yaml`: the digests of the base images for builds of an environment's image. */
export type ImageLock = z.infer<typeof schema>;

export const EMPTY_LOCK: ImageLock = { schema: 1, bases: {} };

/** The lock file that belongs to an environment file: `research.yaml` has `research.lock.yaml`. */
export const lockFileOf = (environmentFile: string): string => environmentFile.replace(/(\.ya?ml)?$/, '.lock.yaml');

/** Whether a file in a folder of environments is an environment file according to its name: YAML, but not a lock file. */
export const isEnvironmentFileName = (name: string): boolean => /\.ya?ml$/.test(name) && !/\.lock\.ya?ml$/.test(name);

/** Parses the text of a lock file. Never throws. */
export function loadImageLock(text: string): {
  value?: ImageLock;
  issues: Issue[];
  positionOf: YamlFile['positionOf'];
} {
  const { data, issues, positionOf } = parseYaml(text);
  if (issues.length > 0) return { issues, positionOf };
  const parsed = schema.safeParse(data, { reportInput: true });
  if (parsed.success) return { value: parsed.data, issues: [], positionOf };
  return { issues: zodIssues(parsed.error, () => []), positionOf };
}

/** The text of a lock file, with regions and bases sorted. */
export function imageLockText(lock: ImageLock): string {
  const head =
    '# Written by slipway preflight --lock: the digests that builds of the image start from. Commit it beside the environment file.\n';
  return head + stringify(lock, { sortMapEntries: true, lineWidth: 0, aliasDuplicateObjects: false });
}

/** The locked image by digest; undefined when the lock has none for this region and base. */
export function lockedBaseUri(lock: ImageLock, region: string, base: string): string | undefined {
  const found = lock.bases[region]?.[base];
  const parts = found && parseEcrUri(found.image);
  return found && parts && ecrImageByDigest(parts, found.digest);
}
