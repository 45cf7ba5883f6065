import { type HubSource, hubSourceText } from '../../core/config/formats/places';
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
export interface Question extends HubOptions {
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
