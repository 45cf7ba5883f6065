// Only the launcher, over roles, buckets and a key that exist already. The execution roles must let jobs read and write the buckets, and
// must trust sagemaker.amazonaws.com; `TrainingRoles` shows exact statements.
import { App, Stack, type StackProps } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { DriverPublish, type JobRoles, TeamDescriptor, TeamNames, TrainingLauncher, TrainingStorage } from 'slipway';

const ENVIRONMENT = 'own';
const TEAM = 'nlp';

export class LauncherStack extends Stack {
  constructor(scope: App, id: string, props: StackProps) {
    super(scope, id, props);
    const role = (name: string) => iam.Role.fromRoleName(this, name, name);
    const roles: JobRoles = {
      teams: { [TEAM]: { execution: role('company-training'), processing: role('company-processing') } },
      subnetIds: ['subnet-0123456789abcdef0'],
      securityGroupIds: ['sg-0123456789abcdef0'],
    };
    // Data, checkpoints and the key exist; the bucket of drivers, job files and outputs is made.
    const storage = new TrainingStorage(this, 'Storage', {
      prefix: `slipway-${ENVIRONMENT}`,
      buckets: { data: 'company-training-data', checkpoints: 'company-training-checkpoints' },
      kmsKeyArn: `arn:aws:kms:${this.region}:${this.account}:key/1234abcd-12ab-34cd-56ef-1234567890ab`,
    });
    const launcher = new TrainingLauncher(this, 'Launcher', {
      environment: ENVIRONMENT,
      storage,
      roles,
      shares: { [TEAM]: 1 },
    });
    const driver = new DriverPublish(this, 'Driver', { artifactBucket: storage.artifactBucket });
    driver.node.addDependency(storage.ready);

    new TeamNames(this, 'Teams', { environment: ENVIRONMENT, teams: [TEAM] });
    new TeamDescriptor(this, `Descriptor-${TEAM}`, {
      descriptor: {
        schemaVersion: 1,
        name: ENVIRONMENT,
        team: TEAM,
        partition: this.partition,
        account: this.account,
        region: this.region,
        executionRoleArn: roles.teams[TEAM]?.execution.roleArn ?? '',
        processingRoleArn: roles.teams[TEAM]?.processing.roleArn,
        dataBucket: storage.dataBucket.bucketName,
        checkpointBucket: storage.checkpointBucket.bucketName,
        artifactBucket: storage.artifactBucket.bucketName,
        kmsKeyArn: storage.key.keyArn,
        subnetIds: [...roles.subnetIds],
        securityGroupIds: [...roles.securityGroupIds],
        runTableName: launcher.table.tableName,
        controlAliasArn: launcher.aliases[TEAM]?.functionArn,
        driver: { uri: driver.uri, hash: driver.hash },
      },
    });
  }
}

const app = new App();
new LauncherStack(app, 'Launcher', { env: { account: '111122223333', region: 'us-west-2' } });
app.synth();
