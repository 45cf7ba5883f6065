import { describe, expect, test } from 'vitest';
import { guardrailIssues } from '../../../lib/core/rules/guardrails';
import { BASE, issuesOf, runOf } from '../../support/runs';

describe('the number of accelerators of an instance', () => {
  const said = (distribution: object) =>
    issuesOf({ ...BASE, distribution }, '')
      .filter(({ path }) => path === 'distribution.processesPerHost')
      .map(({ level, message }) => `${level} ${message}`);

  test('is warned of when the launcher starts fewer ranks, and not where a script starts its own', () => {
    const few = said({ library: 'ddp', processesPerHost: 4 });
    expect(
      few.filter((text) => text.startsWith('warning') && text.includes('must be 8 to use every accelerator')),
    ).toHaveLength(1);
    const script = said({ library: 'none', launcher: 'script', processesPerHost: 4 });
    expect(script.filter((text) => text.includes('to use every accelerator'))).toEqual([]);
  });
});

describe('collectives', () => {
  const said = (instanceType: string, collectives: string) =>
    issuesOf(
      { ...BASE, compute: { instanceType, instanceCount: 2 }, distribution: { library: 'ddp', collectives } },
      '',
    )
      .filter(({ path }) => path === 'distribution.collectives')
      .map(({ message }) => message.replace(/;.*/, ''));

  test.each([
    [
      'ml.c5.18xlarge',
      'nccl',
      ['distribution.collectives: must be gloo (or auto) on instances without GPUs, got nccl'],
    ],
    ['ml.p4d.24xlarge', 'nccl', []],
    ['ml.c5.18xlarge', 'gloo', []],
  ])('on %s %s: %j', (type, backend, expected) => {
    expect(said(type, backend)).toEqual(expected);
  });
});

test('the guardrails of an environment that is not deployed yet say what they forbid, and nothing of what they allow', () => {
  const issues = (guardrails: object) => guardrailIssues(runOf(BASE), { name: 'research', guardrails } as never);
  expect(issues({ maxInstancesPerRun: 1 })).toMatchObject([{ level: 'error', path: 'compute.instanceCount' }]);
  expect(issues({ maxInstancesPerRun: 2 })).toEqual([]);
});
