/** Resources that CloudFormation replaces or removes when an option of a deployed environment changes. */
export interface OptionChange {
  /** Option of the environment file. */
  option: string;
  /** Resource types that hold data or are used by jobs, and that are replaced or removed. */
  types: readonly string[];
  /** Description for the documentation. */
  effect: string;
}

const NETWORK = [
  'AWS::EC2::VPC',
  'AWS::EC2::Subnet',
  'AWS::EC2::SecurityGroup',
  'AWS::EC2::NatGateway',
  'AWS::EC2::EIP',
  'AWS::FSx::FileSystem',
] as const;

/**
 * The options with such an effect. All other options affect neither stored data nor live jobs. A listed change is rejected while it would
 * affect a live run. Tests compare this table with synthesised templates.
 */
export const OPTION_CHANGES: readonly OptionChange[] = [
  {
    option: 'network.mode',
    types: NETWORK,
    effect:
      'creates or deletes the VPC with its subnets and security groups; between vpc-locked and vpc-nat, the subnets are kept and the NAT gateway is created or deleted',
  },
  {
    option: 'network.cidr',
    types: NETWORK,
    effect:
      'creates a new VPC with its subnets and security groups; a file system of the stack is replaced with its subnet',
  },
  {
    option: 'network.existing',
    types: NETWORK,
    effect: 'deletes the VPC of the stack when jobs move to an existing VPC',
  },
  {
    option: 'network.availabilityZoneIds',
    types: NETWORK,
    effect:
      'adds or removes only the subnets of the zones that are added or removed. The NAT gateway moves if its zone is removed or a lower zone is added. A change from all to IDs, or back, creates a new VPC',
  },
  {
    option: 'network.endpoints',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'the first interface endpoint creates their security group, and the last one deletes it',
  },
  {
    option: 'network.packages',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'codeartifact creates interface endpoints and their security group',
  },
  {
    option: 'guardrails.allowRemoteDebug',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'creates an interface endpoint and its security group',
  },
  {
    option: 'storage.adopt',
    types: [
      'AWS::S3::Bucket',
      'AWS::S3::BucketPolicy',
      'AWS::KMS::Key',
      'AWS::DynamoDB::Table',
      'AWS::ECR::Repository',
      'AWS::FSx::FileSystem',
      'AWS::SSM::Parameter',
    ],
    effect:
      'buckets, key, table and repository are removed from the stack and kept in the account. A file system of the stack is replaced, because CloudFormation sees another key. Refused if retain is false, and once set it must be kept',
  },
  {
    option: 'storage.buckets',
    types: ['AWS::S3::Bucket', 'AWS::S3::BucketPolicy'],
    effect:
      'a bucket of the stack is removed from it and kept in the account unless it is empty. Nothing is copied from it. To use it again, name it in storage.buckets. Refused while a run is live',
  },
  {
    option: 'storage.kmsKeyArn',
    types: ['AWS::KMS::Key', 'AWS::SSM::Parameter', 'AWS::ECR::Repository', 'AWS::FSx::FileSystem'],
    effect: 'refused: stored data is encrypted with the key of the first deploy',
  },
  {
    option: 'storage.fsxLustre',
    types: ['AWS::FSx::FileSystem'],
    effect:
      'creates or removes the file system (a retained one is kept in the account); another zone creates a new one; both are refused while a run is live; size and throughput change in place, but FSx refuses a smaller size; after a change of zone, a stopped run that is resumed gets the new file system without its checkpoints',
  },
  {
    option: 'image.uri',
    types: ['AWS::ECR::Repository'],
    effect:
      'a named image removes the repository from the stack; a retained repository is kept in the account, and using it again needs storage.adopt',
  },
  {
    option: 'image.encryption',
    types: ['AWS::ECR::Repository'],
    effect: 'refused: ECR cannot change the encryption of a repository; see "Encryption of the repository"',
  },
  {
    option: 'notifications.slackChannel',
    types: ['AWS::SNS::Topic'],
    effect: 'creates or deletes the topic of the chat channel, which has no other reader',
  },
  {
    option: 'teams',
    types: ['AWS::SSM::Parameter', 'AWS::EC2::SecurityGroup', 'AWS::SNS::Topic', 'AWS::KMS::Key'],
    effect:
      'a removed team loses its roles, alias, descriptor, security group and the topic of its chat channel. With more than 16 teams, all share one security group, which is refused while a run is live. Its own key is removed from the stack and kept in the account with its data. To restore the team, name the key in kmsKey. The kmsKey of a team with its own key must not change, and a first key waits until no run of the team is live. The first MLflow tracking server creates an interface endpoint and its security group, and the last one deletes them',
  },
];
