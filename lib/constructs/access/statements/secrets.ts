import { secretPrefix } from '../../../spec/formats/secret-reference';
import type { ExactStatement } from '../statement';

interface SecretContext {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
  /** What the names of secrets and parameters begin with. @default - jobs may read none */
  readonly secretsPrefix?: string;
}

/**
 * What a container needs for `secrets` of a run file. Secrets Manager and Parameter Store decrypt in the caller's name: with the AWS
 * managed keys the role needs nothing more, a customer managed key must name the role in its own policy.
 * https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html, 2026-11-22.
 */
export function secretStatements({ partition, region, account, secretsPrefix }: SecretContext): ExactStatement[] {
  if (secretsPrefix === undefined) return [];
  const prefix = secretPrefix(secretsPrefix);
  const wildcard =
    'Secrets of the team begin with its prefix, and an ARN ends with six letters that nobody knows before.';
  return [
    {
      sid: 'ReadSecrets',
      actions: ['secretsmanager:GetSecretValue'],
      resources: [`arn:${partition}:secretsmanager:${region}:${account}:secret:${prefix}*`],
      wildcard,
    },
    {
      sid: 'ReadSecretParameters',
      actions: ['ssm:GetParameter'],
      resources: [`arn:${partition}:ssm:${region}:${account}:parameter/${prefix}*`],
      wildcard,
    },
  ];
}
