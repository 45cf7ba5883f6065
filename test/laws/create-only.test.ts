// The extract of AWS's resource specification that the laws read. test/long/create-only.test.ts compares it with the specification.
import { expect, test } from 'vitest';
import { readCreateOnly, specificationVersion } from './support/create-only';
import { createOnlyProperties } from './support/identity';

test('the extract is of the version that is installed; else run npx tsx scripts/create-only.ts', () => {
  expect(readCreateOnly().version).toBe(specificationVersion());
});

test('fails: a type of AWS that the extract does not have is no type without such properties', () => {
  expect(createOnlyProperties('AWS::EC2::Subnet')).toContain('CidrBlock');
  expect(createOnlyProperties('Custom::Anything')).toEqual([]);
  expect(() => createOnlyProperties('AWS::Nothing::Known')).toThrow('AWS::Nothing::Known: must be in ');
});
