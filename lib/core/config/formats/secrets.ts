/** The source of a variable's value. */
interface SecretReference {
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

/**
 * Values with a recognisable format. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids,
 * 2026-11-23 (the documentation of AWS itself uses keys that end with EXAMPLE);
 * https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats,
 * 2026-11-23.
 */
const FORMATS: readonly (readonly [what: string, format: RegExp])[] = [
  ['a private key', /-----BEGIN [A-Z ]{0,30}PRIVATE KEY/g],
  ['an access key of AWS', /(?<![A-Za-z0-9])(AKIA|ASIA)(?![A-Z0-9]{9}EXAMPLE)[A-Z0-9]{16}(?![A-Za-z0-9])/g],
  [
    'a secret key of AWS',
    /aws_secret_access_key["']?\s{0,9}[=:]\s{0,9}["']?(?![A-Za-z0-9/+]{30}EXAMPLEKEY)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
  ],
  ['a token of Hugging Face', /(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}/g],
  ['a token of GitHub', /(?<![A-Za-z0-9_])(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{10})/g],
  ['a token of GitLab', /(?<![A-Za-z0-9_])glpat-[A-Za-z0-9_-]{10}/g],
];

/** Documentation writes `hf_xxxxxxxx` for a token. */
const PLACEHOLDER = /(.)\1{7}/;

/** What kind of secret a text contains, by its format; undefined for none. */
export const secretIn = (text: string): string | undefined =>
  FORMATS.find(([, format]) => text.match(format)?.some((found) => !PLACEHOLDER.test(found)))?.[0];
