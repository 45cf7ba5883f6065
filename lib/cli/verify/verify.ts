import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import pc from 'picocolors';
import type { Descriptor } from '../../core/config/descriptor';
import { resolveEnvironments } from '../../core/config/environment-file';
import { loadEnvironment } from '../../core/config/load';
import { usd } from '../../report/page/format';
import { renderVerifyPage, type VerifyReport } from '../../report/render-verify-page';
import { hasForeignEndpoint } from '../../shared/environment/embedded-endpoint';
import { standingCost } from '../../shared/environment/standing-cost';
import { replaceFile } from '../../shared/local/replace-file';
import { ask } from '../ask';
import { calling } from '../aws-errors';
import { callRegion, readDescriptors } from '../environment/environment';
import { EXIT, UsageError } from '../exit';
import { type CommonOptions, isDescriptorFile, readDescriptor } from '../inputs';
import { pollSeconds } from '../runs/wait';
import { interruptible, json, type Terminal } from '../terminal';
import { deployFile } from './account/deploy/deploy-world';
import { LEVELS, type Level, type ProbeResult, readWorld, requireAssumption } from './account/probe';
import { answeredIn, counts, maskedAccount, mostCost, recordProblems, type VerifyRecord } from './account/record';
import { type LevelOptions, type PreparedLevel, prepareLevel } from './levels';

const FOLDER = '.slipway/verify';

/** @throws UsageError when the file is not a record of this account, Region and environment */
export function readRecord(
  file: string,
  place: Pick<VerifyRecord, 'account' | 'region' | 'environment'>,
): VerifyRecord {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(
      `--resume: must be a readable record, got ${file}: ${(error as Error).message}; use a file in ${FOLDER}/`,
    );
  }
  const problems = recordProblems(value, place);
  if (problems.length > 0)
    throw new UsageError(`--resume: ${problems.join(', ')}; use a record of this account, Region and environment`);
  return value as VerifyRecord;
}

const reportOf = (record: VerifyRecord): VerifyReport => ({
  ...record,
  rows: record.probes.map((result) => {
    const { claim, ifWrong } = requireAssumption(result.assumption);
    return { ...result, level: result.id.split('/')[0] ?? '', claim, ifWrong };
  }),
});

export interface VerifyOptions extends CommonOptions {
  level?: string;
  yes?: boolean;
  resume?: string;
  cpuType?: string;
  efaType?: string;
  image?: string;
}

/** Small, cheap, and within the quota of a new account. */
const CPU_TYPE = 'ml.m5.large';
const POLL_SECONDS = 5;

/** `slipway verify ENVIRONMENT`: checks in an account whether the product's assumptions about AWS hold there. */
export async function verify(environment: string, options: VerifyOptions, terminal: Terminal): Promise<number> {
  const levels = levelsUpTo(options.level ?? 'read');
  const { name, descriptor, region } = await placeOf(environment, options);
  const now = () => Date.now();
  const read = readWorld({ region, environment: name, descriptor, now, sleep: (ms) => sleep(ms) });
  const identity = await calling(`calling GetCallerIdentity in ${region}`, () =>
    read.sts.send(new GetCallerIdentityCommand({})),
  );
  const account = identity.Account ?? '';
  const started = new Date();
  const id = idOf(started);
  const cpuType = options.cpuType ?? CPU_TYPE;
  const place = { account: maskedAccount(account), region, environment: name };
  const before = options.resume ? readRecord(options.resume, place) : undefined;
  const levelOptions: LevelOptions = {
    id,
    account,
    partition: identity.Arn?.split(':')[1] ?? 'aws',
    cpuType,
    efaType: options.efaType,
    image: options.image,
    pollMs: 1000 * pollSeconds(POLL_SECONDS),
    report: (text) => terminal.err(pc.dim(text)),
  };
  const prepared = levels.map((level) => prepareLevel(level, read, levelOptions));
  const costUsd = await confirmMost(levels, { region, cpuType }, options, terminal);
  const record: VerifyRecord = {
    schema: 1,
    ...place,
    level: levels.at(-1) ?? 'read',
    embedded: hasForeignEndpoint(),
    startedAt: started.toISOString(),
    probes: [...answeredIn(before).values()],
    costUsd,
    left: [],
  };
  mkdirSync(FOLDER, { recursive: true });
  return runAll(prepared, { record, path: path.join(FOLDER, id) }, options, terminal);
}

/** `20261123-091500`: the name of the record, and part of the names of what the levels create. */
const idOf = (started: Date): string =>
  started
    .toISOString()
    .replaceAll(/[-:]|\.\d+Z/g, '')
    .replace('T', '-');

function levelsUpTo(wanted: string): Level[] {
  const index = (LEVELS as readonly string[]).indexOf(wanted);
  if (index < 0) throw new UsageError(`--level: must be read, deploy, train or efa, got ${wanted}; use one of them`);
  return LEVELS.slice(0, index + 1);
}

/** The environment; level read works before it is deployed. */
async function placeOf(
  environment: string,
  options: VerifyOptions,
): Promise<{ name: string; region: string; descriptor?: Descriptor }> {
  if (isDescriptorFile(environment)) {
    const descriptor = readDescriptor(environment);
    return { name: descriptor.name, region: options.region ?? descriptor.region, descriptor };
  }
  const [name = '', team] = environment.split('/');
  if (!/^[a-z][a-z0-9]{0,11}$/.test(name))
    throw new UsageError(
      `ENVIRONMENT: must be the name of an environment, got ${environment}; write research or research/nlp`,
    );
  const region = await callRegion(options);
  const all = await readDescriptors(name, region);
  const descriptor = team ? all.find((d) => d.team === team) : all[0];
  if (team && !descriptor)
    throw new UsageError(
      `ENVIRONMENT: must be a deployed team of ${name} in ${region}, got ${team}; deploy it, or write ${name}`,
    );
  return { name, region, descriptor };
}

/** Standing cost of the environment of level `deploy`, USD per month. */
function standingUsd(region: string): number {
  const account = '111122223333';
  const place = { region, account, partition: 'aws', image: `${account}.dkr.ecr.${region}.amazonaws.com/own:1` };
  const { value } = loadEnvironment(deployFile(place));
  return value ? resolveEnvironments(value).reduce((sum, spec) => sum + standingCost(spec).usdPerMonth, 0) : 0;
}

/** Shows the maximum cost of the levels and asks for confirmation, unless it is zero. */
async function confirmMost(
  levels: readonly Level[],
  { region, cpuType }: { region: string; cpuType: string },
  options: VerifyOptions,
  terminal: Terminal,
): Promise<number> {
  const costs = mostCost(levels, region, { cpu: cpuType, efa: options.efaType }, standingUsd(region));
  const unknown = costs.filter((cost) => cost.usd === undefined);
  const total = costs.reduce((sum, cost) => sum + (cost.usd ?? 0), 0);
  const parts = costs.map(({ level, usd: most }) => `${level} ${most === undefined ? 'not known' : usd(most)}`);
  terminal.err(`cost: at most ${usd(total)} (${parts.join(', ')})`);
  if (unknown.length > 0 && !options.yes) terminal.err('the price of an instance type is not known in this Region');
  if (levels.length > 1 && !options.yes) await ask('Run these probes?', 'verify');
  return total;
}

/** A record, and its path without the ending. */
interface KeptRecord {
  record: VerifyRecord;
  path: string;
}

/** Writes the record and its page, again after each probe, so that nothing is lost when the command ends early. */
function save({ record, path }: KeptRecord): void {
  replaceFile(`${path}.json`, `${JSON.stringify(record, null, 2)}\n`);
  replaceFile(`${path}.html`, renderVerifyPage(reportOf(record)));
}

async function runAll(
  prepared: readonly PreparedLevel[],
  kept: KeptRecord,
  options: VerifyOptions,
  terminal: Terminal,
): Promise<number> {
  const isInterrupted = await interruptible(
    () => terminal.err('interrupted: cleaning up; do not interrupt again'),
    async (interrupted) => {
      for (const level of prepared) {
        if (interrupted.aborted) break;
        await runLevel(level, kept, interrupted, terminal);
      }
      return interrupted.aborted;
    },
  );
  kept.record.endedAt = new Date().toISOString();
  save(kept);
  return finish(kept, isInterrupted, options, terminal);
}

/** Runs the probes of one level that have no result yet, and cleans up after them in any case. */
async function runLevel(
  level: PreparedLevel,
  kept: KeptRecord,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<void> {
  const { record } = kept;
  const answered = new Set(record.probes.map((result) => result.id));
  const waiting = level.probes.filter(({ assumption }) => !answered.has(`${level.level}/${assumption}`));
  const aborted = new Promise<'aborted'>((resolve) => {
    signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
  const worker = async () => {
    for (;;) {
      const probe = waiting.shift();
      if (!probe || signal.aborted) return;
      const result = await Promise.race([probe.run(), aborted]);
      if (result === 'aborted') return;
      record.probes.push(result);
      save(kept);
      terminal.err(resultLine(result));
    }
  };
  try {
    await Promise.all(Array.from({ length: level.atOnce }, worker));
  } finally {
    record.left.push(...(await level.cleanUp()));
  }
}

const TONES = { holds: pc.green, differs: pc.red, unknown: pc.yellow } as const;

const resultLine = ({ id, verdict, expected, seen }: ProbeResult) =>
  `${TONES[verdict](verdict.padEnd(7))} ${id}: ${verdict === 'holds' ? seen : `expected ${expected}; seen ${seen}`}`;

function finish(
  { record, path }: KeptRecord,
  interrupted: boolean,
  options: VerifyOptions,
  terminal: Terminal,
): number {
  const { holds, differs, unknown } = counts(record.probes);
  for (const line of record.left) terminal.err(pc.red(`remaining in the account: ${line}`));
  const { account, region, level, probes, costUsd, left } = record;
  const files = { record: `${path}.json`, page: `${path}.html` };
  if (options.json) terminal.out(json({ account, region, level, probes, costUsd, left, ...files }));
  else terminal.out(`${holds} hold, ${differs} differ, ${unknown} unknown\n${files.record}\n${files.page}`);
  if (interrupted) return EXIT.interrupted;
  return differs > 0 ? EXIT.refused : EXIT.done;
}
