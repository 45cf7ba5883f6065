// MiniStack with our rules and moto, an emulator that nobody of us wrote, answer the same calls. Every difference that is known is
// decided by AWS's documentation (scripts/moto/decided.ts); a new one fails here.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { play } from '../../scripts/moto/call';
import { CALLS } from '../../scripts/moto/calls';
import { differences } from '../../scripts/moto/compare';
import { undecided } from '../../scripts/moto/decided';
import { type Emulator, startMiniStack, startMoto } from '../../scripts/moto/servers';
import { deployTemplate } from '../../scripts/moto/template';
import { TEMPLATE_ON_MOTO } from '../../scripts/moto/template-expected';

let ministack: Emulator;
let moto: Emulator;
beforeAll(async () => {
  ministack = await startMiniStack();
  moto = await startMoto();
});
afterAll(async () => {
  await ministack?.stop();
  await moto?.stop();
});

test('both emulators answer alike, but for the differences that are decided', async () => {
  const answers = [await play(ministack, CALLS), await play(moto, CALLS)] as const;
  expect(undecided(differences(CALLS, ...answers))).toEqual({ differences: [], decisions: [] });
});

test('the template for AWS deploys on moto as far as moto knows its types', async () => {
  const { status, reason, incomplete, unsupported, attributes } = await deployTemplate(moto);
  expect([status, reason]).toEqual(['CREATE_COMPLETE', '']);
  expect({ incomplete, unsupported, attributes }).toEqual(TEMPLATE_ON_MOTO);
});
