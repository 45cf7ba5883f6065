import { dryRun, writeDryRun } from './dry-run';
import { EXIT, UsageError } from './exit';
import { type CommonOptions, isDescriptorFile, readDescriptor, requireRun } from './inputs';
import { issueLine, json, type Terminal } from './terminal';

export interface LaunchOptions extends CommonOptions {
  dryRun?: boolean;
  out?: string;
  runId?: string;
  yes?: boolean;
  wait?: boolean;
}

const RUN_ID = /^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/;

/** `slipway launch FILE`. */
export async function launch(file: string, options: LaunchOptions, terminal: Terminal): Promise<number> {
  if (options.runId !== undefined && !RUN_ID.test(options.runId)) {
    throw new UsageError(
      `--run-id: must be 1-45 lower-case letters, digits or inner hyphens, got ${options.runId}; leave it out to have one made`,
    );
  }
  if (!options.dryRun) throw new UsageError('launch without --dry-run: not supported yet; use --dry-run');
  return printDryRun(file, options, terminal);
}

async function printDryRun(file: string, options: LaunchOptions, terminal: Terminal): Promise<number> {
  if (!options.environment || !isDescriptorFile(options.environment)) {
    throw new UsageError(
      `--environment: must be a descriptor file (.json) for --dry-run without an account, got ${options.environment ?? 'nothing'}; name one`,
    );
  }
  const descriptor = readDescriptor(options.environment);
  const { run, issues, positionOf } = requireRun(file, options, descriptor);
  for (const found of issues) terminal.err(issueLine(found, file, positionOf));
  const result = await dryRun(run, file, descriptor, options);
  terminal.out(json(result.request));
  if (options.out) writeDryRun(result, options.out);
  return EXIT.done;
}
