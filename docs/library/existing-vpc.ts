// A whole environment in a VPC that exists already, from options in code instead of a file.
import { App } from 'aws-cdk-lib';
import { EnvironmentStack, loadEnvironment, resolveEnvironments } from 'slipway';

const REGION = 'us-west-2';
const { value, issues } = loadEnvironment(
  JSON.stringify({
    name: 'shared',
    account: '111122223333',
    regions: { [REGION]: {} },
    network: {
      mode: 'existing',
      existing: {
        vpcId: 'vpc-0123456789abcdef0',
        subnetIds: ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'],
        securityGroupIds: ['sg-0123456789abcdef0'],
      },
    },
    teams: { nlp: { share: 2, budgetUsdPerMonth: 50_000 }, speech: {} },
  }),
);
if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));

const app = new App();
for (const spec of resolveEnvironments(value))
  new EnvironmentStack(app, `Slipway-${spec.name}-${spec.region}`, {
    spec,
    env: { account: spec.account, region: spec.region },
  });
app.synth();
