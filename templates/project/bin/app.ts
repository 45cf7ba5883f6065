// One stack per Region of each file in environments/. `npx cdk synth` shows them, `npx cdk deploy --all` makes them.

import { App } from 'aws-cdk-lib';
import { slipwayApp } from 'slipway';

slipwayApp(new App()).catch((error: Error) => {
  console.error(`slipway: ${error.message}`);
  process.exit(1);
});
