/** What CloudFormation replaces or removes when an option of the environment file changes in a deployed environment. */
export interface OptionChange {
  /** Option, as people write it. */
  option: string;
  /** Types of resources that hold data or that jobs run in, and that are replaced, removed or both. */
  types: readonly string[];
  /** What that means, for the documentation. */
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
 * The options with such an effect; every other option changes nothing that holds data, and nothing under live jobs. A change that is
 * listed is refused while a run is live, where it takes something from it. Tests hold this table against synthesised templates.
 */
export const OPTION_CHANGES: readonly OptionChange[] = [
  {
    option: 'network.mode',
    types: NETWORK,
    effect:
      'the VPC goes or comes with its subnets and groups; between vpc-locked and vpc-nat the subnets stay and the NAT gateway goes or comes',
  },
  {
    option: 'network.cidr',
    types: NETWORK,
    effect: 'a new VPC with all of its subnets and groups; a file system of the stack is replaced with its subnet',
  },
  { option: 'network.existing', types: NETWORK, effect: 'a VPC of the stack goes when jobs move into an existing one' },
  {
    option: 'network.availabilityZoneIds',
    types: NETWORK,
    effect:
      'zones that come or go bring or take their own subnet and nothing else, the NAT gateway moves when its zone goes or a lower one comes; from all to ids, and back, makes a new VPC',
  },
  {
    option: 'network.subnetOrder',
    types: NETWORK,
    effect: 'subnets are numbered otherwise: write it once, when a stack of version 0.1.0 is updated, and leave it',
  },
  {
    option: 'network.endpoints',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'the group of the interface endpoints comes with the first and goes with the last',
  },
  {
    option: 'network.packages',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'codeartifact brings interface endpoints and their group',
  },
  {
    option: 'guardrails.allowRemoteDebug',
    types: ['AWS::EC2::SecurityGroup'],
    effect: 'brings an interface endpoint and its group',
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
      'buckets, key, table and repository leave the stack and stay in the account, and a file system of the stack is replaced, since its key is another one to CloudFormation; refused where retain is false, and once set it must stay',
  },
  {
    option: 'storage.buckets',
    types: ['AWS::S3::Bucket', 'AWS::S3::BucketPolicy'],
    effect:
      'a bucket of the stack leaves it and stays in the account while it holds anything, and nothing is copied from it; coming back, name it in storage.buckets; refused while a run is live',
  },
  {
    option: 'storage.kmsKeyArn',
    types: ['AWS::KMS::Key', 'AWS::SSM::Parameter', 'AWS::ECR::Repository', 'AWS::FSx::FileSystem'],
    effect: 'refused: what is stored is encrypted with the key of the first deploy',
  },
  {
    option: 'storage.fsxLustre',
    types: ['AWS::FSx::FileSystem'],
    effect:
      'the file system comes or goes (a retained one stays in the account), and another zone makes a new one, all of it refused while a run is live; size and throughput change in place',
  },
  {
    option: 'image.uri',
    types: ['AWS::ECR::Repository'],
    effect:
      'a named image takes the repository out of the stack; a retained one stays in the account, and coming back needs storage.adopt',
  },
  {
    option: 'image.encryption',
    types: ['AWS::ECR::Repository'],
    effect: 'refused: ECR cannot change the encryption of a repository; see "Encryption of the repository"',
  },
  {
    option: 'notifications.slackChannel',
    types: ['AWS::SNS::Topic'],
    effect: 'the topic of the chat channel comes and goes with it; nothing else reads it',
  },
  {
    option: 'teams',
    types: ['AWS::SSM::Parameter', 'AWS::EC2::SecurityGroup', 'AWS::SNS::Topic', 'AWS::KMS::Key'],
    effect:
      'a removed team loses its roles, alias, descriptor and the topic of its chat channel; its own key leaves the stack and stays in the account with its data, and coming back the team names it in kmsKey; kmsKey of a team that has one of its own must stay, and a first one waits until no run of the team is live; the first MLflow tracking server brings an interface endpoint and its group, the last takes them',
  },
];
