import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  allowedPlaces,
  isWithin,
  mayUsePlace,
  type PlaceOwner,
  type PlaceUse,
} from '../../../../lib/core/config/formats/places';
import { draws } from '../../../support/draws';

const USES: PlaceUse[] = ['read', 'checkpoints', 'output', 'results'];
const name = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
const owner = fc.record<PlaceOwner>({
  team: name,
  dataBucket: fc.constant('data-bucket'),
  checkpointBucket: fc.constant('checkpoint-bucket'),
  artifactBucket: fc.constant('artifact-bucket'),
  external: fc.option(
    fc.array(fc.record({ s3: name.map((n) => `s3://external/${n}`), access: fc.constantFrom('read', 'read-write') }), {
      maxLength: 3,
    }),
    { nil: undefined },
  ),
  writableData: fc.option(
    fc.array(
      name.map((n) => `${n}/`),
      { maxLength: 3 },
    ),
    { nil: undefined },
  ),
});

test('no location of another team may be used by a team, whatever their names', () => {
  fc.assert(
    fc.property(owner, name, fc.constantFrom(...USES), name, (own, other, use, rest) => {
      fc.pre(own.team !== other);
      for (const uri of [`s3://checkpoint-bucket/runs/${other}/${rest}/`, `s3://artifact-bucket/runs/${other}/${rest}`])
        expect(mayUsePlace(use, uri, own)).toBe(false);
    }),
    { numRuns: draws(200) },
  );
});

test('a location may be used exactly when it is below an allowed prefix, at the end of a name', () => {
  fc.assert(
    fc.property(owner, fc.constantFrom(...USES), fc.nat(), name, (own, use, at, rest) => {
      const allowed = allowedPlaces(use, own);
      fc.pre(allowed.length > 0);
      const prefix = (allowed[at % allowed.length] as string).replace(/\/$/, '');
      expect(mayUsePlace(use, `${prefix}/${rest}`, own)).toBe(true);
      expect(mayUsePlace(use, `${prefix}/../${rest}`, own)).toBe(false);
      const beside = `${prefix}${rest}`;
      expect(isWithin(beside, prefix)).toBe(false);
    }),
    { numRuns: draws(200) },
  );
});
