import type { Descriptor } from '../config/descriptor';

type Keys = Pick<Descriptor, 'teamKeyArn'>;

/** Environment variable with the key that every upload of driver, trainer and custom scripts must name. */
export const teamKeyVariable = ({ teamKeyArn }: Keys): Record<string, string> =>
  teamKeyArn === undefined ? {} : { SLIPWAY_KMS_KEY_ARN: teamKeyArn };

/** The same for an upload by the control plane. */
export const teamKeyEncryption = ({ teamKeyArn }: Keys): { ServerSideEncryption?: 'aws:kms'; SSEKMSKeyId?: string } =>
  teamKeyArn === undefined ? {} : { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: teamKeyArn };
