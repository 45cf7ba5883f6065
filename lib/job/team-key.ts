import type { Descriptor } from '../spec/descriptor';

type Keys = Pick<Descriptor, 'teamKeyArn'>;

/** Variable by which driver, trainer and own scripts know the key that every upload must name. */
export const teamKeyVariable = ({ teamKeyArn }: Keys): Record<string, string> =>
  teamKeyArn === undefined ? {} : { SLIPWAY_KMS_KEY_ARN: teamKeyArn };

/** The same for an upload of ours. */
export const teamKeyEncryption = ({ teamKeyArn }: Keys): { ServerSideEncryption?: 'aws:kms'; SSEKMSKeyId?: string } =>
  teamKeyArn === undefined ? {} : { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: teamKeyArn };
