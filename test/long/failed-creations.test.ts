// A first deploy that fails once a resource of each type has been made: what it made goes, and the same deploy goes through afterwards.
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CloudFormationTemplate, Cycle } from '../e2e/support/cycle';

const FILE = 'quotas: { enforce: "off" }\nstorage: { retain: false }\nteams: { nlp: {}, speech: {} }\n';
const ROLLED_BACK = 'ROLLBACK_COMPLETE';

let cycle: Cycle;
let whole: CloudFormationTemplate;
beforeAll(async () => {
  cycle = await Cycle.start('faulty');
  whole = await cycle.synth(FILE);
});
afterAll(() => cycle?.end());

/** The template with a resource that cannot be made, as soon as the last one of a type is there. */
function failingAfter(type: string): CloudFormationTemplate {
  const made = Object.entries(whole.Resources).filter(([, resource]) => resource.Type === type);
  const DependsOn = made.map(([id]) => id);
  // Its function refuses properties that it does not know.
  const guard = Object.values(whole.Resources).find((resource) => resource.Type === 'Custom::SlipwayGuard');
  const Properties = { ServiceToken: guard?.Properties?.ServiceToken, guards: 'nothing' };
  return { ...whole, Resources: { ...whole.Resources, Fault: { Type: 'Custom::Fault', Properties, DependsOn } } };
}

test('fails at each type of resource in turn, and then deploys', async () => {
  const types = [...new Set(Object.values(whole.Resources).map(({ Type }) => Type))].sort();
  expect(types.length).toBeGreaterThan(15);
  const wrong: string[] = [];
  for (const type of types) {
    cycle.replaceTemplate(failingAfter(type));
    const { code, said } = await cycle.cdk('deploy');
    if (!said.includes('guards')) wrong.push(`${type}: ${said.slice(-300)}`);
    const [status, left] = [await cycle.status(), await cycle.buckets()];
    if (code === 0 || status !== ROLLED_BACK || left.length > 0) wrong.push(`${type}: ${code} ${status} ${left}`);
  }
  expect(wrong).toEqual([]);
  cycle.replaceTemplate(whole);
  await cycle.done('deploy');
  expect(await cycle.buckets()).toHaveLength(4);
});

test('the log of the failed deploys is there, in the log group that survives them', async () => {
  const logs = new CloudWatchLogsClient(cycle.client());
  const { logGroups = [] } = await logs.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: '/slipway/' }));
  expect(logGroups.map(({ logGroupName }) => logGroupName)).toEqual([`/slipway/${cycle.stackName}/deploys`]);
});

test('without retention a deletion leaves nothing but that log', async () => {
  await cycle.done('deploy', `${FILE}protection: { terminationProtection: false }\n`);
  await cycle.done('destroy');
  expect(await cycle.status()).toBeUndefined();
  expect(await cycle.buckets()).toEqual([]);
});
