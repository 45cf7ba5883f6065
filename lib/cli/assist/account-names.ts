import { readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isEnvironmentFileName } from '../../core/config/environment/image';
import { loadEnvironment } from '../../core/config/load';
import { namedText } from '../../shared/archive/code-files';
import type { CompletionOptions } from './completion';

/** The shell waits for completion candidates: an account that takes longer than this contributes none. */
const PATIENCE_MS = 3000;

/** The environments of the files in a folder, each with its teams, and the one in SLIPWAY_ENVIRONMENT. */
export function environmentNames(folder: string): string[] {
  const named = filesOf(folder).flatMap((file) => {
    const { value } = loadEnvironment(namedText(path.join(folder, file), file) ?? '');
    return value ? [value.name, ...Object.keys(value.teams ?? {}).map((team) => `${value.name}/${team}`)] : [];
  });
  return [...new Set([...named, ...(process.env.SLIPWAY_ENVIRONMENT ? [process.env.SLIPWAY_ENVIRONMENT] : [])])];
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isEnvironmentFileName);
  } catch {
    return [];
  }
}

/** The runs of the team, newest first, as the control function lists them. */
export async function runIds(options: CompletionOptions): Promise<string[]> {
  const [{ findDescriptor }, { readRuns }] = await Promise.all([
    import('../environment/environment.js'),
    import('../runs/control-client.js'),
  ]);
  const listed = findDescriptor(options).then((descriptor) => readRuns(descriptor));
  const runs = await Promise.race([listed, sleep(PATIENCE_MS, [], { ref: false })]);
  return runs.map(({ runId }) => runId);
}
