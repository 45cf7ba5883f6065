import { concernsAccount, includesAction, includesResource, type PolicyStatement } from './policy-document';

/** A bucket, and the account whose roles use it; undefined = not known. */
interface Bucket {
  partition: string;
  name: string;
  account?: string;
}

/** The comparisons of a statement, all of which must hold. */
export const conditionTests = ({ Condition = {} }: PolicyStatement) =>
  Object.entries(Condition).flatMap(([operator, keys]) =>
    Object.entries(keys ?? {}).map(([key, value]) => ({ operator, key, value: String(value) })),
  );

const HEADER = /^s3:x-amz-(acl|server-side-encryption(-aws-kms-key-id)?)$/i;

/**
 * Whether a statement denies an upload without headers for its encryption or ACL: a negated operator and one that ends in IfExists
 * also match a key that is absent.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html, 2026-11-30
 */
export function refusesPlainUploads(statement: PolicyStatement, { partition, name, account = '' }: Bucket): boolean {
  const tests = conditionTests(statement);
  return (
    statement.Effect === 'Deny' &&
    concernsAccount(statement, account) &&
    includesAction(statement, 's3:PutObject') &&
    includesResource(statement, `arn:${partition}:s3:::${name}/*`) &&
    tests.length > 0 &&
    tests.every(
      ({ operator, key, value }) =>
        HEADER.test(key) &&
        (operator === 'Null'
          ? value === 'true'
          : /^(String|Arn)Not(Equals|Like|EqualsIgnoreCase)$|IfExists$/.test(operator)),
    )
  );
}

/** Keys that say from where a request comes. */
export const NETWORK = /^aws:(SourceIp|SourceVpc(e|Arn)?|VpcSourceIp|Vpce(Account|OrgID|OrgPaths))$/i;
/** The unique id of a role, which is not known before it exists. */
export const USER_ID = /^aws:userid$/i;

/**
 * Whether a statement denies the environment's roles to read or write objects: all requests, or those from outside a network, except those
 * of others. A condition on anything else, or a pattern of ARNs, may exempt them.
 */
export function deniesRoles(statement: PolicyStatement, { partition, name, account = '' }: Bucket): boolean {
  return (
    statement.Effect === 'Deny' &&
    concernsAccount(statement, account) &&
    ['s3:GetObject', 's3:PutObject'].some((action) => includesAction(statement, action)) &&
    includesResource(statement, `arn:${partition}:s3:::${name}/*`) &&
    conditionTests(statement).every(({ operator, key, value }) => {
      if (/^aws:(ViaAWSService|PrincipalIsAWSService)$/i.test(key)) return value === 'false';
      const isOfOthers = USER_ID.test(key) || (/^aws:PrincipalArn$/i.test(key) && !/\*|slipway/i.test(value));
      return (isOfOthers || NETWORK.test(key)) && /^(String|Arn)?Not[A-Z]\w+$/.test(operator);
    })
  );
}

/** Whether a denial is of requests without TLS alone. */
export function isOnlyPlainHttp(statement: PolicyStatement): boolean {
  const tests = conditionTests(statement).map(({ operator, key, value }) => `${operator} ${key} ${value}`);
  return /^Bool(IfExists)? aws:SecureTransport false$/i.test(tests.join());
}
