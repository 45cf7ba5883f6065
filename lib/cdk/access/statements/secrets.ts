import { secretPrefix } from '../../../core/config/formats/secret-reference';
import type { ExactStatement } from '../statement';

interface SecretContext {
  readonly partition: string;
  readonly account: string;
  readonly region: string;
  /** Name prefix of the secrets and parameters. @default - jobs may read none */
  readonly secretsPrefix?: string;
}

/**
 * Permissions of a container for `secrets` of a run file. Secrets Manager and Parameter Store decrypt with the caller's permissions: with
 * the AWS managed keys the role needs nothing more; the policy of a customer managed key must name the role.
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
