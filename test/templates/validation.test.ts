// What `cdk synth` itself finds in a template: CloudFormation's own validation, which the other tests of templates leave out, and AwsSolutions.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { App, CfnResource, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { AwsSolutionsChecks } from 'cdk-nag';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/constructs';
import { RememberedValidation } from '../../lib/constructs/launcher/remembered-validation';
import type { EnvironmentSpec } from '../../lib/spec/environment-file';
import { ENV, SYNTH_MS, validatedApp } from '../constructs/support/app';
import { drawnFiles, specOfFile } from '../laws/support/family';
import { specs, ZONES } from './support/templates';

const isWhole = process.env.SLIPWAY_LAWS === 'all';
vi.setConfig({ testTimeout: isWhole ? 10 * SYNTH_MS : SYNTH_MS });

const SEED = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 1_000_000);

/** One app with the stacks of several environments: the validator reads its rules once for all of them. */
function checkedApp(environments: Record<string, EnvironmentSpec>) {
  const app = validatedApp(ZONES);
  const stacks = Object.entries(environments).map(
    ([name, spec]) => new EnvironmentStack(app, name.replace(/\W/g, '-'), { spec, env: ENV }),
  );
  return { app, stacks };
}

const EVERYTHING = specs().everything as EnvironmentSpec;

/** A template takes half a second: every one of them with `SLIPWAY_LAWS=all`, otherwise a few that the seed draws. */
function drawnEnvironments(): Record<string, EnvironmentSpec> {
  const files = drawnFiles(SEED, isWhole ? 40 : 3).flatMap((file, place) => {
    const spec = specOfFile(file);
    return spec ? [[`drawn-${place}`, spec] as const] : [];
  });
  const known = Object.entries(specs());
  const [some = []] = fc.sample(fc.shuffledSubarray(known, { minLength: 2, maxLength: 2 }), { seed: SEED, numRuns: 1 });
  return Object.fromEntries([...(isWhole ? known : some), ...files]);
}

test('CloudFormation takes the templates of examples, and of files drawn from the family of all options', () => {
  const { app } = checkedApp(drawnEnvironments());
  expect(() => app.synth(), `SLIPWAY_LAWS_SEED=${SEED}`).not.toThrow();
});

test('AwsSolutions and CloudFormation find nothing in an environment with everything', () => {
  const { app } = checkedApp({ EVERYTHING });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  expect(() => app.synth()).not.toThrow();
});

test('fails: a property that CloudFormation does not have, a statement with a wildcard that nobody gave a reason for', () => {
  const { app, stacks } = checkedApp({ EVERYTHING });
  const [stack] = stacks as [EnvironmentStack];
  new CfnResource(stack, 'Wrong', { type: 'AWS::S3::Bucket', properties: { Nonsense: 1 } });
  const anyObject = new PolicyStatement({ actions: ['s3:GetObject'], resources: ['arn:aws:s3:::other/*'] });
  Object.values(stack.roles.teams)[0]?.execution.addToPrincipalPolicy(anyObject);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  expect(() => app.synth()).toThrow(/IAM5\[Resource::arn:aws:s3:::other[\s\S]*Nonsense/);
});

test('what CloudFormation finds comes back from the kept report with the path of this synthesis', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-validation-'));
  try {
    const found = ['a.json', 'b.json'].map((name) => {
      const templatePath = path.join(folder, name);
      const Logs = { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 'soon' } };
      writeFileSync(templatePath, JSON.stringify({ Resources: { Logs } }));
      const stack = { stackConstructPath: 'Stack', templatePath, accountId: ENV.account, region: ENV.region };
      const context = { stackTemplates: [stack], templatePaths: [templatePath], appConstruct: new App() };
      return new RememberedValidation(path.join(folder, 'kept')).validate(context).violations;
    });
    const [first = [], second = []] = found;
    expect(first.length).toBeGreaterThan(0);
    expect(second.map(({ ruleName }) => ruleName)).toEqual(first.map(({ ruleName }) => ruleName));
    expect(second[0]?.violatingResources[0]?.templatePath).toBe(path.join(folder, 'b.json'));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
