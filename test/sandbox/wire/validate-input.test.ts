import { expect, test } from 'vitest';
import type { ServiceModel } from '../../../lib/sandbox/wire/api-call';
import { validateInput } from '../../../lib/sandbox/wire/validate-input';

const MODEL: ServiceModel = {
  operations: { Make: { input: { shape: 'Make' } } },
  shapes: {
    Make: {
      type: 'structure',
      required: ['Name', 'Size'],
      members: {
        Name: { shape: 'Name' },
        Size: { shape: 'Size' },
        Parts: { shape: 'Parts' },
        Labels: { shape: 'Labels' },
      },
    },
    Name: { type: 'string', min: 2, max: 4, pattern: '[a-z]*' },
    Size: { type: 'integer', min: 1, max: 9 },
    Parts: { type: 'list', max: 2, member: { shape: 'Part' } },
    Part: { type: 'structure', members: { Kind: { shape: 'Kind' } } },
    Kind: { type: 'string', enum: ['big', 'small'] },
    Labels: { type: 'map', key: { shape: 'Name' }, value: { shape: 'Name' } },
  },
};

function refusal(input: unknown): string {
  try {
    validateInput(MODEL, 'Make', input);
    return '';
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
}

test('a request within the limits of the model passes, also with members it does not know', () => {
  expect(refusal({ Name: 'abc', Size: 3, Parts: [{ Kind: 'big' }], Labels: { ab: 'cd' }, Future: { a: 1 } })).toBe('');
});

test('every violation is told at once, in the words of the services', () => {
  expect(refusal({ Name: 'ABCDE', Parts: [{ Kind: 'odd' }], Labels: { a: 'bc' } })).toBe(
    "ValidationException: 5 validation errors detected: Value null at 'size' failed to satisfy constraint: Member must not be null; " +
      "Value 'ABCDE' at 'name' failed to satisfy constraint: Member must have length less than or equal to 4; " +
      "Value 'ABCDE' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-z]*; " +
      "Value 'odd' at 'parts.1.member.kind' failed to satisfy constraint: Member must satisfy enum value set: [big, small]; " +
      "Value 'a' at 'labels' failed to satisfy constraint: Map keys must satisfy constraint: [Member must have length greater than or equal to 2]",
  );
});

test.each([
  [{ Name: 3, Size: 3 }, "SerializationException: Expected string at 'name'"],
  [{ Name: 'ab', Size: 3.5 }, "SerializationException: Expected integer at 'size'"],
  [{ Name: 'ab', Size: 3, Parts: {} }, "SerializationException: Expected list at 'parts'"],
])('fails: the wrong JSON type in %j', (input, message) => {
  expect(refusal(input)).toBe(message);
});
