import type { Construct } from 'constructs';
import { embeddedEndpoint } from '../shared/environment/embedded-endpoint';

/** Context key: `-c sandbox=1` leaves out what the embedded AWS cannot deploy, `-c sandbox=0` never does. */
const SANDBOX_CONTEXT = 'sandbox';

/**
 * Whether the app is synthesised for the embedded AWS: the context is set, or the CloudFormation endpoint is on this machine, as `slipway
 * sandbox env` sets it. embedded-aws.ts lists what is left out in that case; everything else is the same template.
 */
export function isSandbox(scope: Construct, env: NodeJS.ProcessEnv = process.env): boolean {
  const value: unknown = scope.node.tryGetContext(SANDBOX_CONTEXT);
  if (value === undefined || value === '') return embeddedEndpoint(env) !== undefined;
  return value === true || value === 1 || value === '1' || value === 'true';
}

/** A part of an environment that the embedded AWS does not deploy, and how its template differs as a result. */
export interface LeftOutPart {
  readonly why: string;
  /** Resource types that are missing in the template. */
  readonly lacks: readonly string[];
  /** Resource types with different properties. @default - none */
  readonly changes?: readonly string[];
}

const FUNCTION = ['AWS::Lambda::Function', 'AWS::IAM::Role', 'AWS::IAM::Policy'];

/** All parts that are left out; a test compares the template for the embedded AWS with the one for AWS by this table. */
export const LEFT_OUT = {
  zones: {
    why: 'the zones of MiniStack are not looked up: availabilityZoneIds: all means the zones with the letters a and b',
    lacks: ['AWS::EC2::Subnet', 'AWS::EC2::RouteTable', 'AWS::EC2::SubnetRouteTableAssociation'],
    // Resources that refer to subnets or zones: roles, endpoints, the replace guard, descriptors.
    changes: [
      'AWS::EC2::Subnet',
      'AWS::EC2::RouteTable',
      'AWS::EC2::VPCEndpoint',
      'AWS::IAM::Policy',
      'AWS::SSM::Parameter',
      'Custom::SlipwayGuard',
    ],
  },
  defaultGroup: {
    why: "MiniStack has no default security group that the CDK's custom resource could empty",
    lacks: ['Custom::VpcRestrictDefaultSG', ...FUNCTION],
  },
  rulesForItself: {
    why: 'MiniStack knows no rules of a security group for itself',
    lacks: ['AWS::EC2::SecurityGroupIngress', 'AWS::EC2::SecurityGroupEgress'],
  },
  natGateway: {
    why: 'MiniStack knows no NAT gateways: jobs share the network of the machine',
    lacks: [
      'AWS::EC2::NatGateway',
      'AWS::EC2::EIP',
      'AWS::EC2::InternetGateway',
      'AWS::EC2::VPCGatewayAttachment',
      'AWS::EC2::Route',
    ],
  },
  flowLogs: {
    why: 'MiniStack records no flow logs',
    lacks: ['AWS::EC2::FlowLog', 'AWS::Logs::LogGroup', 'AWS::IAM::Role', 'AWS::IAM::Policy'],
  },
  slack: {
    why: 'MiniStack has no Amazon Q Developer in chat applications',
    lacks: ['AWS::Chatbot::SlackChannelConfiguration', 'AWS::IAM::Role'],
  },
  budget: { why: 'MiniStack has no AWS Budgets', lacks: ['AWS::Budgets::Budget'] },
  lustre: {
    why: 'MiniStack has no FSx',
    lacks: ['AWS::FSx::FileSystem', 'AWS::FSx::DataRepositoryAssociation'],
    // The key's statement for the data repository and the check of an existing key, resources that are retained with the file system, and
    // the descriptors.
    changes: [
      'AWS::KMS::Key',
      'AWS::SSM::Parameter',
      'AWS::EC2::VPC',
      'AWS::EC2::SecurityGroup',
      'Custom::SlipwayExistingStorage',
    ],
  },
  imageBuild: {
    why: 'there is no Docker: jobs run as processes, whatever their image',
    lacks: ['AWS::CodeBuild::Project', 'AWS::StepFunctions::StateMachine', 'Custom::SlipwayTrainingImage', ...FUNCTION],
    changes: ['AWS::SSM::Parameter'],
  },
  accounts: { why: 'it has one account, which stands for each of `accounts`', lacks: [] },
  pipeline: { why: 'its one account cannot hold stages: the environments are made themselves', lacks: [] },
} as const satisfies Readonly<Record<string, LeftOutPart>>;

/** Whether a part is in the template: always on AWS; on the embedded AWS unless it is in `LEFT_OUT`. */
export const isDeployed = (scope: Construct, _part: keyof typeof LEFT_OUT): boolean => !isSandbox(scope);
