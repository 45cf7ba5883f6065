/** Where the value of a variable comes from. */
export interface SecretReference {
  service: 'secretsmanager' | 'ssm';
  /** Name of the secret or parameter; of a parameter without its first slash. A secret's ARN ends with six letters of its own. */
  name: string;
  /** Of an ARN; undefined: those of the job. */
  region?: string;
  account?: string;
}

const ARN = /^arn:[^:]+:(secretsmanager|ssm):([^:]+):(\d{12}):(?:secret:|parameter\/)(.+)$/;

/** Reads an ARN, a parameter's name (it begins with /) or a secret's name. */
export function secretReference(text: string): SecretReference {
  const [, service, region, account, name = ''] = ARN.exec(text) ?? [];
  if (service) return { service: service as SecretReference['service'], name, region, account };
  return text.startsWith('/') ? { service: 'ssm', name: text.slice(1) } : { service: 'secretsmanager', name: text };
}

/** A prefix of names as the environment file has it, without a first slash: parameters have one, secrets none. */
export const secretPrefix = (prefix: string): string => prefix.replace(/^\/+/, '');
