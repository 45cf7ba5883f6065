import { stringify } from 'yaml';
import { STANDING_PRICES } from '../../core/catalog/prices/prices';
import constants from '../../core/catalog/trainer-constants.json';
import { type HubSource, hubSourceText } from '../../core/config/formats/places';
import { textTable } from '../../core/config/formats/plain-text';
import { bytes as bytesText, duration, usd } from '../../report/page/format';
import { runTrainerModule } from '../trainer-module';

/** A commit of a repository, as `slipway_trainer.fetch --describe` prints it. */
export interface Repository extends HubSource {
  commit: string;
  licence: string | null;
  gated: boolean;
  files: { path: string; bytes: number }[];
  /** Those that were saved on this machine. */
  saved: string[];
}

/** Options of the verbs that ask a hub. */
export interface HubOptions {
  /** @default python3 */
  python?: string;
}

/** What asking a hub needs besides the source. */
interface Question extends HubOptions {
  /** Patterns of file names. @default - the files that training reads */
  include?: readonly string[];
  /** Folder for the small files of a model, or one file of a data set. @default - none is saved */
  save?: string;
}

/**
 * Asks the hub for a repository, from this machine and with its HF_TOKEN.
 * @throws Refusal for a repository that cannot be used
 */
export function describeRepository(source: HubSource, { python, include = [], save }: Question): Repository {
  const words = ['--source', hubSourceText(source), '--describe'];
  if (include.length > 0) words.push('--include', include.join(','));
  if (save) words.push('--save', save);
  const printed = runTrainerModule('fetch', words, { ...HUB_MODULE, python });
  return (JSON.parse(printed.split('\n').at(-1) ?? '') as [Repository])[0];
}

/** How the fetch step runs on this machine. */
export const HUB_MODULE = { packages: ['huggingface_hub'], rule: 'fetch/source', path: 'source' } as const;

/** The source with its commit. */
export const pinnedText = (repository: Repository): string =>
  hubSourceText({ ...repository, revision: repository.commit });

export const totalBytes = ({ files }: Pick<Repository, 'files'>): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0);

/** Bytes per second that are assumed from a hub to S3; parallel files reach more in a large region. */
const ASSUMED_SPEED = 50e6;
const INSTANCE_TYPE = 'ml.m5.xlarge';
/** Largest volume of an instance. */
const MAX_VOLUME_GIB = 16_384;

/** A section of a run file, and the comment above it. */
export type Section = readonly [comment: string, content: Record<string, unknown>];

/** Text of a run file for people: each top-level key on a line of its own, with comments. */
export function runFileText(title: string, sections: readonly Section[]): string {
  const parts = sections.flatMap(([comment, content]) => [
    ...(comment === '' ? [] : [`# ${comment}`]),
    ...Object.entries(content).map(([key, value]) =>
      stringify({ [key]: value }, { lineWidth: 0, defaultStringType: 'PLAIN' }).trimEnd(),
    ),
  ]);
  return `# ${title}\n${parts.join('\n')}\n`;
}

/** Part of the name of a repository or file that may be in the name of a run. */
export const slugOf = (name: string): string =>
  (name.split('/').at(-1) ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 22)
    .replace(/^-+|-+$/g, '') || 'model';

const secondsOf = (bytes: number): number => 60 + bytes / ASSUMED_SPEED;

/** The run file that fetches repositories on one small CPU instance. */
export function fetchRunText(
  repositories: readonly Repository[],
  root: string,
  include: readonly string[],
  variables: NodeJS.ProcessEnv,
): string {
  const total = repositories.reduce((sum, one) => sum + totalBytes(one), 0);
  const largest = Math.max(0, ...repositories.flatMap(({ files }) => files.map((file) => file.bytes)));
  const runtime = Math.min(432_000, Math.max(3600, Math.ceil(4 * secondsOf(total))));
  const source = repositories.map(pinnedText).join(',');
  const revisions = repositories.map(({ revision }) => revision).join(',');
  return runFileText('Copies repositories of a hub to S3; a restart does not copy finished files again.', [
    ['', { name: `fetch-${slugOf(repositories[0]?.name ?? '')}`, kind: 'processing' }],
    [
      'commits, so that every attempt copies the same files, and the revisions by which runs find them',
      {
        code: {
          source: 'builtin-fetch',
          arguments: { source, revisions, ...(include.length > 0 && { include: include.join(',') }) },
        },
      },
    ],
    [
      `the volume holds ${constants.filesFetchedAtOnce} files at a time`,
      {
        compute: {
          instanceType: INSTANCE_TYPE,
          instanceCount: 1,
          volumeSizeGiB: Math.min(MAX_VOLUME_GIB, 30 + Math.ceil((constants.filesFetchedAtOnce * largest) / 2 ** 30)),
        },
      },
    ],
    ['<ORG>/<NAME>/<commit>/ below this prefix, with SOURCE.json', { output: { s3: root } }],
    ...(variables.HF_ENDPOINT
      ? [['the mirror of this machine', { environmentVariables: { HF_ENDPOINT: variables.HF_ENDPOINT } }] as const]
      : []),
    [
      `${bytesText(total)} at an assumed ${ASSUMED_SPEED / 1e6} MB/s take ${duration(secondsOf(total))}`,
      { limits: { maxRuntimeSeconds: runtime, maxCostUsd: Math.ceil(runtime / 3600) } },
    ],
  ]);
}

/** What people decide by before a repository is copied. */
export function repositoryText(repository: Repository, folder: string): string {
  const bytes = totalBytes(repository);
  return textTable(
    ['repository', `${pinnedText(repository)} (${repository.revision})`],
    [
      ['to', folder],
      ['size', `${bytesText(bytes)} in ${repository.files.length} files`],
      ['licence', repository.licence ?? 'not stated'],
      ['gated', repository.gated ? 'yes: its terms apply to the copy' : 'no'],
      ['time', `about ${duration(secondsOf(bytes))} at ${ASSUMED_SPEED / 1e6} MB/s`],
      ['storage', `${usd((bytes / 1e9) * STANDING_PRICES.s3GbMonth)} per month (S3 Standard, us-west-2)`],
    ],
  );
}
