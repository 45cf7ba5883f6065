// The template for the embedded AWS is the one for AWS, but for what lib/cdk/embedded-aws.ts names: what is tested there is what
// is deployed.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { LEFT_OUT, type LeftOutPart } from '../../lib/cdk/embedded-aws';
import { ENV, resourcesOf, SYNTH_MS, testApp } from '../cdk/support/app';
import { specs, synthesise, ZONES } from '../templates/support/templates';
import type { Resources } from './support/changes';

vi.setConfig({ testTimeout: SYNTH_MS });

const PARTS: readonly LeftOutPart[] = Object.values(LEFT_OUT);
const lacks = new Set(PARTS.flatMap((part) => part.lacks));
const changes = new Set(PARTS.flatMap((part) => part.changes ?? []));
const SPECS = specs();

function resources(name: string, sandbox: boolean): Resources {
  const spec = SPECS[name];
  if (!spec) throw new Error(`no environment ${name}`);
  if (!sandbox) return synthesise(spec);
  const app = testApp({ ...ZONES, sandbox: '1' });
  return resourcesOf(Template.fromStack(new EnvironmentStack(app, 'Slipway', { spec, env: ENV })));
}

/** Without what only orders resources, and without logical ids: a VPC by zone has another one than a VPC by name. */
const said = (resource: object | undefined) =>
  JSON.stringify({ ...resource, DependsOn: undefined })
    .replaceAll('VpcVpcByZone', 'Vpc')
    .replace(/[0-9A-F]{8}\b/g, '');

function byName(all: Resources): Resources {
  return Object.fromEntries(
    Object.entries(all).map(([id, resource]) => [id.replace('VpcVpcByZone', 'Vpc').slice(0, -8), resource]),
  );
}

/** Types of resources that one template lacks, has besides, or has otherwise. */
function differences(real: Resources, embedded: Resources) {
  const [a, b] = [byName(real), byName(embedded)];
  const types = (ids: string[], of: Resources) => [...new Set(ids.map((id) => of[id]?.Type ?? ''))].sort();
  return {
    lacking: types(
      Object.keys(a).filter((id) => !b[id]),
      a,
    ),
    more: types(
      Object.keys(b).filter((id) => !a[id]),
      b,
    ),
    changed: types(
      Object.keys(a).filter((id) => b[id] && said(a[id]) !== said(b[id])),
      a,
    ),
  };
}

describe.each(Object.keys(SPECS))('%s', (name) => {
  test('differs on the embedded AWS by what the table names only', () => {
    const { lacking, more, changed } = differences(resources(name, false), resources(name, true));
    expect(more.filter((type) => !changes.has(type) && !lacks.has(type))).toEqual([]);
    expect(lacking.filter((type) => !lacks.has(type))).toEqual([]);
    expect(changed.filter((type) => !changes.has(type))).toEqual([]);
  });
});

test('fails: a resource that is left out without a row', () => {
  const real = resources('everything', false);
  const [id = ''] = Object.entries(real).find(([, { Type }]) => Type === 'AWS::SNS::Topic') ?? [];
  const { [id]: _topic, ...without } = real;
  expect(differences(real, without).lacking).toEqual(['AWS::SNS::Topic']);
  expect(lacks.has('AWS::SNS::Topic')).toBe(false);
});

test('the constructs ask the table, and nothing else, whether they are on the embedded AWS', () => {
  const folder = path.join(__dirname, '../../lib/cdk');
  const asking = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && /\bisSandbox\(/.test(readFileSync(path.join(folder, file), 'utf8')),
  );
  expect(asking).toEqual(['embedded-aws.ts']);
});
