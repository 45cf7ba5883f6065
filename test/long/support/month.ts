// A platform team at work on the embedded AWS: the project from the packed package, its accounts, and what the team and its researchers do there.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { eventually } from '../../../lib/sandbox/testing';
import { type TestSandbox, testSandbox } from '../../e2e/support/sandbox';
import { CompanyAccount, type CompanyNetwork, REGION } from './company-account';
import { PackedProject, packedPackage } from './packed-project';

/** Name of the stack in each account. */
export const STACK = `Slipway-training-${REGION}`;
/** Code of the limit of ml.p4d.24xlarge for training jobs. */
export const P4D = 'L-09B4A649';
export const TEAMS = ['nlp', 'speech', 'vision'];
const RUN = (entryPoint: string) => `name: month
code: { source: ./code, entryPoint: ${entryPoint} }
compute: { instanceType: ml.m5.large, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 3600, maxCostUsd: 1 }
`;

/** What differs from the environment file of the first day. */
export interface Changes {
  teams?: string[];
  /** More sections, as YAML. */
  sections?: string;
}

export class Month {
  private readonly networks: Record<string, CompanyNetwork> = {};

  private constructor(
    readonly folder: string,
    readonly tarball: string,
    readonly project: PackedProject,
    readonly sandbox: TestSandbox,
  ) {}

  /**
   * An empty folder, the project in it, and an embedded AWS with IAM enforced.
   * @param account whose quotas the sandbox's own calls change
   * @param p4d limit of ml.p4d.24xlarge
   */
  static async begin(account: string, p4d: number): Promise<Month> {
    const folder = mkdtempSync(path.join(tmpdir(), 'slipway-month-'));
    const tarball = packedPackage(folder);
    const [project, sandbox] = await Promise.all([
      PackedProject.make(path.join(folder, 'project'), tarball, '--ci', 'gitlab'),
      testSandbox({ auth: true, accountId: account, quotas: { [P4D]: p4d }, time: { stopGraceSeconds: 5 } }),
    ]);
    mkdirSync(path.join(project.folder, 'runs/code'), { recursive: true });
    writeFileSync(path.join(project.folder, 'runs/code/short.py'), 'print("short")\n');
    writeFileSync(path.join(project.folder, 'runs/code/long.py'), 'import time\nwhile True:\n    time.sleep(1)\n');
    for (const name of ['short', 'long'])
      writeFileSync(path.join(project.folder, `runs/${name}.yaml`), RUN(`${name}.py`));
    return new Month(folder, tarball, project, sandbox);
  }

  async end(): Promise<void> {
    await this.sandbox.end();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** An account with its network and boundary. */
  async account(id: string): Promise<CompanyAccount> {
    const account = new CompanyAccount(id, this.project, this.sandbox.env);
    this.networks[id] = await account.prepare();
    return account;
  }

  networkOf({ id }: CompanyAccount): CompanyNetwork {
    return this.networks[id] ?? { vpcId: '', subnetIds: [], securityGroupIds: [] };
  }

  /** Writes the environment file for an account. @param instanceType two of which its quotas must allow */
  write(account: CompanyAccount, instanceType: string, { teams = TEAMS, sections = '' }: Changes = {}): void {
    const root = JSON.stringify([`arn:aws:iam::${account.id}:root`]);
    const text = `name: training
regions: { ${REGION}: {} }
accounts: { ${Object.keys(this.networks)
      .map((id, index) => `stage${index}: "${id}"`)
      .join(', ')} }
iam: { permissionsBoundary: ml-boundary, rolePath: /ml/, rolePrefix: acme- }
tags: { CostCenter: "1234" }
network: { mode: existing, existing: ${JSON.stringify(this.networkOf(account))} }
quotas: { requestIncrease: true, require: [{ instanceType: ${instanceType}, count: 2 }] }
guardrails: { allowedInstanceTypes: ["ml.m5.*", "ml.p4d.24xlarge"], maxInstancesPerRun: 4 }
access: { auditors: ${root} }
teams:
${teams.map((team) => `  ${team}: { principals: ${root}, budgetUsdPerMonth: 500 }\n`).join('')}${sections}`;
    writeFileSync(path.join(this.project.folder, 'environments/training.yaml'), text);
  }

  /** A program of the project. */
  program(name: string): string {
    return path.join(this.project.folder, 'node_modules/.bin', name);
  }

  /** The CDK as the administrator; the end of what it said, where the reason is. */
  async cdk(account: CompanyAccount, ...words: string[]): Promise<{ code: number; said: string }> {
    const { code, stdout, stderr } = await this.project.tryCall(account.admin, this.program('cdk'), ...words);
    return { code, said: `${stdout}${stderr}`.replace(/\s+/g, ' ').slice(-6000) };
  }

  async bootstrap(account: CompanyAccount): Promise<void> {
    const { code, said } = await this.cdk(account, 'bootstrap', `aws://${account.id}/${REGION}`);
    expect([code, code === 0 ? '' : said]).toEqual([0, '']);
  }

  deploy(account: CompanyAccount) {
    return this.cdk(account, 'deploy', '--all', '--method=direct', '--require-approval', 'never');
  }

  async deployed(account: CompanyAccount): Promise<void> {
    const { code, said } = await this.deploy(account);
    expect([code, code === 0 ? '' : said]).toEqual([0, '']);
  }

  slipway(env: Record<string, string>, ...words: string[]) {
    return this.project.tryCall(env, this.program('slipway'), ...words, '--region', REGION, '--json');
  }

  /** What a verb answers that must succeed. */
  async answer(env: Record<string, string>, ...words: string[]) {
    const { code, stdout, stderr } = await this.slipway(env, ...words);
    expect([words[0], code, code === 0 ? '' : `${stdout}${stderr}`]).toEqual([words[0], 0, '']);
    return JSON.parse(stdout);
  }

  /** A verb of a researcher about the team's runs. */
  async asks(account: CompanyAccount, team: string, ...words: string[]) {
    return this.answer(await account.as(`-${team}-researcher`), ...words, '--environment', `training/${team}`);
  }

  /** A run of a team, by one of its researchers; it must complete. */
  async completes(account: CompanyAccount, team: string, runId: string): Promise<void> {
    const words = ['launch', 'runs/short.yaml', '--run-id', runId, '--yes', '--wait'];
    expect(await this.asks(account, team, ...words)).toMatchObject({ runId, team, state: 'completed' });
  }

  async stateOf(account: CompanyAccount, team: string, runId: string): Promise<string> {
    return (await this.asks(account, team, 'status', runId)).state;
  }

  /** Launches a run that ends when it is stopped, and waits until its job trains. */
  async starts(account: CompanyAccount, team: string, runId: string): Promise<void> {
    await this.asks(account, team, 'launch', 'runs/long.yaml', '--run-id', runId, '--yes');
    await this.until(account, team, [runId, 'running']);
  }

  async stops(account: CompanyAccount, team: string, runId: string): Promise<void> {
    await this.asks(account, team, 'stop', runId);
    await this.until(account, team, [runId, 'stopped']);
  }

  private until(account: CompanyAccount, team: string, [runId, state]: [string, string]): Promise<unknown> {
    const isThere = async () => (await this.stateOf(account, team, runId)) === state;
    return eventually(isThere, { timeoutSeconds: 180, what: `${runId} is ${state}` });
  }
}
