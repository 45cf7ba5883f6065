// A save that IAM refuses to the role of a job, through the real trainer on the embedded AWS with IAM enforced.
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { set, uploadText } from '../e2e/roles/calls';
import { ROLE, without } from '../e2e/roles/credentials';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
teams: { default: { data: ["demo-tokens/"] } }
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 8, 'L-622CFD70': 8 };
const short = set(
  ...[
    'training.steps=8',
    'training.microBatchSize=1',
    'training.globalBatchSize=4',
    'code.arguments.save-every-steps=2',
  ],
  ...['compute.instanceCount=1', 'limits.maxAttempts=1'],
);

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, { auth: true });
  await uploadText(deployed);
});
afterAll(() => deployed?.end());

const launch = (file: string, id: string, ...more: string[]) =>
  deployed.slipwayAs({}, 'launch', path.join(ROOT, 'runs', file), '--yes', '--wait', '--json', '--run-id', id, ...more);

test("without the trainer's s3:DeleteObject, a save cannot take its old marker away and the run says so", async () => {
  const tokens = await launch('data/demo-tokenize.yaml', 'tokens');
  expect(tokens.code, tokens.stderr).toBe(0);
  await without(deployed, `${ROLE}-default-execution`, 's3:DeleteObject', async () => {
    const denied = await launch('builtin/demo.yaml', 'denied-delete', ...short);
    expect(denied.code).toBe(4);
    expect(denied.stderr).toMatch(/a checkpoint could not be written.*403/);
  });
});
