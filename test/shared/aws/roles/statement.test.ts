import { expect, test } from 'vitest';
import { contextOf, type RoleStatement } from '../../../../lib/shared/aws/policy-document';

const statement = (Condition: RoleStatement['Condition']): RoleStatement => ({ Effect: 'Allow', Condition });

test('the context of a statement holds its conditions: first values, patterns filled in, lists as lists', () => {
  const context = contextOf(
    statement({
      StringEquals: { 'iam:PassedToService': 'sagemaker.amazonaws.com' },
      StringLike: { 's3:prefix': ['runs/nlp/*', 'other/*'] },
      'ForAllValues:StringEquals': { 'sagemaker:VpcSubnets': ['subnet-1', 'subnet-2'] },
      NumericLessThanEquals: { 'sagemaker:MaxRuntimeInSeconds': '3600' },
      Bool: { 'aws:SecureTransport': 'true' },
      Null: { 'sagemaker:VpcSubnets': 'false' },
    }),
  );
  expect(context).toEqual([
    { ContextKeyName: 'iam:PassedToService', ContextKeyValues: ['sagemaker.amazonaws.com'], ContextKeyType: 'string' },
    { ContextKeyName: 's3:prefix', ContextKeyValues: ['runs/nlp/any'], ContextKeyType: 'string' },
    { ContextKeyName: 'sagemaker:VpcSubnets', ContextKeyValues: ['subnet-1'], ContextKeyType: 'stringList' },
    { ContextKeyName: 'sagemaker:MaxRuntimeInSeconds', ContextKeyValues: ['3600'], ContextKeyType: 'numeric' },
    { ContextKeyName: 'aws:SecureTransport', ContextKeyValues: ['true'], ContextKeyType: 'boolean' },
  ]);
});

test('a foreign value replaces the one that holds', () => {
  const given = statement({ 'ForAllValues:StringEquals': { 'sagemaker:VpcSubnets': ['subnet-1'] } });
  expect(contextOf(given, { 'sagemaker:VpcSubnets': ['subnet-0'] })).toEqual([
    { ContextKeyName: 'sagemaker:VpcSubnets', ContextKeyValues: ['subnet-0'], ContextKeyType: 'stringList' },
  ]);
});

test('a key that must be present has some value, one that must be absent has none', () => {
  const given = statement({ Null: { 'sagemaker:InstanceTypes': 'false', 'sagemaker:VolumeKmsKey': 'true' } });
  expect(contextOf(given)).toEqual([
    { ContextKeyName: 'sagemaker:InstanceTypes', ContextKeyValues: ['any'], ContextKeyType: 'stringList' },
  ]);
});
