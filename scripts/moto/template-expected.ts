type Properties = Record<string, unknown>;

/** What moto 5.2.5 fails on by a fault of its own, and what stands in the template instead. */
export const MOTO_FAULTS: readonly {
  type: string;
  does: string;
  instead: (id: string, properties: Properties) => Properties;
}[] = [
  {
    type: 'AWS::KMS::Key',
    does: 'reads `TagKey` and `TagValue` of tags, CloudFormation sends `Key` and `Value` (KeyError)',
    instead: (_, { Tags: _tags, ...kept }) => kept,
  },
  {
    type: 'AWS::SSM::Parameter',
    does: 'takes tags as a list, CloudFormation sends a map (TypeError)',
    instead: (_, { Tags: _tags, ...kept }) => kept,
  },
  {
    type: 'AWS::SQS::Queue',
    does: 'gives a FIFO queue without a name one that does not end in `.fifo`, and refuses it',
    instead: (id, kept) => (kept.FifoQueue ? { ...kept, QueueName: `${id}.fifo` } : kept),
  },
];

/** What becomes of the template for AWS on moto 5.2.5; test/long/second-emulator.test.ts deploys it again. */
export const TEMPLATE_ON_MOTO = {
  /** Types of which moto makes some resources and not all. */
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
