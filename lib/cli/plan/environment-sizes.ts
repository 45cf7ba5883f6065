import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { textTable } from '../../core/config/formats/text-table';
import {
  ANY_ACCOUNT,
  type MeasuredSize,
  measureTemplate,
  type SentTemplate,
} from '../../shared/environment/template-sizes';
import { packageRoot } from '../../shared/files/own-package';
import { Refusal, UsageError } from '../exit';

/** Zones of a Region with the most: their subnets stand in the policies of every role. */
const ZONES = ['a', 'b', 'c', 'd', 'e', 'f'];
/** Number of the parts of a template that are closest to their limits. */
const SHOWN = 8;

/**
 * Sizes of everything that a deploy of an environment sends in each of its Regions, from the templates that a deploy would make. It
 * synthesises them without AWS, and for the largest number of zones.
 * @throws Refusal when the synthesis refuses the file
 */
export function environmentSizes(file: string, specs: readonly EnvironmentSpec[]): Record<string, MeasuredSize[]> {
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
    return Object.fromEntries(specs.map((spec) => [spec.region, sizesOf(out, spec, account)]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

function sizesOf(out: string, { name, region }: EnvironmentSpec, account: string): MeasuredSize[] {
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
