import path from 'node:path';
import type { Demo } from './main';
import type { Finished } from './programs';
import { screen } from './screen';

const ENVIRONMENT = 'environments/demo.yaml';
export const REGIONS = ['us-west-2', 'us-east-1'] as const;
const ACCOUNT = '000000000000';

const stackOf = (region: string) => `Slipway-demo-${region}`;

export interface QuotaRefusal {
  quota: string;
  needed: number;
  limit: number;
}

export interface DeployedRegion {
  region: string;
  stack: string;
  deploySeconds: number;
}

/** Synthesises once, shows the deploy being refused on quota before anything is made, then raises the quota. */
export async function refuseThenCure(demo: Demo): Promise<QuotaRefusal> {
  screen.step(2, 'cdk bootstrap and synth, two regions');
  const assembly = path.join(demo.folder, 'cdk.out');
  await Promise.all([
    cdk(demo, 'bootstrap', ['bootstrap', ...REGIONS.map((r) => `aws://${ACCOUNT}/${r}`), '--app', '']),
    cdk(demo, 'synth', ['synth', '--quiet', '--output', assembly, '-c', `environment=${ENVIRONMENT}`]),
  ]);
  screen.step(3, 'cdk deploy is refused: the environment needs more than the quota allows');
  const refused = await demo.programs.run(
    'deploy-refused',
    cdkBin(demo),
    deployArguments(assembly, [stackOf(REGIONS[0])]),
  );
  if (refused.code === 0) throw new Error('deploy-refused: must fail on quota, got a deployed stack; see the log');
  screen.detail(refusalLine(`${refused.stdout}\n${refused.stderr}`));
  const [rows, table] = await Promise.all([shortQuotas(demo), quotaTable(demo)]);
  const first = rows[0];
  if (!first) throw new Error('deploy-refused: failed, but no quota is short; see the log');
  screen.detail(table);
  screen.detail('the quotas are raised (here by the sandbox; on AWS: slipway quota environments/demo.yaml --request)');
  for (const region of REGIONS) for (const row of rows) await demo.admin.setQuota(region, row.code, row.needed);
  return { quota: first.code, needed: first.needed, limit: first.limit };
}

/** The same deploy again, both regions. */
export async function deployAll(demo: Demo): Promise<DeployedRegion[]> {
  screen.step(4, 'the same cdk deploy goes through, two regions');
  const started = Date.now();
  const seconds = new Map<string, number>();
  await demo.programs.mustRun(
    'deploy',
    cdkBin(demo),
    deployArguments(path.join(demo.folder, 'cdk.out'), REGIONS.map(stackOf)),
    (line) => {
      for (const region of REGIONS) {
        if (line.includes('✅') && line.includes(stackOf(region))) seconds.set(region, (Date.now() - started) / 1000);
      }
    },
  );
  return REGIONS.map((region) => {
    const deploySeconds = Math.round(seconds.get(region) ?? (Date.now() - started) / 1000);
    screen.detail(`${stackOf(region)}: ${deploySeconds} s`);
    return { region, stack: stackOf(region), deploySeconds };
  });
}

const cdkBin = (demo: Demo) => path.join(demo.root, 'node_modules/.bin/cdk');

const cdk = (demo: Demo, name: string, args: readonly string[]) => demo.programs.mustRun(name, cdkBin(demo), args);

const deployArguments = (assembly: string, stacks: readonly string[]) => [
  'deploy',
  ...stacks,
  '--app',
  assembly,
  '--method=direct',
  '--require-approval',
  'never',
  '--concurrency',
  '2',
];

/** What CloudFormation said, without the CDK's frame around it. */
function refusalLine(output: string): string {
  const line = output.split('\n').find((l) => /quota/i.test(l) && /limit/i.test(l));
  return (line ?? output.trim().split('\n').slice(-3).join('\n')).trim().slice(0, 900);
}

interface ShortQuota {
  code: string;
  needed: number;
  limit: number;
}

async function shortQuotas(demo: Demo): Promise<ShortQuota[]> {
  const { stdout } = await quota(demo, 'quota-json', '--json');
  const { quotas } = JSON.parse(stdout) as { quotas: (ShortQuota & { verdict: string })[] };
  return quotas.filter((q) => q.verdict === 'short');
}

async function quotaTable(demo: Demo): Promise<string> {
  const { stdout, stderr } = await quota(demo, 'quota');
  return `${stdout}\n${stderr}`.trim();
}

function quota(demo: Demo, name: string, ...options: string[]): Promise<Finished> {
  const [node = '', cli = ''] = demo.slipway;
  const words = ['quota', path.join(demo.root, ENVIRONMENT), '--region', REGIONS[0], ...options];
  return demo.programs.mustRun(name, node, [cli, ...words]);
}
