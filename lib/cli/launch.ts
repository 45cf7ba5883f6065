import { elasticSizes } from '../rules/elastic';
import type { Descriptor } from '../spec/descriptor';
import { orList } from '../spec/issue';
import { confirmCost } from './confirm';
import { dryRun, writeDryRun } from './dry-run';
import { findDescriptor } from './environment';
import { EXIT, UsageError } from './exit';
import {
  type CheckedRun,
  type CommonOptions,
  checkRead,
  type ReadRun,
  readRunFile,
  requireChecked,
  requireSupported,
} from './inputs';
import { preflightRun } from './preflight';
import { RUN_ID } from './run-target';
import { withS3Config } from './s3-config';
import { mentionSmoke } from './smoke-record';
import { submit } from './submit';
import { issueLine, json, type Terminal } from './terminal';
import { waitForEnd } from './wait';

export interface LaunchOptions extends CommonOptions {
  dryRun?: boolean;
  out?: string;
  runId?: string;
  yes?: boolean;
  wait?: boolean;
  /** `path=a,b,c`: one run per combination of values. */
  matrix?: string[];
  /** The same code and strategy small: true or the place. */
  smoke?: true | string;
}

/** `slipway launch FILE`: validate, preflight, show the cost, ask, upload the code, submit. */
export async function launch(file: string, given: LaunchOptions, terminal: Terminal): Promise<number> {
  const options = await withS3Config(file, given);
  if (options.runId !== undefined && !RUN_ID.test(options.runId)) {
    throw new UsageError(
      `--run-id: must be 1-45 lower-case letters, digits or inner hyphens, got ${options.runId}; leave it out to have one made`,
    );
  }
  const { descriptor, read } = await environmentOf(file, options);
  if (options.smoke) return (await import('./smoke.js')).launchSmoke(file, descriptor, options, terminal);
  if (options.matrix) return (await import('./launch-matrix.js')).launchMatrix(file, descriptor, options, terminal);
  const checked = requireChecked(checkRead(read ?? readRunFile(file, options), options, descriptor));
  for (const found of checked.issues) terminal.err(issueLine(found, file, checked.positionOf));
  if (options.dryRun) return printDryRun(file, checked, descriptor, options, terminal);
  return submitRun(file, checked, descriptor, options, terminal);
}

/**
 * `--environment` wins over `environment:` of the run file, which is read for it then, and refused for what needs no environment
 * before AWS is asked for one.
 */
async function environmentOf(
  file: string,
  options: LaunchOptions,
): Promise<{ descriptor: Descriptor; read?: ReadRun }> {
  if (options.environment) return { descriptor: await findDescriptor(options) };
  const read = readRunFile(file, options);
  const { run } = requireChecked(checkRead(read, options));
  return { descriptor: await findDescriptor(options, run.environment), read };
}

type Checked = CheckedRun & { run: NonNullable<CheckedRun['run']> };

async function printDryRun(
  file: string,
  { run }: Checked,
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  const result = await dryRun(run, file, descriptor, options);
  const sizes = elasticSizes(run);
  if (sizes.length > 0)
    terminal.err(
      `compute.instanceCount: an attempt has ${orList(sizes)} instances, as there is room; this is the request for ${run.compute.instanceCount}`,
    );
  terminal.out(json(result.request));
  if (options.out) writeDryRun(result, options.out);
  return EXIT.done;
}

async function submitRun(
  file: string,
  checked: Checked,
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  requireSupported(checked);
  mentionSmoke(checked.run, file, terminal);
  await preflightRun(checked.run, descriptor, terminal);
  const acceptsUnknownPrice = await confirmCost(checked.run, descriptor, options.yes ?? false, terminal);
  const started = await submit(checked, file, descriptor, { ...options, acceptsUnknownPrice }, terminal);
  const { ok: _ok, ...answer } = started;
  if (!options.wait) {
    if (options.json) terminal.out(json(answer));
    else terminal.err(`${answer.runId}: ${answer.state}; slipway status ${answer.runId} --wait follows it`);
    return EXIT.done;
  }
  terminal.err(`${answer.runId}: ${answer.state}`);
  return waitForEnd(descriptor, answer.runId, options, terminal);
}
