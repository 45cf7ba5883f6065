import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

const DESCRIPTOR = {
  schemaVersion: 1,
  name: 'lab',
  team: 'nlp',
  account: '111122223333',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::111122223333:role/slipway-lab-nlp-execution',
  dataBucket: 'lab-data',
  checkpointBucket: 'lab-checkpoints',
  artifactBucket: 'lab-artifacts',
  controlAliasArn: 'arn:aws:lambda:us-west-2:111122223333:function:lab-control:team-nlp',
};

/** A descriptor with a launcher as the file that `--environment` names, in a folder of its own until the tests of the file have ended. */
export function labEnvironment(): { folder: string; environment: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-lab-'));
  const environment = path.join(folder, 'lab.json');
  writeFileSync(environment, JSON.stringify(DESCRIPTOR));
  afterAll(() => rmSync(folder, { recursive: true }));
  return { folder, environment };
}
