type Properties = Record<string, unknown>;

/** Resources on which moto 5.2.5 fails because of its own bugs, and their replacements in the template. */
export const MOTO_FAULTS: readonly {
  type: string;
  does: string;
  instead: (id: string, properties: Properties) => Properties;
}[] = [
  {
    type: 'AWS::KMS::Key',
    does: 'reads `TagKey` and `TagValue` from tags, but CloudFormation sends `Key` and `Value` (KeyError)',
    instead: (_, { Tags: _tags, ...kept }) => kept,
  },
  {
    type: 'AWS::SSM::Parameter',
    does: 'expects tags as a list, but CloudFormation sends a map (TypeError)',
    instead: (_, { Tags: _tags, ...kept }) => kept,
  },
  {
    type: 'AWS::SQS::Queue',
    does: 'generates a name without `.fifo` for a FIFO queue that has no name, and then rejects it',
    instead: (id, kept) => (kept.FifoQueue ? { ...kept, QueueName: `${id}.fifo` } : kept),
  },
];

/** Result of deploying the template for AWS on moto 5.2.5; test/long/second-emulator.test.ts deploys it again. */
export const TEMPLATE_ON_MOTO = {
  /** Types of which moto creates only some resources. */
  incomplete: [],
  unsupported: [
    'AWS::CloudWatch::Alarm',
    'AWS::CodeBuild::Project',
    'AWS::EC2::SecurityGroupEgress',
    'AWS::Lambda::Alias',
    'AWS::Lambda::EventInvokeConfig',
    'AWS::S3::BucketPolicy',
    'AWS::SNS::TopicPolicy',
    'AWS::SQS::QueuePolicy',
  ],
  attributes: ['AWS::EC2::Subnet.AvailabilityZoneId'],
};
