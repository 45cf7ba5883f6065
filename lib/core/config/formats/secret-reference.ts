/** The source of a variable's value. */
export interface SecretReference {
  service: 'secretsmanager' | 'ssm';
  /**
   * Name of the secret or parameter; for a parameter without its leading slash. The ARN of a secret ends with six additional characters.
   */
  name: string;
  /** From an ARN; undefined: those of the job. */
  region?: string;
  account?: string;
}

const ARN = /^arn:[^:]+:(secretsmanager|ssm):([^:]+):(\d{12}):(?:secret:|parameter\/)(.+)$/;

/** Parses an ARN, a parameter's name (it begins with /) or a secret's name. */
export function secretReference(text: string): SecretReference {
  const [, service, region, account, name = ''] = ARN.exec(text) ?? [];
  if (service) return { service: service as SecretReference['service'], name, region, account };
  return text.startsWith('/') ? { service: 'ssm', name: text.slice(1) } : { service: 'secretsmanager', name: text };
}

/** A name prefix as in the environment file, without a leading slash: parameters have one, secrets do not. */
export const secretPrefix = (prefix: string): string => prefix.replace(/^\/+/, '');
