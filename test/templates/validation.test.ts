// What `cdk synth` itself finds in a template: CloudFormation's own validation, which the other tests of templates leave out, and AwsSolutions.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { App, CfnResource, Validations } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { AwsSolutionsChecks } from 'cdk-nag';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { RememberedValidation } from '../../lib/cdk/launcher/remembered-validation';
import type { EnvironmentSpec } from '../../lib/core/config/environment-file';
import { ENV, SYNTH_MS, testApp } from '../cdk/support/app';
import { drawnFiles, specOfFile } from '../laws/support/family';
import { specs, ZONES } from './support/templates';

const isWhole = process.env.SLIPWAY_LAWS === 'all';
vi.setConfig({ testTimeout: isWhole ? 10 * SYNTH_MS : SYNTH_MS });

const SEED = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 1_000_000);

/** One app with the stacks of several environments, so that the validator reads its rules once. */
function checkedApp(environments: Record<string, EnvironmentSpec>) {
  const app = testApp(ZONES);
  const stacks = Object.entries(environments).map(
    ([name, spec]) => new EnvironmentStack(app, name.replace(/\W/g, '-'), { spec, env: ENV }),
  );
  return { app, stacks };
}

const EVERYTHING = specs().everything as EnvironmentSpec;
/** Stores its reports in a folder of the run. One for all tests, because it takes seconds to read its rules. */
const KEPT = mkdtempSync(path.join(tmpdir(), 'slipway-validation-'));
const VALIDATION = new RememberedValidation(KEPT);
const WRONG = 'everything-and-wrong';

/** The environments of this run: all of them with `SLIPWAY_LAWS=all`, otherwise a few that the seed selects, because each takes a second. */
function drawnEnvironments(): Record<string, EnvironmentSpec> {
  const files = drawnFiles(SEED, isWhole ? 40 : 2).flatMap((file, place) => {
    const spec = specOfFile(file);
    return spec ? [[`drawn-${place}`, spec] as const] : [];
  });
  const known = Object.entries(specs());
  const [some = []] = fc.sample(fc.shuffledSubarray(known, { minLength: 1, maxLength: 1 }), { seed: SEED, numRuns: 1 });
  return Object.fromEntries([...(isWhole ? known : some), ...files]);
}

/** What a synthesis finds in all stacks of one app, as the text of its error. One app, because the validator takes seconds to start. */
function findings(): string {
  const { app, stacks } = checkedApp({ ...drawnEnvironments(), [WRONG]: EVERYTHING });
  const stack = stacks.at(-1) as EnvironmentStack;
  new CfnResource(stack, 'Wrong', { type: 'AWS::S3::Bucket', properties: { Nonsense: 1 } });
  const anyObject = new PolicyStatement({ actions: ['s3:GetObject'], resources: ['arn:aws:s3:::other/*'] });
  Object.values(stack.roles.teams)[0]?.execution.addToPrincipalPolicy(anyObject);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), VALIDATION);
  try {
    app.synth();
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}

test('fails: a property that CloudFormation does not have and a wildcard without a reason; nothing else is found', () => {
  const errors = findings()
    .split(/\n\n+/)
    .filter((block) => block.startsWith('ERROR'));
  const places = errors.map((block) => [...block.matchAll(/^ {3}(Acknowledge.*|\S+)/gm)].map(([, words]) => words));
  expect(places, `SLIPWAY_LAWS_SEED=${SEED}`).toEqual([
    [
      `${WRONG}/Roles/nlp-execution/DefaultPolicy/Resource`,
      "Acknowledge with 'AwsSolutions::AwsSolutions-IAM5[Resource::arn:aws:s3:::other/*]'",
    ],
    [`${WRONG}/Wrong`, "Acknowledge with 'CloudFormation-Validate::F3002'"],
  ]);
});

test('what CloudFormation finds comes back from the kept report with the path of this synthesis', () => {
  // The second object reads the report that the first one stored.
  const [first = [], second = []] = [VALIDATION, new RememberedValidation(KEPT)].map((validation, number) => {
    const templatePath = path.join(KEPT, `${number}.template`);
    const Logs = { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 'soon' } };
    writeFileSync(templatePath, JSON.stringify({ Resources: { Logs } }));
    const stack = { stackConstructPath: 'Stack', templatePath, accountId: ENV.account, region: ENV.region };
    const context = { stackTemplates: [stack], templatePaths: [templatePath], appConstruct: new App() };
    return validation.validate(context).violations;
  });
  expect(first.length).toBeGreaterThan(0);
  expect(second.map(({ ruleName }) => ruleName)).toEqual(first.map(({ ruleName }) => ruleName));
  expect(second[0]?.violatingResources[0]?.templatePath).toBe(path.join(KEPT, '1.template'));
});
