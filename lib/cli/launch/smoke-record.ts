import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { sha256 } from '../../archive/archive';
import { configText } from '../../job/plan';
import type { RunSpec } from '../../spec/run-spec';
import { json, type Terminal } from '../terminal';

/** Where passed smoke runs are remembered, in the folder that `slipway` is called in. */
const PASSED = path.join('.slipway', 'smoke');
/** From this many instances on, a launch says when its configuration was never tried small. */
const LARGE_INSTANCES = 4;

/** What a smoke run vouches for: everything of the run but its name and how long it may go on. */
function configurationOf(run: RunSpec): string {
  const { name: _name, tags: _tags, after: _after, priority: _priority, limits: _limits, ...rest } = run;
  return sha256(configText(rest as RunSpec)).slice(0, 16);
}

/** Keeps that a run of this configuration has passed small. */
export function rememberSmoke(run: RunSpec, runId: string): void {
  mkdirSync(PASSED, { recursive: true });
  writeFileSync(path.join(PASSED, `${configurationOf(run)}.json`), json({ name: run.name, runId }));
}

/** Says so before a large launch whose configuration was never tried small from this folder. */
export function mentionSmoke(run: RunSpec, file: string, terminal: Terminal): void {
  if (run.kind !== 'training' || run.compute.instanceCount < LARGE_INSTANCES) return;
  if (existsSync(path.join(PASSED, `${configurationOf(run)}.json`))) return;
  terminal.err(
    `smoke: no small run of this configuration has passed here; slipway launch ${file} --smoke tries it on two instances first`,
  );
}
