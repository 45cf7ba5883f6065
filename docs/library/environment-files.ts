// Environment files in a CDK app of one's own: the same loader as `slipway validate` and `cdk deploy` use, so that nothing reaches
// CloudFormation that a rule refuses.
import { App, Tags } from 'aws-cdk-lib';
import { EnvironmentStack, type EnvironmentToMake, readEnvironments } from 'slipway';

const app = new App();

function make({ spec, ...rest }: EnvironmentToMake): void {
  const env = { account: spec.account ?? process.env.CDK_DEFAULT_ACCOUNT, region: spec.region };
  const stack = new EnvironmentStack(app, `Slipway-${spec.name}-${spec.region}`, { spec, env, ...rest });
  Tags.of(stack).add('cost-centre', 'research');
}

async function main(): Promise<void> {
  const { environments, problems } = await readEnvironments({ folder: 'environments' });
  for (const { text } of problems) console.error(text);
  if (problems.some(({ level }) => level === 'error')) process.exit(1);
  for (const environment of environments) make(environment);
  app.synth();
}

void main();
