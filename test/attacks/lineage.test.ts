// What the code of a run says of its own origin, in the COMMITTED.json that it writes.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunConfiguration } from '../../lib/core/contracts/control';
import { checkpointOrigin, lineageRows, lineageRun } from '../../lib/report/lineage/lineage';

const IMAGE = 'registry/image@sha256:1';
const KNOWN = { configHash: 'known', codeSha256: 'c0de', driverHash: 'd1', trainingImageUri: IMAGE };
const configurationOf = (more: Partial<RunConfiguration> = {}): RunConfiguration => ({
  ...KNOWN,
  spec: { code: { source: './src' }, image: { kind: 'environment' } },
  ...more,
});
const originOf = (marker: object, configuration = configurationOf()) => {
  const checkpoint = checkpointOrigin('s3://c/step-9/', JSON.stringify({ step: 9, ...marker }));
  const status = { runId: 'r', name: 'r', team: 'nlp', state: 'completed' };
  return lineageRun({ status, configuration, checkpoint, fill: (text) => text });
};

describe('the origin of a run', () => {
  test('is what the launcher knows, whatever its checkpoint says', () => {
    const words = fc.option(fc.string(), { nil: undefined });
    const runs = fc.constantFrom('r', 'other', undefined);
    fc.assert(
      fc.property(words, words, words, runs, (configHash, codeDigest, imageUri, runId) => {
        const run = originOf({ configHash, codeDigest, imageUri, runId });
        expect([run.configHash, run.code.sha256, run.image]).toEqual(['known', 'c0de', IMAGE]);
        const others = [configHash !== 'known' && configHash, codeDigest !== 'c0de' && codeDigest];
        const claimed = [...others, imageUri !== IMAGE && imageUri, runId === 'other'].filter(Boolean).length;
        expect(run.claims?.length ?? 0).toBe(claimed);
      }),
    );
  });

  test('is shown with what its checkpoint says otherwise', () => {
    const rows = Object.fromEntries(lineageRows(originOf({ configHash: 'reviewed', imageUri: 'trusted@sha256:0' })));
    expect(rows).toMatchObject({ configuration: 'known', image: IMAGE });
    expect(rows['its checkpoint says']).toBe('configuration reviewed, image trusted@sha256:0');
    expect(originOf({ configHash: 'known', codeDigest: 'c0de', imageUri: IMAGE })).not.toHaveProperty('claims');
  });

  test('has a published image as the run file names it, beside the URI in the checkpoint', () => {
    const spec = { code: { source: './src' }, image: { kind: 'smp', version: '2.8.0' } };
    const run = originOf({ imageUri: 'registry/smp:2.8.0' }, configurationOf({ spec, trainingImageUri: null }));
    expect([run.image, run.claims]).toEqual(['smp 2.8.0', ['image registry/smp:2.8.0']]);
  });

  test('is what the checkpoint says where an older launcher does not know it', () => {
    const { configHash: _, ...older } = configurationOf({ codeSha256: null, trainingImageUri: null });
    const run = originOf({ configHash: 'a', codeDigest: 'b', imageUri: 'c' }, older);
    expect([run.configHash, run.code.sha256, run.image, run.claims]).toEqual(['a', 'b', 'c', undefined]);
  });
});
