import { DescribeKeyCommand, GetKeyPolicyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketEncryptionCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  GetBucketVersioningCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/existing-storage/index';
import { dataRepositoryKeyStatements } from '../../../lib/core/contracts/storage';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
const kms = mockClient(KMSClient);
const region = 'us-west-2';
const account = '111122223333';
const KEY = `arn:aws:kms:us-west-2:${account}:key/1234abcd-12ab-34cd-56ef-1234567890ab`;
const OTHER = KEY.replace('1234abcd', '00000000');
const warned: string[] = [];
const deps = {
  s3: new S3Client({ region }),
  kms: new KMSClient({ region }),
  warn: (text: string) => warned.push(text),
};
const PLACE = { partition: 'aws', region, account, urlSuffix: 'amazonaws.com' };
const events = resourceEvents('Custom::SlipwayExistingStorage', {
  ...PLACE,
  buckets: JSON.stringify({ data: 'lake' }),
  keyArn: KEY,
});

const refused = (name: string, httpStatusCode: number, headers: Record<string, string> = {}) => {
  // The deserialiser of the SDK adds the answer.
  const $response = { statusCode: httpStatusCode, headers };
  return Object.assign(new S3ServiceException({ name, $fault: 'client', $metadata: { httpStatusCode } }), {
    $response,
  });
};
const named = (name: string) => Object.assign(new Error(name), { name });
const policyOf = (...Statement: object[]) => JSON.stringify({ Version: '2012-10-17', Statement });
const TLS = {
  Effect: 'Deny',
  Principal: { AWS: '*' },
  Action: ['s3:*'],
  Resource: ['arn:aws:s3:::lake', 'arn:aws:s3:::lake/*'],
  Condition: { Bool: { 'aws:SecureTransport': false } },
};
const ROOT = { Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' };
const encryptedWith = (SSEAlgorithm: 'aws:kms' | 'AES256', KMSMasterKeyID?: string) =>
  s3.on(GetBucketEncryptionCommand).resolves({
    ServerSideEncryptionConfiguration: {
      Rules: [{ ApplyServerSideEncryptionByDefault: { SSEAlgorithm, KMSMasterKeyID } }],
    },
  });
const blocked = (BlockPublicPolicy: boolean) =>
  s3.on(GetPublicAccessBlockCommand).resolves({
    PublicAccessBlockConfiguration: {
      BlockPublicAcls: true,
      IgnorePublicAcls: true,
      BlockPublicPolicy,
      RestrictPublicBuckets: true,
    },
  });

beforeEach(() => {
  warned.length = 0;
  s3.reset();
  kms.reset();
  s3.on(HeadBucketCommand).resolves({ BucketRegion: region });
  encryptedWith('aws:kms', KEY);
  s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS) });
  blocked(true);
  s3.on(GetBucketVersioningCommand).resolves({ Status: 'Enabled' });
  s3.on(GetBucketLifecycleConfigurationCommand).rejects(named('NoSuchLifecycleConfiguration'));
  kms.on(DescribeKeyCommand).resolves({
    KeyMetadata: { KeyId: 'k', KeyState: 'Enabled', KeySpec: 'SYMMETRIC_DEFAULT', KeyUsage: 'ENCRYPT_DECRYPT' },
  });
  kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf(ROOT) });
});

const reason = (more: Record<string, string> = {}) =>
  onEvent(deps, events.create(more)).then(
    () => '',
    (error: Error) => error.message,
  );

test('buckets and a key that are as they must be pass, and nothing is said', async () => {
  expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'existing-storage' });
  expect(warned).toEqual([]);
});

test('delete looks at nothing and changes nothing', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect([...s3.calls(), ...kms.calls()]).toEqual([]);
});

test('settings are read of a bucket of the account only', async () => {
  await onEvent(deps, events.update());
  expect(s3.commandCalls(GetBucketPolicyCommand)[0]?.args[0].input).toEqual({
    Bucket: 'lake',
    ExpectedBucketOwner: account,
  });
});

test('what is better otherwise, and works, is a warning', async () => {
  encryptedWith('AES256');
  s3.on(GetBucketVersioningCommand).resolves({});
  const buckets = JSON.stringify({ data: 'lake', checkpoints: 'lake' });
  expect(await reason({ buckets })).toBe('');
  expect(warned.map((text) => text.slice(0, 60))).toEqual([
    'storage.buckets.data: should encrypt new objects with the en',
    'storage.buckets.data: should be versioned: otherwise objects',
    'storage.buckets.checkpoints: should encrypt new objects with',
    'storage.buckets.checkpoints: should be versioned: otherwise ',
    'storage.buckets.checkpoints: should expire objects with the ',
  ]);
});

test('what does not hold fails the deploy, and only what is better otherwise goes to the log', async () => {
  encryptedWith('AES256');
  blocked(false);
  expect(await reason()).toContain('put-public-access-block');
  expect(warned).toEqual([expect.stringContaining('should encrypt new objects')]);
});

test('a rule for the tag of leftovers is found', async () => {
  s3.on(GetBucketLifecycleConfigurationCommand).resolves({
    Rules: [{ Status: 'Enabled', Filter: { Tag: { Key: 'slipway', Value: 'leftover' } }, Expiration: { Days: 30 } }],
  });
  expect(await reason({ buckets: JSON.stringify({ checkpoints: 'lake' }) })).toBe('');
  expect(warned).toEqual([]);
});

describe('fails: a bucket', () => {
  test('that does not exist', async () => {
    s3.on(HeadBucketCommand).rejects(refused('NotFound', 404));
    expect(await reason()).toBe(
      'storage.buckets.data: must be a bucket that exists, got lake; create it, correct the name, or leave the option out',
    );
  });

  test.each([301, 400, 403])('of another region, which answers %i', async (status) => {
    s3.on(HeadBucketCommand).rejects(refused('Other', status, { 'x-amz-bucket-region': 'eu-west-1' }));
    expect(await reason()).toBe(
      'storage.buckets.data: must be a bucket in us-west-2, got lake in eu-west-1; use a bucket in that region',
    );
  });

  test('of another account', async () => {
    s3.on(HeadBucketCommand).rejects(refused('Forbidden', 403, { 'x-amz-bucket-region': region }));
    expect(await reason()).toContain('storage.buckets.data: must belong to the account of the environment');
  });

  test('with another key', async () => {
    encryptedWith('aws:kms', OTHER);
    expect(await reason()).toContain(`only one that the environment's roles may use, got ${OTHER}`);
  });

  test('with a key, where none is named', async () => {
    const { keyArn: _, ...rest } = events.create().ResourceProperties;
    const event = { ...events.create(), ResourceProperties: rest } as ReturnType<typeof events.create>;
    await expect(onEvent(deps, event)).rejects.toThrow(`write kmsKeyArn: ${KEY}`);
  });

  test('that may be made public', async () => {
    blocked(false);
    expect(await reason()).toContain('run aws s3api put-public-access-block --bucket lake');
  });

  test.each([
    ['no policy', () => s3.on(GetBucketPolicyCommand).rejects(named('NoSuchBucketPolicy'))],
    [
      'a denial of objects only',
      () => s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf({ ...TLS, Resource: 'arn:aws:s3:::lake/*' }) }),
    ],
    [
      'a denial for one role',
      () =>
        s3
          .on(GetBucketPolicyCommand)
          .resolves({ Policy: policyOf({ ...TLS, Principal: { AWS: 'arn:aws:iam::111122223333:role/a' } }) }),
    ],
    [
      'a denial with another condition beside it',
      () =>
        s3.on(GetBucketPolicyCommand).resolves({
          Policy: policyOf({ ...TLS, Condition: { ...TLS.Condition, StringEquals: { 'aws:SourceVpc': 'vpc-1' } } }),
        }),
    ],
  ])('that does not demand TLS: %s; the statement is printed', async (_, arrange) => {
    arrange();
    const message = await reason();
    const [, statement = ''] = /add the statement (\{.*\}) to its policy/.exec(message) ?? [];
    // What is printed is what is asked for.
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(JSON.parse(statement)) });
    expect(await reason()).toBe('');
  });
});

const SSE = 's3:x-amz-server-side-encryption';
const KEY_ID = `${SSE}-aws-kms-key-id`;

describe('a policy about the encryption of uploads', () => {
  const denial = (Condition: object, more: object = {}) => ({
    ...{ Sid: 'Encrypted', Effect: 'Deny', Principal: '*', Action: 's3:PutObject', Resource: 'arn:aws:s3:::lake/*' },
    Condition,
    ...more,
  });

  test.each([
    ['aws/sagemaker-python-sdk#1253', { StringNotEquals: { [SSE]: 'aws:kms' } }],
    ['aws/sagemaker-python-sdk#1253', { Null: { [KEY_ID]: 'true' } }],
    ['widdix/aws-cf-templates#739', { StringNotEquals: { [SSE]: ['aws:kms'] } }],
    ['another key, or none', { StringNotEqualsIfExists: { [KEY_ID]: KEY } }],
    ['this algorithm, or none', { StringEqualsIfExists: { [SSE]: 'AES256' } }],
    ['aws/sagemaker-python-sdk#1253', { Null: { [SSE]: true }, StringNotLike: { [KEY_ID]: '*/1234*' } }],
  ])('%s: is refused where it denies uploads that name none, as those of jobs: %j', async (_, condition) => {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(condition)) });
    expect(await reason()).toContain(
      'must accept uploads that leave encryption and ACL to the bucket, as those of jobs do, got the statement Encrypted of lake',
    );
  });

  test.each([
    ['aws/sagemaker-python-sdk#3699', { Null: { [SSE]: 'false' }, StringNotEquals: { [SSE]: 'aws:kms' } }, {}],
    ['another action', { StringNotEquals: { [SSE]: 'aws:kms' } }, { Action: 's3:GetObject' }],
    ['another prefix', { StringNotEquals: { [SSE]: 'aws:kms' } }, { Resource: 'arn:aws:s3:::lake/a/*' }],
    ['a permission', { StringNotEquals: { [SSE]: 'aws:kms' } }, { Effect: 'Allow' }],
  ])('is accepted where it says something about others: %s', async (_, condition, more) => {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(condition, more)) });
    expect(await reason()).toBe('');
  });
});

describe('a policy about networks', () => {
  const denial = (Condition: object, more: object = {}) => ({
    ...{ Sid: 'OnlyFromHere', Effect: 'Deny', Principal: '*', Action: ['s3:GetObject', 's3:PutObject'] },
    ...{ Resource: ['arn:aws:s3:::lake', 'arn:aws:s3:::lake/*'], Condition },
    ...more,
  });
  const ENDPOINT = { StringNotEquals: { 'aws:SourceVpce': 'vpce-1' } };
  const checkpoints = { buckets: JSON.stringify({ checkpoints: 'lake' }) };
  const SAID =
    'must accept requests from outside a network, as those of functions and the command line, got the statement OnlyFromHere of lake';

  test('UnitOneAI/SecuritySkills#805: is refused for checkpoints, and a warning for data', async () => {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(ENDPOINT)) });
    expect(await reason(checkpoints)).toContain(`storage.buckets.checkpoints: ${SAID}`);
    expect(await reason()).toBe('');
    expect(warned).toContainEqual(expect.stringContaining(`storage.buckets.data: ${SAID}`));
  });

  test('ministryofjustice/opg-digideps#2920: is refused where it denies the look at its settings as well', async () => {
    s3.on(GetBucketPolicyCommand).rejects(named('AccessDenied'));
    expect(await reason()).toContain('let its roles look at its settings, got lake, which denies it');
  });

  test.each([
    ['of roles', { ...ENDPOINT, ArnNotLike: { 'aws:PrincipalArn': 'arn:aws:iam::111122223333:role/slipway-*' } }, {}],
    ['of a tag', { ...ENDPOINT, StringNotEqualsIfExists: { 'aws:PrincipalTag/perimeter': 'exempt' } }, {}],
    ['of other principals', ENDPOINT, { Principal: { AWS: 'arn:aws:iam::111122223333:role/a' } }],
    ['of other actions', ENDPOINT, { Action: 's3:PutBucketPolicy' }],
    ['of other objects', ENDPOINT, { Resource: 'arn:aws:s3:::lake/private/*' }],
    ['from one network', { StringEquals: { 'aws:SourceVpc': 'vpc-1' } }, {}],
    ['of services', { ...ENDPOINT, Bool: { 'aws:PrincipalIsAWSService': 'true' } }, {}],
  ])('is accepted where it may exempt the roles of the environment: %s', async (_, condition, more) => {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(condition, more)) });
    expect(await reason(checkpoints)).toBe('');
  });

  test('gruntwork-io/terragrunt#2577: is refused where it names the account, and with it all of its roles', async () => {
    for (const AWS of [account, `arn:aws:iam::${account}:root`]) {
      s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(ENDPOINT, { Principal: { AWS } })) });
      expect(await reason(checkpoints)).toContain(SAID);
    }
  });

  test('ministryofjustice/bootstrap-cfn#227: is accepted where it allows requests from one network', async () => {
    const allowed = denial({ StringEquals: { 'aws:sourceVpc': 'vpc-1' } }, { Effect: 'Allow' });
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, allowed) });
    expect(await reason(checkpoints)).toBe('');
  });

  test('law: counts exactly when every condition holds for a request from no network', async () => {
    const operator = fc.constantFrom('StringNotEquals', 'StringNotEqualsIfExists', 'StringNotLike', 'StringEquals');
    const key = fc.constantFrom('aws:SourceVpce', 'aws:SourceVpc', 'aws:sourcevpc', 'aws:PrincipalOrgID');
    const shape = fc.record({ operator, key, isService: fc.boolean(), Action: fc.constantFrom('s3:*', 's3:Put*') });
    await fc.assert(
      fc.asyncProperty(shape, async ({ operator, key, isService, Action }) => {
        const condition = { [operator]: { [key]: 'x' }, ...(isService && { Bool: { 'aws:ViaAWSService': false } }) };
        s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, denial(condition, { Action })) });
        const isDenied = operator.includes('Not') && key !== 'aws:PrincipalOrgID';
        expect((await reason(checkpoints)).includes(SAID)).toBe(isDenied);
      }),
      { numRuns: 30 },
    );
  });
});

describe('a policy that denies its objects', () => {
  const analysts = `arn:aws:iam::${account}:role/analysts`;
  const denial = (more: object) => ({
    ...{ Sid: 'OnlyOthers', Effect: 'Deny', Action: ['s3:List*', 's3:Get*'], Resource: 'arn:aws:s3:::lake/*' },
    ...more,
  });
  const checkpoints = { buckets: JSON.stringify({ checkpoints: 'lake' }) };
  const SAID = "must accept requests of the environment's roles, got the statement OnlyOthers of lake";
  const found = async (...statements: object[]) => {
    warned.length = 0;
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(TLS, ...statements) });
    const error = await reason(checkpoints);
    return { error: error.includes(SAID), warning: warned.some((text) => text.includes(SAID)) };
  };

  test('marcel/aws-s3#117: is a warning where it excepts others', async () => {
    expect(await found(denial({ NotPrincipal: { AWS: analysts } }))).toEqual({ error: false, warning: true });
  });

  test('MathieuLoutre/grunt-aws-s3#116: is a warning where it excepts unique ids', async () => {
    const Condition = { StringNotLike: { 'aws:userId': ['AROAEXAMPLE:*', account] } };
    expect(await found(denial({ Principal: '*', Condition }))).toEqual({ error: false, warning: true });
  });

  test('is refused where it excepts nobody, or other roles by their names', async () => {
    const Condition = { ArnNotEquals: { 'aws:PrincipalArn': [analysts] } };
    for (const more of [{}, { Condition }])
      expect(await found(denial({ Principal: '*', ...more }))).toEqual({ error: true, warning: false });
  });

  test('law: is found exactly when it denies a role that the stack makes, from outside any network', async () => {
    const principal = fc.constantFrom<[object, boolean]>(
      [{ Principal: '*' }, true],
      [{ Principal: { AWS: ['*'] } }, true],
      [{ Principal: { AWS: account } }, true],
      [{ NotPrincipal: { AWS: analysts } }, true],
      [{ Principal: { AWS: analysts } }, false],
      [{ Principal: { AWS: 'arn:aws:iam::444455556666:root' } }, false],
      [{ Principal: { Service: 'logging.s3.amazonaws.com' } }, false],
    );
    const test = fc.constantFrom<[operator: string, key: string, value: string, holds: boolean]>(
      ['StringNotLike', 'aws:userid', 'AROAEXAMPLE:*', true],
      ['StringLike', 'aws:userId', 'AROAEXAMPLE:*', false],
      ['ArnNotEquals', 'aws:PrincipalArn', analysts, true],
      ['ArnNotLike', 'aws:PrincipalArn', `arn:aws:iam::${account}:role/slipway-*`, false],
      ['ArnNotLike', 'aws:PrincipalArn', `arn:aws:iam::${account}:role/*`, false],
      ['StringNotEqualsIfExists', 'aws:SourceVpc', 'vpc-1', true],
      ['StringEquals', 'aws:SourceVpc', 'vpc-1', false],
    );
    const action = fc.constantFrom<[string, boolean]>(
      ['s3:*', true],
      ['s3:PutObject', true],
      ['s3:PutBucketAcl', false],
    );
    let policy = '';
    s3.on(GetBucketPolicyCommand).callsFake(() => ({ Policy: policy }));
    await fc.assert(
      fc.asyncProperty(
        principal,
        action,
        fc.uniqueArray(test, { maxLength: 3, selector: ([operator, key]) => operator + key }),
        async ([who, isOurs], [Action, isObject], tests) => {
          const Condition: Record<string, Record<string, string>> = {};
          for (const [operator, key, value] of tests) Condition[operator] = { ...Condition[operator], [key]: value };
          warned.length = 0;
          policy = policyOf(TLS, denial({ ...who, Action, Condition }));
          const texts = [await reason(checkpoints), ...warned].filter((text) => text.includes('statement OnlyOthers'));
          expect(texts).toHaveLength(isOurs && isObject && tests.every(([, , , holds]) => holds) ? 1 : 0);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('policies that were tried after the fourth search', () => {
  const OBJECTS = 'arn:aws:s3:::lake/*';
  const checkpoints = { buckets: JSON.stringify({ checkpoints: 'lake' }) };
  const said = async (...Statement: object[]) => {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: policyOf(...Statement) });
    return reason(checkpoints);
  };

  test('aws-samples/data-perimeter-policy-examples#65: a denial from outside the ARN of a VPC is refused', async () => {
    const Condition = { ArnNotEquals: { 'aws:SourceVpcArn': `arn:aws:ec2:${region}:${account}:vpc/vpc-1` } };
    const denial = { Effect: 'Deny', Principal: '*', Action: 's3:*', Resource: OBJECTS, Condition };
    expect(await said(TLS, denial)).toContain('must accept requests from outside a network');
  });

  test('ansible-collections/amazon.aws#219: a denial of uploads without an ACL is refused', async () => {
    const Condition = { StringNotEquals: { 's3:x-amz-acl': 'bucket-owner-full-control' } };
    const denial = {
      Sid: 'Owned',
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:PutObject',
      Resource: OBJECTS,
      Condition,
    };
    expect(await said(TLS, denial)).toContain('the statement Owned of lake');
  });

  test('aws/aws-cli#1674: such a denial for a role of another account is accepted', async () => {
    const Principal = { AWS: 'arn:aws:iam::444455556666:role/another' };
    const denial = { Effect: 'Deny', Principal, Action: 's3:PutObject', Resource: OBJECTS };
    for (const key of ['s3:x-amz-acl', SSE])
      expect(await said(TLS, { ...denial, Condition: { StringNotEquals: { [key]: 'any' } } })).toBe('');
  });

  test('prowler-cloud/prowler#1481: a denial of plain HTTP for objects only is refused, with the statement', async () => {
    expect(await said({ ...TLS, Action: '*', Resource: OBJECTS })).toContain('add the statement {');
  });

  test('a sibling of prowler-cloud/prowler#1481: BoolIfExists denies plain HTTP as well', async () => {
    expect(await said({ ...TLS, Condition: { BoolIfExists: { 'aws:SecureTransport': 'false' } } })).toBe('');
  });

  test('a sibling of prowler-cloud/prowler#1481: two statements deny plain HTTP together', async () => {
    const parts = TLS.Resource.map((Resource) => ({ ...TLS, Resource }));
    expect(await said(...parts)).toBe('');
  });
});

test('wandb/terraform-aws-wandb#305: a key without permission to grant its use is refused', async () => {
  const Action = ['kms:Encrypt', 'kms:Decrypt', 'kms:ReEncrypt*', 'kms:GenerateDataKey*', 'kms:DescribeKey'];
  kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf({ ...ROOT, Action }) });
  expect(await reason()).toContain('allow kms:CreateGrant, kms:RetireGrant, got');
});

test('ministryofjustice/modernisation-platform#2343: a key that denies grants under conditions says nothing', async () => {
  const Condition = { Bool: { 'kms:GrantIsForAWSResource': 'false' } };
  const denial = { Effect: 'Deny', Principal: '*', Action: 'kms:CreateGrant', Resource: '*', Condition };
  kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf(ROOT, denial) });
  expect([await reason(), warned]).toEqual(['', []]);
});

test('aws/sagemaker-python-sdk#683: a key that allows grants for resources of AWS only is a warning', async () => {
  const uses = ['kms:Decrypt', 'kms:DescribeKey', 'kms:Encrypt', 'kms:GenerateDataKey*', 'kms:ReEncrypt*'];
  const Condition = { Bool: { 'kms:GrantIsForAWSResource': 'true' } };
  const grants = { ...ROOT, Action: 'kms:CreateGrant', Condition };
  kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf({ ...ROOT, Action: [...uses, 'kms:RetireGrant'] }, grants) });
  expect(await reason()).toBe('');
  expect(warned).toEqual([expect.stringContaining('allow kms:CreateGrant, got narrower statements')]);
});

describe('fails: a key', () => {
  test('that does not exist', async () => {
    kms.on(DescribeKeyCommand).rejects(named('NotFoundException'));
    expect(await reason()).toContain('storage.kmsKeyArn: must be a key that exists');
  });

  test.each([
    [{ KeyState: 'PendingDeletion' }, 'in state PendingDeletion'],
    [{ KeySpec: 'RSA_2048', KeyUsage: 'ENCRYPT_DECRYPT' }, 'RSA_2048 for ENCRYPT_DECRYPT'],
    [{ KeySpec: 'HMAC_256', KeyUsage: 'GENERATE_VERIFY_MAC' }, 'HMAC_256'],
  ] as const)('of the wrong kind: %o', async (metadata, text) => {
    kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', ...metadata } });
    expect(await reason()).toContain(text);
  });

  test('whose policy leaves nothing to the account; the statement is printed', async () => {
    const other = { ...ROOT, Principal: { AWS: `arn:aws:iam::${account}:role/admin` }, Action: 'kms:Describe*' };
    kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf(other) });
    const [, statement = ''] = /add the statement (\{.*\}) to its policy/.exec(await reason()) ?? [];
    kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf(other, JSON.parse(statement)) });
    expect(await reason()).toBe('');
  });

  test('whose policy lacks what FSx for Lustre needs; the statements are printed', async () => {
    const message = await reason({ dataRepository: 'lake' });
    const [, statements = ''] = /add the statements (\[.*\]) to its policy/.exec(message) ?? [];
    expect(JSON.parse(statements)).toEqual(dataRepositoryKeyStatements({ ...PLACE, bucketName: 'lake' }));
    kms.on(GetKeyPolicyCommand).resolves({ Policy: policyOf(ROOT, ...JSON.parse(statements)) });
    expect(await reason({ dataRepository: 'lake' })).toBe('');
  });

  test('together with everything that is wrong with the buckets', async () => {
    kms.on(DescribeKeyCommand).rejects(named('NotFoundException'));
    blocked(false);
    s3.on(GetBucketPolicyCommand).rejects(named('NoSuchBucketPolicy'));
    expect((await reason()).split('\n').map((line) => line.split(':')[0])).toEqual([
      'storage.buckets.data',
      'storage.buckets.data',
      'storage.kmsKeyArn',
    ]);
  });
});

test('a policy that allows roles one by one cannot be judged: a warning', async () => {
  kms.on(GetKeyPolicyCommand).resolves({
    Policy: policyOf({ ...ROOT, Condition: { StringEquals: { 'kms:CallerAccount': account } } }),
  });
  expect(await reason()).toBe('');
  expect(warned[0]).toContain('narrower statements');
});

test('fails: a key and a bucket that deny the observation are named by their options', async () => {
  kms.on(DescribeKeyCommand).rejects(named('AccessDeniedException'));
  s3.on(HeadBucketCommand).rejects(named('Forbidden'));
  expect((await reason()).split('\n').map((line) => line.split(':')[0])).toEqual([
    'storage.buckets.data',
    'storage.kmsKeyArn',
  ]);
});

test('fails: a service error is no finding', async () => {
  kms.on(DescribeKeyCommand).rejects(named('KMSInternalException'));
  expect(await reason()).toBe('KMSInternalException');
});

test('fails: malformed properties', async () => {
  expect(await reason({ buckets: '{"data":1}' })).toMatch(/buckets: /);
});
