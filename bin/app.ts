import { App, Validations } from 'aws-cdk-lib';
import { isSandbox, slipwayApp } from '../lib/cdk';
import { RememberedValidation } from '../lib/cdk/launcher/remembered-validation';
import { embeddedEndpoint } from '../lib/shared/environment/embedded-endpoint';

const app = new App();

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

// The CDK would synthesise when Node.js becomes idle, and print an error with a stack trace.
slipwayApp(app)
  .then(() => app.synth())
  .catch((error: Error) => {
    console.error(process.env.SLIPWAY_DEBUG === '1' ? error.stack : `slipway: ${error.message}`);
    process.exit(1);
  });
