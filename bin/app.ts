import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { EnvironmentStack, isSandbox } from '../lib/constructs';
import { readEnvironments } from '../lib/constructs/read-environments';

const app = new App();
const { environments, problems } = readEnvironments({
  folder: app.node.tryGetContext('environments'),
  file: app.node.tryGetContext('environment'),
});
for (const problem of problems) console.error(problem.text);
if (problems.some((problem) => problem.level === 'error')) process.exit(1);

for (const { spec, runs } of environments) {
  const account = spec.account ?? process.env.CDK_DEFAULT_ACCOUNT;
  new EnvironmentStack(app, `Slipway-${spec.name}-${spec.region}`, {
    spec,
    runs,
    env: { account, region: spec.region },
  });
}
if (!isSandbox(app)) Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
