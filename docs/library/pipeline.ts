// The environments of a folder through a pipeline over several accounts: each account is a stage, the production one after an approval.
// Bootstrap every account with `cdk bootstrap --trust <account of the pipeline>` first.
import { App, Stack, type StackProps, Stage, type StageProps } from 'aws-cdk-lib';
import * as pipelines from 'aws-cdk-lib/pipelines';
import { EnvironmentStack, type EnvironmentToMake, readEnvironments } from 'slipway';

const ACCOUNTS = { dev: '111122223333', prod: '444455556666' };
const CONNECTION = 'arn:aws:codeconnections:us-west-2:111122223333:connection/00000000-0000-0000-0000-000000000000';

class Environments extends Stage {
  constructor(
    scope: Stack,
    id: string,
    { environments, ...props }: StageProps & { environments: EnvironmentToMake[] },
  ) {
    super(scope, id, props);
    for (const { spec, ...rest } of environments) {
      // The same files in every account: the stage says which one.
      const ofStage = { ...spec, account: this.account };
      const env = { account: this.account, region: spec.region };
      new EnvironmentStack(this, `Slipway-${spec.name}-${spec.region}`, { spec: ofStage, env, ...rest });
    }
  }
}

class PipelineStack extends Stack {
  constructor(scope: App, id: string, { environments, ...props }: StackProps & { environments: EnvironmentToMake[] }) {
    super(scope, id, props);
    const pipeline = new pipelines.CodePipeline(this, 'Pipeline', {
      crossAccountKeys: true,
      synth: new pipelines.ShellStep('Synth', {
        input: pipelines.CodePipelineSource.connection('acme/training', 'main', { connectionArn: CONNECTION }),
        commands: [
          'npm ci',
          'for file in environments/*.yaml; do npx slipway validate "$file" || exit 1; done',
          'npx cdk synth',
        ],
      }),
    });
    for (const [name, account] of Object.entries(ACCOUNTS)) {
      const stage = new Environments(this, name, { environments, env: { account } });
      const isProduction = name === 'prod';
      pipeline.addStage(stage, { pre: isProduction ? [new pipelines.ManualApprovalStep('Approve')] : [] });
    }
  }
}

async function main(): Promise<void> {
  const app = new App();
  const { environments, problems } = await readEnvironments({ folder: 'environments' });
  for (const { text } of problems) console.error(text);
  if (problems.some(({ level }) => level === 'error')) process.exit(1);
  const env = { account: ACCOUNTS.dev, region: 'us-west-2' };
  new PipelineStack(app, 'TrainingPipeline', { environments, env });
  app.synth();
}

void main();
