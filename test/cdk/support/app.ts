import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { type EnvironmentSpec, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';

const ROOT = path.join(__dirname, '..', '..', '..');
const HANDLERS = [
  'adopt-storage',
  'empty-storage',
  'existing-network',
  'existing-storage',
  'unprotect',
  'audit',
  'control',
  'reconcile',
  'quota-preflight',
  'driver-publish',
  'guards',
  'image-build',
  'log-retention',
  'registered-run',
];

/** The bundles that the constructs deploy, made when a fresh clone has none yet. */
export function ensureHandlers(): void {
  if (HANDLERS.every((name) => existsSync(path.join(ROOT, 'dist', 'handlers', name, 'index.mjs')))) return;
  execFileSync(process.execPath, ['scripts/build.mjs', 'handlers'], { cwd: ROOT, stdio: 'inherit' });
}

/** Limit of hooks and tests that synthesise: seconds when idle, a minute when the machine is busy. */
export const SYNTH_MS = 180_000;

export const ENV = { account: '111122223333', region: 'us-west-2' };

const { context: FLAGS } = JSON.parse(readFileSync(path.join(ROOT, 'cdk.json'), 'utf8')) as {
  context: Record<string, unknown>;
};
/**
 * Assets are hashed where they lie, and nothing says where a construct was made: the copies and the traces of an assembly that nobody
 * deploys cost half of its synthesis.
 */
const FOR_TESTS = {
  'aws:cdk:disable-asset-staging': true,
  'aws:cdk:disable-stack-trace': true,
  'aws:cdk:disable-creation-stack-traces': true,
};

/**
 * An app with the feature flags of cdk.json, as the CLI passes them. CloudFormation's own validation of each template takes longer than
 * all else: test/templates/validation.test.ts has it.
 */
export function testApp(context: Record<string, unknown> = {}): App {
  ensureHandlers();
  return new App({
    context: { ...FLAGS, ...FOR_TESTS, ...context },
    analyticsReporting: false,
    // An eighth of a synthesis: a description of the constructs that no test reads.
    treeMetadata: false,
    builtinCloudFormationValidation: false,
  });
}

export function testStack(context: Record<string, unknown> = {}): Stack {
  return new Stack(testApp(context), 'Test', { env: ENV });
}

/** The environment of one region, from plain values. */
export function specOf(more: object = {}): EnvironmentSpec {
  const loaded = loadEnvironment(JSON.stringify({ name: 'research', regions: { 'us-west-2': {} }, ...more }));
  if (!loaded.value) throw new Error(JSON.stringify(loaded.issues));
  const [spec] = resolveEnvironments(loaded.value);
  if (!spec) throw new Error('no region');
  return spec;
}

export interface TemplateResource {
  Type: string;
  Properties: Record<string, unknown>;
  DependsOn?: string[];
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
}

/** Resources of a template by logical id. */
export function resourcesOf(template: { toJSON(): Record<string, unknown> }): Record<string, TemplateResource> {
  return template.toJSON().Resources as Record<string, TemplateResource>;
}

/** Logical ids that one resource depends on, directly or through others. */
export function everythingBefore(resources: Record<string, TemplateResource>, id: string): Set<string> {
  const before = new Set(resources[id]?.DependsOn);
  // A set visits what is added while it is read.
  for (const other of before) for (const earlier of resources[other]?.DependsOn ?? []) before.add(earlier);
  return before;
}

/** The statements of the policy attached to one role, found by a part of the role's logical id. */
export function statementsOf(resources: Record<string, TemplateResource>, role: string): Record<string, unknown>[] {
  const found = Object.entries(resources).filter(([id, r]) => r.Type === 'AWS::IAM::Policy' && id.includes(role));
  const [policy] = found;
  if (!policy || found.length > 1) throw new Error(`one policy expected for ${role}, got ${found.map(([id]) => id)}`);
  return (policy[1].Properties.PolicyDocument as { Statement: Record<string, unknown>[] }).Statement;
}
