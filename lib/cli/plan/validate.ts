import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { textTable } from '../../core/config/formats/plain-text';
import { bareIssue, hasErrors } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import { parsePath } from '../../core/config/reading/overrides';
import type { RunSpec } from '../../core/config/run-spec';
import { type FileIssue, readEnvironmentFile } from '../../shared/environment/read-environment-file';
import {
  ANY_ACCOUNT,
  type MeasuredSize,
  measureTemplate,
  type SentTemplate,
} from '../../shared/environment/template-sizes';
import { packageRoot } from '../../shared/files/own-package';
import { EXIT, Refusal, UsageError } from '../exit';
import { withS3Config } from '../hub/fetched';
import {
  type CommonOptions,
  checkRunFile,
  type GivenFile,
  isDescriptorFile,
  readDescriptor,
  readGiven,
} from '../inputs';
import { issueLine, json, type Terminal } from '../terminal';
import { type PreviewOptions, previewData } from './preview-data';

/** Zones of a Region with the most: their subnets stand in the policies of every role. */
const ZONES = ['a', 'b', 'c', 'd', 'e', 'f'];
/** Number of the parts of a template that are closest to their limits. */
const SHOWN = 8;

/**
 * Sizes of everything that a deploy of an environment sends in each of its Regions, from the templates that a deploy would make. It
 * synthesises them without AWS, and for the largest number of zones.
 * @throws Refusal when the synthesis refuses the file
 */
function environmentSizes(file: string, specs: readonly EnvironmentSpec[]): Record<string, MeasuredSize[]> {
  const root = packageRoot();
  const app = path.join(root, 'dist', 'bin', 'app.js');
  if (!existsSync(app))
    throw new UsageError(`--sizes: must find the CDK app of the package, got no ${app}; run npm run build`);
  const out = mkdtempSync(path.join(tmpdir(), 'slipway-sizes-'));
  try {
    const [first] = specs;
    const account = first?.account ?? Object.values(first?.accounts ?? {})[0] ?? ANY_ACCOUNT;
    const zones = specs.map(({ region }) => [
      `availability-zones:account=${account}:region=${region}`,
      ZONES.map((zone) => region + zone),
    ]);
    const { context } = JSON.parse(readFileSync(path.join(root, 'cdk.json'), 'utf8')) as { context: object };
    const given = { ...context, ...Object.fromEntries(zones), environment: file, checks: 'off', sandbox: '0' };
    const env = {
      ...process.env,
      CDK_CONTEXT_JSON: JSON.stringify(given),
      CDK_OUTDIR: out,
      CDK_DEFAULT_ACCOUNT: account,
    };
    const { status, stderr } = spawnSync(process.execPath, [app], { env, encoding: 'utf8' });
    if (status !== 0) throw new Refusal(refusals(stderr));
    return Object.fromEntries(specs.map((spec) => [spec.region, measuredSizes(out, spec, account)]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

function measuredSizes(out: string, { name, region }: EnvironmentSpec, account: string): MeasuredSize[] {
  const stack = `Slipway-${name}-${region}`;
  const template = JSON.parse(readFileSync(path.join(out, `${stack}.template.json`), 'utf8')) as SentTemplate;
  return measureTemplate(template, { stack, account, region }).sort((a, b) => b.size / b.limit - a.size / a.limit);
}

/** The lines of a synthesis that was refused. */
const refusals = (stderr: string) =>
  stderr
    .replace(/^slipway: /gm, '')
    .split('\n')
    .filter((line) => / must /.test(line))
    .map((message) => ({
      rule: 'environment/size',
      level: 'error' as const,
      path: message.split(':')[0] ?? '',
      message,
    }));

/** The sizes that are closest to their limits; the lengths of names change with the name of the environment alone. */
export const sizesText = (sizes: Record<string, MeasuredSize[]>): string =>
  Object.entries(sizes)
    .map(([region, found]) => {
      const parts = found.filter(({ unit }) => unit !== 'characters');
      const rows = parts
        .slice(0, SHOWN)
        .map(({ what, size, limit, unit }) => [
          ...[
            what,
            size.toLocaleString('en'),
            `${limit.toLocaleString('en')} ${unit}`,
            `${Math.round((100 * size) / limit)} %`,
          ],
        ]);
      return `${region}\n${textTable(['part', 'size', 'limit', 'used'], rows)}`;
    })
    .join('\n\n');

/** Options of `slipway validate`. */
export interface ValidateOptions extends CommonOptions, PreviewOptions {
  sizes?: boolean;
}

/** `slipway validate FILE`: checks schema and every rule; offline except for a `model.config` in S3. */
export async function validate(file: string, options: ValidateOptions, terminal: Terminal): Promise<number> {
  const given = readGiven(file);
  const { issues, run } = findIssues(given, await withS3Config(given, options));
  const ok = !hasErrors(issues);
  const sizes = options.sizes && ok ? sizesOf(given, options) : undefined;
  if (options.json) {
    const preview = options.data !== undefined && ok ? previewData(run, options, false) : undefined;
    terminal.out(json({ ok, issues: issues.map((found) => jsonIssue(found, file)), sizes, preview }));
  } else {
    printIssues(file, issues, terminal);
    if (sizes) terminal.out(sizesText(sizes));
    if (options.data !== undefined && ok) terminal.out(previewData(run, options, true));
  }
  return ok ? EXIT.done : EXIT.refused;
}

function sizesOf({ file, text }: GivenFile, options: CommonOptions) {
  if (!isEnvironmentFile(text))
    throw new UsageError(`--sizes: must be used with an environment file, got ${file}; leave it out`);
  return environmentSizes(file, readEnvironmentFile(file, text, options.set).specs);
}

function findIssues(given: GivenFile, options: CommonOptions): { issues: FileIssue[]; run?: RunSpec } {
  const { file, text } = given;
  if (isEnvironmentFile(text))
    return { issues: readEnvironmentFile(file, text, options.set).issues.map(withoutNeighbours) };
  // A name would need a service call; offline, only a descriptor file contains information about the environment.
  const descriptor =
    options.environment && isDescriptorFile(options.environment) ? readDescriptor(options.environment) : undefined;
  const { issues, positionOf, run } = checkRunFile(given, options, descriptor);
  return {
    issues: issues.map((found) => ({ ...found, file, position: positionOf(parsePath(found.path) ?? []) })),
    run,
  };
}

/** A file may be checked without its run files, and before `slipway preflight --lock`: only a deploy needs them. */
const withoutNeighbours = (found: FileIssue): FileIssue => (found.isAbsent ? { ...found, level: 'warning' } : found);

/** Contains `file` only if it differs from the given one: a lock file, or a run file that an environment names. */
function jsonIssue(found: FileIssue, requested: string): object {
  return { ...bareIssue(found), ...(found.file !== requested && { file: found.file }) };
}

function printIssues(file: string, issues: readonly FileIssue[], terminal: Terminal): void {
  for (const found of issues) terminal.err(issueLine(found, found.file, () => found.position));
  const count = (level: string) => issues.filter((i) => i.level === level).length;
  const [errors, warnings] = [count('error'), count('warning')];
  terminal.err(
    errors > 0 ? `${file}: ${errors} error(s), ${warnings} warning(s)` : `${file}: valid, ${warnings} warning(s)`,
  );
}
