// A pipeline that deploys each file in environments/ into the accounts that it names, the last one after an approval. `npx cdk synth` shows
// it, `npx cdk deploy SlipwayPipeline` makes it once; from then on it follows the branch, itself included.

import { App } from 'aws-cdk-lib';
import { CodePipelineSource } from 'aws-cdk-lib/pipelines';
import { slipwayPipeline } from 'slipway';

// A connection to GitHub, GitLab or Bitbucket, made once in the console of the account of the pipeline (Developer Tools, Connections).
const REPOSITORY = 'owner/{{name}}';
const CONNECTION = 'arn:aws:codeconnections:{{region}}:111122223333:connection/00000000-0000-0000-0000-000000000000';

slipwayPipeline(new App(), {
  source: CodePipelineSource.connection(REPOSITORY, 'main', { connectionArn: CONNECTION }),
}).catch((error: Error) => {
  console.error(`slipway: ${error.message}`);
  process.exit(1);
});
