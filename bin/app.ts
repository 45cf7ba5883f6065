import { App, Validations } from 'aws-cdk-lib';
import { EnvironmentStack, isSandbox } from '../lib/constructs';
import { readEnvironments } from '../lib/constructs/read-environments';
import { RememberedValidation } from '../lib/constructs/remembered-validation';
import { embeddedEndpoint } from '../lib/constructs/sandbox-context';

const app = new App();

async function makeStacks(): Promise<void> {
  const { environments, problems } = await readEnvironments({
    folder: app.node.tryGetContext('environments'),
    file: app.node.tryGetContext('environment'),
  });
  for (const problem of problems) console.error(problem.text);
  if (problems.some((problem) => problem.level === 'error')) process.exit(1);

  for (const { spec, baseImageUri, runs, submissions } of environments) {
    const account = spec.account ?? process.env.CDK_DEFAULT_ACCOUNT;
    new EnvironmentStack(app, `Slipway-${spec.name}-${spec.region}`, {
      spec,
      baseImageUri,
      runs,
      submissions,
      env: { account, region: spec.region },
    });
  }
}

const embedded = embeddedEndpoint();
if (isSandbox(app) && embedded)
  console.error(
    `slipway: CloudFormation is at ${embedded}, so this template is for the embedded AWS (-c sandbox=0 forbids it)`,
  );

// The checks take longer than the synthesis: `-c checks=off` leaves them out between two deploys of one's own, and the template
// for the embedded AWS, which is not the one that is checked, always goes without.
if (isSandbox(app) || app.node.tryGetContext('checks') === 'off') process.env.CDK_VALIDATION = 'false';
else addChecks();

function addChecks(): void {
  const { AwsSolutionsChecks } = require('cdk-nag') as typeof import('cdk-nag');
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new RememberedValidation('.slipway/validation'));
}

// CDK synthesises when Node has nothing left to do, so that nobody waits for this.
makeStacks().catch((error: Error) => {
  console.error(process.env.SLIPWAY_DEBUG === '1' ? error.stack : `slipway: ${error.message}`);
  process.exit(1);
});
