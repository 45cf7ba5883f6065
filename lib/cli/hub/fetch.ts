import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import type { Descriptor } from '../../core/config/descriptor';
import {
  fillPlaceholders,
  HUB_ROOT,
  type HubSource,
  hubFolder,
  mayUsePlace,
  parseHubSource,
} from '../../core/config/formats/places';
import { type FetchedCommit, namedHubSources } from '../../core/config/inline';
import { issue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { runCommand } from '../../core/contracts/names';
import { teamKeyVariable } from '../../core/job/team-key';
import { ask } from '../ask';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { findDescriptor } from '../environment/environment';
import { EXIT, Refusal, UsageError } from '../exit';
import { type CommonOptions, checkRunFile, type GivenFile, requireChecked, type ValidRun } from '../inputs';
import { submitConfirmed } from '../launch/submit';
import { waitForEnd } from '../runs/wait';
import { json, type Terminal } from '../terminal';
import { runTrainerModule } from '../trainer-module';
import { findFetched } from './fetched';
import {
  describeRepository,
  fetchRunText,
  HUB_MODULE,
  type HubOptions,
  pinnedText,
  type Repository,
  repositoryText,
  totalBytes,
} from './repository';

interface FetchOptions extends CommonOptions, HubOptions {
  /** Prefix in S3 for the folders of repositories. */
  to?: string;
  /** Patterns of file names. */
  include?: string[];
  local?: boolean;
  yes?: boolean;
  wait?: boolean;
}

/** The parts of a source; throws a UsageError for other text. */
export function requireHubSource(option: string, text: string): HubSource {
  const source = parseHubSource(text);
  if (source) return source;
  throw new UsageError(
    `${option}: must be hf:ORG/NAME[@REVISION] or hf:datasets/ORG/NAME[@REVISION], got ${text}; correct it`,
  );
}

/** `slipway fetch SOURCE`: copies a repository of a hub to the data bucket of a team, once, in the account or through this machine. */
export async function fetchSource(text: string, options: FetchOptions, terminal: Terminal): Promise<number> {
  const source = requireHubSource('source', text);
  const descriptor = await findDescriptor(options);
  const root = rootOf(options.to, descriptor);
  const repository = describeRepository(source, options);
  const folder = fillPlaceholders(hubFolder({ ...source, revision: repository.commit }, root), { descriptor });
  const { commit, files, licence, gated } = repository;
  const named = pinnedText(repository);
  const size = { bytes: totalBytes(repository), files: files.length };
  const facts = { source: named, commit, uri: folder, ...size, licence, gated };
  terminal.err(repositoryText(repository, folder));
  if (await isComplete(repository, descriptor, root)) {
    terminal.err(`${named}: was fetched before; nothing is copied`);
    if (options.json) terminal.out(json({ ...facts, runId: null }));
    return EXIT.done;
  }
  if (options.local) return fetchLocally(repository, { ...options, root, descriptor }, facts, terminal);
  const checked = checkedFetch([repository], options, descriptor, root);
  const { runId } = await submitConfirmed({ checked, file: 'fetch.yaml', descriptor }, options, terminal);
  if (options.json && !options.wait) terminal.out(json({ ...facts, runId }));
  if (options.wait) return waitForEnd(descriptor, runId, { ...options, logs: true }, terminal);
  terminal.err(`${runId}: ${runCommand('status', runId, descriptor, '--wait')} to follow it`);
  return EXIT.done;
}

/** The checked run that fetches repositories; throws a Refusal for a network without internet, and for a gated repository without a token. */
export function checkedFetch(
  repositories: readonly Repository[],
  options: CommonOptions & { include?: readonly string[] },
  descriptor: Descriptor,
  root = HUB_ROOT,
): ValidRun {
  const text = fetchRunText(repositories, root, options.include ?? [], process.env);
  const { json: asJson, region, set } = options;
  const checked = requireChecked(checkRunFile({ file: 'fetch.yaml', text }, { json: asJson, region, set }, descriptor));
  const locked = repositories.filter(({ gated }) => gated && checked.run.secrets?.HF_TOKEN === undefined);
  if (locked.length > 0) throw new Refusal(locked.map(withoutToken));
  return checked;
}

const withoutToken = ({ name }: Repository) =>
  issue('fetch/gated', 'error', 'secrets.HF_TOKEN', {
    must: `must name a secret with a token that has access to ${name}, which is gated`,
    got: 'none',
    fix: `accept its terms on its page, store the token in Secrets Manager, and add --set secrets.HF_TOKEN=NAME`,
  });

/** The prefix for the folders of repositories. */
function rootOf(to: string | undefined, descriptor: Descriptor): string {
  if (to === undefined) return HUB_ROOT;
  if (!/^s3:\/\/[^/]+\/.+\/$/.test(to) || !mayUsePlace('results', fillPlaceholders(to, { descriptor }), descriptor))
    throw new UsageError(
      `--to: must be a prefix that ends with / in a place that team ${descriptor.team} may write, got ${to}; use one such as ${HUB_ROOT}`,
    );
  return to;
}

/** Whether every file that is wanted of a commit has been fetched. */
async function isComplete(repository: Repository, descriptor: Descriptor, root: string): Promise<boolean> {
  const found = await findFetched(repository, descriptor, root);
  const known = new Set(found?.files.map(({ path }) => path));
  return found?.commit === repository.commit && repository.files.every(({ path }) => known.has(path));
}

async function fetchLocally(
  repository: Repository,
  options: FetchOptions & { root: string; descriptor: Descriptor },
  facts: object,
  terminal: Terminal,
): Promise<number> {
  const { root, descriptor, python, include = [] } = options;
  if (!options.yes) await ask('Copy it through this machine?', 'fetch');
  const words = ['--source', pinnedText(repository), '--revisions', repository.revision];
  words.push('--to', fillPlaceholders(root, { descriptor }));
  if (include.length > 0) words.push('--include', include.join(','));
  runTrainerModule('fetch', words, { ...HUB_MODULE, python, env: await s3Variables(descriptor), isShown: true });
  if (options.json) terminal.out(json({ ...facts, runId: null }));
  return EXIT.done;
}

/** Variables with which the step writes to S3 as the caller. Its client reads no profiles. */
async function s3Variables(descriptor: Descriptor): Promise<Record<string, string>> {
  const { credentials } = awsClient(S3Client, { region: descriptor.region }).config;
  const found = await calling('reading the AWS credentials', credentials);
  return {
    AWS_ACCESS_KEY_ID: found.accessKeyId,
    AWS_SECRET_ACCESS_KEY: found.secretAccessKey,
    ...(found.sessionToken && { AWS_SESSION_TOKEN: found.sessionToken }),
    AWS_REGION: descriptor.region,
    ...teamKeyVariable(descriptor),
  };
}

/**
 * Asks the hub for what a run file names and the team has not fetched: the run is checked with those commits, and waits for the run that
 * fetches them.
 */
export async function fetchFirst<T extends CommonOptions & HubOptions>(
  { text }: GivenFile,
  options: T,
  terminal: Terminal,
) {
  const { value } = loadRun(text, options.set);
  const descriptor = await findDescriptor(options, value?.environment);
  const missing: { repository: Repository; found: FetchedCommit; source: string }[] = [];
  for (const source of namedHubSources(text, options.set)) {
    const parsed = parseHubSource(source);
    if (parsed && !(await findFetched(parsed, descriptor)))
      missing.push({ source, ...describeOnHub(parsed, options.python, descriptor, terminal) });
  }
  if (missing.length === 0) return { options };
  const token = value?.secrets?.HF_TOKEN;
  const given = { region: options.region, set: token === undefined ? [] : [`secrets.HF_TOKEN=${token}`] };
  const fetch = checkedFetch(
    missing.map(({ repository }) => repository),
    given,
    descriptor,
  );
  const after = [...(value?.after ?? []), `latest:${fetch.run.name}`];
  return {
    fetch,
    options: {
      ...options,
      fetched: Object.fromEntries(missing.map(({ source, found }) => [source, found])),
      set: [...(options.set ?? []), `after=${JSON.stringify(after)}`],
    },
  };
}

function describeOnHub(
  source: HubSource,
  python: string | undefined,
  descriptor: Descriptor,
  terminal: Terminal,
): { repository: Repository; found: FetchedCommit } {
  const save = mkdtempSync(path.join(tmpdir(), 'slipway-hub-'));
  try {
    const isModel = source.kind === 'model';
    const repository = describeRepository(source, { python, ...(isModel && { save }) });
    terminal.err(
      repositoryText(
        repository,
        fillPlaceholders(hubFolder({ ...source, revision: repository.commit }), { descriptor }),
      ),
    );
    const config = repository.saved.includes('config.json')
      ? readFileSync(path.join(save, 'config.json'), 'utf8')
      : undefined;
    return { repository, found: { commit: repository.commit, ...(config !== undefined && { config }) } };
  } finally {
    rmSync(save, { recursive: true, force: true });
  }
}
