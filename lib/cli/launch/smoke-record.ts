import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { RunSpec } from '../../core/config/run-spec';
import { configText } from '../../core/job/plan';
import { sha256 } from '../../shared/archive/archive';
import { json, type Terminal } from '../terminal';

/** Where passed smoke runs are recorded, relative to the working folder. */
const PASSED = path.join('.slipway', 'smoke');
/** From this number of instances on, a launch mentions that its configuration has not passed a smoke run. */
const LARGE_INSTANCES = 4;

/** The configuration that a smoke run tests: everything except the name of the run and its limits on duration. */
function configurationOf(run: RunSpec): string {
  const { name: _name, tags: _tags, after: _after, priority: _priority, limits: _limits, ...rest } = run;
  return sha256(configText(rest as RunSpec)).slice(0, 16);
}

/** Records that a smoke run with this configuration has passed. */
export function rememberSmoke(run: RunSpec, runId: string): void {
  mkdirSync(PASSED, { recursive: true });
  writeFileSync(path.join(PASSED, `${configurationOf(run)}.json`), json({ name: run.name, runId }));
}

/** Prints a note before a large launch whose configuration has not passed a smoke run from this folder. */
export function mentionSmoke(run: RunSpec, file: string, terminal: Terminal): void {
  if (run.kind !== 'training' || run.compute.instanceCount < LARGE_INSTANCES) return;
  if (existsSync(path.join(PASSED, `${configurationOf(run)}.json`))) return;
  terminal.err(
    `smoke: no smoke run of this configuration has passed here; run slipway launch ${file} --smoke to test it on two instances first`,
  );
}
