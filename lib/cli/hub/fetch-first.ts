import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders, type HubSource, hubFolder, parseHubSource } from '../../core/config/formats/places';
import { type FetchedCommit, namedHubSources } from '../../core/config/inline';
import { loadRun } from '../../core/config/load';
import type { RunSpec } from '../../core/config/run-spec';
import { findDescriptor } from '../environment/environment';
import type { CheckedRun, CommonOptions, GivenFile } from '../inputs';
import type { Terminal } from '../terminal';
import { checkedFetch } from './fetch';
import { repositoryText } from './fetch-run';
import { findFetched } from './fetched';
import { describeRepository, type HubOptions, type Repository } from './repository';

/** A launch whose missing repositories are fetched by a run before it. */
export interface FetchFirst<T> {
  options: T;
  /** Absent when everything has been fetched. */
  fetch?: CheckedRun & { run: RunSpec };
}

/**
 * Asks the hub for what a run file names and the team has not fetched: the run is checked with those commits, and waits for the run that
 * fetches them.
 */
export async function fetchFirst<T extends CommonOptions & HubOptions>(
  { text }: GivenFile,
  options: T,
  terminal: Terminal,
): Promise<FetchFirst<T>> {
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
