// Slipway's launcher over a stack of one's own: your VPC, your tags, your account structure. The parts are the ones that
// EnvironmentStack is made of; researchers launch into it as into any environment.
import { App, Stack, type StackProps } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import {
  DriverPublish,
  OperationsKey,
  TeamDescriptor,
  TeamNames,
  TrainingLauncher,
  TrainingRoles,
  TrainingStorage,
} from 'slipway';

const ENVIRONMENT = 'platform';
const TEAMS = ['nlp', 'speech'];

export class PlatformStack extends Stack {
  constructor(scope: App, id: string, props: StackProps) {
    super(scope, id, props);
    const vpc = new ec2.Vpc(this, 'Vpc', {
      natGateways: 0,
      subnetConfiguration: [{ name: 'jobs', subnetType: ec2.SubnetType.PRIVATE_ISOLATED }],
      gatewayEndpoints: { S3: { service: ec2.GatewayVpcEndpointAwsService.S3 } },
    });
    const jobs = new ec2.SecurityGroup(this, 'Jobs', { vpc, allowAllOutbound: false });
    // EFA asks for rules that name the group itself, both ways.
    jobs.connections.allowInternally(ec2.Port.allTraffic(), 'EFA and NCCL');
    jobs.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.tcp(443), 'S3');
    const network = {
      subnetIds: vpc.isolatedSubnets.map(({ subnetId }) => subnetId),
      securityGroupIds: [jobs.securityGroupId],
    };

    const storage = new TrainingStorage(this, 'Storage', { prefix: `slipway-${ENVIRONMENT}` });
    const roles = new TrainingRoles(this, 'Roles', { environment: ENVIRONMENT, teams: TEAMS, storage, network });
    const { key } = new OperationsKey(this, 'OperationsKey', { description: `${ENVIRONMENT}: operations` });
    const launcher = new TrainingLauncher(this, 'Launcher', {
      environment: ENVIRONMENT,
      storage,
      roles,
      operationsKey: key,
      shares: { nlp: 2, speech: 1 },
    });
    const driver = new DriverPublish(this, 'Driver', { artifactBucket: storage.artifactBucket });
    driver.node.addDependency(storage.ready);

    // What `slipway launch --environment platform` reads.
    new TeamNames(this, 'Teams', { environment: ENVIRONMENT, teams: TEAMS });
    for (const [team, { execution, processing }] of Object.entries(roles.teams)) {
      new TeamDescriptor(this, `Descriptor-${team}`, {
        descriptor: {
          schemaVersion: 1,
          name: ENVIRONMENT,
          team,
          partition: this.partition,
          account: this.account,
          region: this.region,
          executionRoleArn: execution.roleArn,
          processingRoleArn: processing.roleArn,
          dataBucket: storage.dataBucket.bucketName,
          checkpointBucket: storage.checkpointBucket.bucketName,
          artifactBucket: storage.artifactBucket.bucketName,
          kmsKeyArn: storage.key.keyArn,
          ...network,
          runTableName: launcher.table.tableName,
          controlAliasArn: launcher.aliases[team]?.functionArn,
          driver: { uri: driver.uri, hash: driver.hash },
        },
      });
    }
  }
}

const app = new App();
new PlatformStack(app, 'Platform', { env: { account: '111122223333', region: 'us-west-2' } });
app.synth();
