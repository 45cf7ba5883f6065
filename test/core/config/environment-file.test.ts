import { describe, expect, test } from 'vitest';
import { isEnvironmentFile, loadEnvironment } from '../../../lib/core/config/load';

const BASE = 'name: one\nregions: { us-west-2: {} }\n';
const messagesOf = (text: string) => loadEnvironment(text).issues.map((i) => i.message);

test.each([
  [
    'regions: { us-west-2: { quotas: { enforce: never }, storage: { retain: maybe } } }',
    [
      'regions.us-west-2.storage.retain: must be true or false, got maybe; change the value',
      'regions.us-west-2.quotas.enforce: must be fail, warn or off, got never; use one of them',
    ],
  ],
  ['regions: { us-west-2: [] }', ['regions.us-west-2: must be a section, got []; change the value']],
  ['regions: { US-WEST-2: {} }', ['regions.US-WEST-2: must be a region such as us-west-2, got US-WEST-2; rename it']],
])('fails: %s, each at its place', (regions, expected) => {
  expect(messagesOf(`name: one\n${regions}\n`)).toEqual(expected);
});

test.each([
  ['account: 111122223333', 'account: must be text, got 111122223333; put it in quotes'],
  [
    'teams: { NLP: {} }',
    'teams.NLP: must be 1-12 lower-case letters or digits, the first a letter, got NLP; rename it',
  ],
  ['teams: { nlp: { share: 0 } }', 'teams.nlp.share: must be more than 0, got 0; use more than 0'],
  ['teams: { nlp: { share: .nan } }', 'teams.nlp.share: must be a number, got NaN; change the value'],
  [
    'teams: { nlp: { principals: ["arn:aws:iam::111122223333:role/*"] } }',
    'teams.nlp.principals[0]: must be the ARN of an IAM role or user, arn:aws:iam::<account>:root, or the roles of a permission set: arn:aws:iam::<account>:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_<permission set>_*, got arn:aws:iam::111122223333:role/*; correct the value',
  ],
  [
    'network: { availabilityZoneIds: us-west-2a }',
    'network.availabilityZoneIds: must be all, or a list of zone ids such as [usw2-az2], got us-west-2a; write it in one of these forms',
  ],
  [
    'network: { availabilityZoneIds: [usw2-az1, usw2-az1] }',
    'network.availabilityZoneIds: must name each entry once, got ["usw2-az1","usw2-az1"]; correct the value',
  ],
  [
    'storage: { external: [{ s3: "s3://abc/*" }] }',
    'storage.external[0].s3: must be an S3 URI such as s3://bucket/prefix/, without * and ?, got s3://abc/*; correct the value',
  ],
  [
    'teams: { nlp: { kmsKey: other } }',
    'teams.nlp.kmsKey: must be own, shared, or the ARN of a KMS key (not of an alias), got other; write it in one of these forms',
  ],
  [
    'storage: { external: [{ s3: "s3://abc", kmsKeyArn: "arn:aws:kms:us-west-2:111122223333:alias/a" }] }',
    'storage.external[0].kmsKeyArn: must be the ARN of a KMS key, not of an alias, got arn:aws:kms:us-west-2:111122223333:alias/a; correct the value',
  ],
  [
    'storage: { fileSystems: { a: { efs: efs-1, directoryPath: a } } }',
    'storage.fileSystems.a.efs: must be a file system id such as fs-0123456789abcdef0, got efs-1; correct the value',
  ],
  [
    'storage: { checkpointExpirationDays: 99999999999 }',
    'storage.checkpointExpirationDays: must be at most 2147483647, got 99999999999; use at most 2147483647',
  ],
  [
    'notifications: { emails: [a@example.com, a@example.com] }',
    'notifications.emails: must name each entry once, got ["a@example.com","a@example.com"]; correct the value',
  ],
  ['notifications: { emails: [a] }', 'notifications.emails[0]: must be an e-mail address, got a; correct the value'],
  [
    'budget: { monthlyUsd: 5, thresholdsPercent: [50, 50] }',
    'budget.thresholdsPercent: must name each entry once, got [50,50]; correct the value',
  ],
  [
    'guardrails: { allowedInstanceTypes: [] }',
    'guardrails.allowedInstanceTypes: must have at least 1 entry, got []; use at least 1 entry',
  ],
])('fails: %s', (more, message) => {
  expect(messagesOf(`${BASE}${more}\n`)[0]).toBe(message);
});

test.each([
  [
    'a tag that nothing resolves',
    'name: !Ref one\nregions: { us-west-2: {} }\n',
    /Unresolved tag: !Ref \(line 1, column 7\)/,
  ],
  ['a list as a key', `${BASE}? [a, b]\n: 1\n`, /must be words, not lists or maps/],
  ['a merge key', `${BASE}network: { <<: { mode: none } }\n`, /Merge keys \(<<\) are not part of YAML 1.2/],
  ['__proto__', `${BASE}teams: { __proto__: { share: 2 } }\n`, /must not be __proto__/],
  [
    'an alias inside its own value',
    'name: one\nregions: &r { us-west-2: *r }\n',
    /an alias stands inside the value that it names/,
  ],
  ['a list', '- name: one\n', /write name: and regions:/],
])('fails: %s', (_, text, message) => {
  expect(messagesOf(text).join()).toMatch(message);
});

describe('a file is told by its options', () => {
  test.each([
    ['name: one\nquotas: { enforce: fail }\n', true],
    ['name: one\nregion: { us-west-2: {} }\nteams: { nlp: {} }\n', true],
    ['name: one\nregions: { us-west-2: {} }\n', true],
    ['name: one\ncode: { source: builtin }\n', false],
    ['', false],
  ])('%j', (text, expected) => {
    expect(isEnvironmentFile(text)).toBe(expected);
  });
});

describe('the roles of a permission set', () => {
  const role = (rest: string) => `arn:aws:iam::111122223333:role/${rest}`;
  const problems = (arn: string) => messagesOf(`${BASE}access: { auditors: ["${arn}"] }\n`);
  const SSO = 'aws-reserved/sso.amazonaws.com/';

  test.each(['*', '*/', 'eu-west-1/', ''])('are a principal with %j before the name', (where) => {
    expect(problems(role(`${SSO}${where}AWSReservedSSO_Data.Science_*`))).toEqual([]);
  });

  test.each([
    ['roles that others could make', 'AWSReservedSSO_Auditor_*'],
    ['every permission set', `${SSO}*AWSReservedSSO_*`],
    ['the beginning of a name', `${SSO}*AWSReservedSSO_Aud*`],
    ['names that end alike', `${SSO}*AWSReservedSSO_*_Auditor_*`],
  ])('fails: %s', (_, rest) => {
    expect(problems(role(rest))[0]).toMatch(/^access\.auditors\[0\]: must be the ARN of an IAM role or user, .* got /);
  });
});
