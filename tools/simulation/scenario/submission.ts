import { createHash } from 'node:crypto';
import { CODE_IN_IMAGE, isArchiveInS3 } from '../../../lib/core/config/code-source';
import { applyOverrides } from '../../../lib/core/config/reading/overrides';
import { parseYaml } from '../../../lib/core/config/reading/yaml-file';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import type { ControlPayload } from '../../../lib/core/contracts/control';
import { dateAt } from '../core/epoch';
import { type Scenario, specOf } from './load';

/** Size of the archive of a run's custom code, bytes. */
export const CODE_BYTES = 20_000;

/**
 * The text of a run file as it is submitted.
 * @param idOf id of a run that the scenario names; other names are returned unchanged
 */
export function submittedText(text: string, idOf: (named: string) => string): string {
  const spec = specOf(text);
  if (!spec) return text;
  const { startFrom } = spec.checkpoints;
  const overrides = [
    ...spec.after.map((id, i) => `after[${i}]=${idOf(id)}`),
    ...(startFrom === undefined ? [] : [`checkpoints.startFrom=${idOf(startFrom)}`]),
  ];
  return overrides.length === 0 ? text : JSON.stringify(applyOverrides(parseYaml(text).data, overrides).data);
}

/**
 * The request that the command line sends to control to start a run of a scenario.
 * @param runFile its text as submitted
 */
export const startRequest = (
  { id, text, startAt, note }: Scenario['runs'][number],
  runId: string,
  runFile: string,
): ControlPayload => ({
  action: 'start',
  runFile,
  clientRequestId: `start-${id}`,
  runId,
  acceptsUnknownPrice: true,
  ...(note !== undefined && { note }),
  ...(startAt !== undefined && { startAt: dateAt(startAt * 1000).toISOString() }),
  ...codeOf(text),
});

/** The digest of a run file's custom code, as if the command line had packed it. */
export function codeOf(text: string): { code?: { sha256: string; bytes: number } } {
  const source = specOf(text)?.code;
  if (!source || !isPacked(source)) return {};
  return { code: { sha256: createHash('sha256').update(source.source).digest('hex'), bytes: CODE_BYTES } };
}

/** Whether the command line packs the code of such a run and uploads it. */
export const isPacked = ({ builtin, source }: RunSpec['code']): boolean =>
  !builtin && source !== CODE_IN_IMAGE && !isArchiveInS3(source);
