import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import type { RunSpec } from '../../core/config/run-spec';
import { needsAccelerator, type SmokePlace, smokeOverrides } from '../../core/config/smoke';
import { type DesiredAnswer, hasEnded, type StatusAnswer } from '../../core/contracts/control';
import { embeddedEndpoint } from '../../shared/environment/embedded-endpoint';
import { EXIT, UsageError } from '../exit';
import { type GivenFile, requireRun } from '../inputs';
import { callControl } from '../runs/control-client';
import { committedCheckpoints } from '../runs/reports/committed-checkpoints';
import { follow } from '../runs/wait';
import { json, type Terminal } from '../terminal';
import type { LaunchOptions } from './launch';
import { submitConfirmed } from './submit';

interface SmokeCheck {
  name: 'checkpoint' | 'resume' | 'goes on' | 'completes';
  ok: boolean;
  detail: string;
}

/**
 * `slipway launch FILE --smoke [sandbox|account]`: a small run with the same code and strategy. With the built-in trainer the run is
 * stopped after its first checkpoint and resumed from it; custom code runs once, with SLIPWAY_SMOKE=1 in its environment.
 */
export async function launchSmoke(
  source: GivenFile,
  descriptor: Descriptor,
  options: LaunchOptions,
  terminal: Terminal,
): Promise<number> {
  const place = placeOf(options.smoke);
  const { run } = requireRun(source, options, descriptor);
  if (run.compute.instanceGroups.length > 0)
    throw new UsageError(
      '--smoke: must be a run on one instance type, got instance groups; test one of its groups with a separate file',
    );
  if (place === 'sandbox') requireSandbox(run);
  const set = [...(options.set ?? []), ...smokeOverrides(run, place)];
  // Checked by every rule: options that scaling makes invalid are reported before any cost arises.
  const small = requireRun(source, { ...options, set }, descriptor);
  const launched = { checked: small, file: source.file, descriptor };
  const { runId } = await submitConfirmed(launched, { ...options, set }, terminal);
  const checks =
    small.run.code.builtin && small.run.checkpoints.mode !== 'none'
      ? await interrupted(descriptor, runId, terminal)
      : [await completed(descriptor, runId, terminal)];
  const passed = checks.every(({ ok }) => ok);
  const rows = checks.map((c) => [c.name, c.ok ? 'passed' : 'failed', c.detail]);
  const table = textTable(['check', 'verdict', 'seen'], rows);
  terminal.out(options.json ? json({ runId, passed, checks }) : table);
  return passed ? EXIT.done : EXIT.runFailed;
}

function placeOf(given: LaunchOptions['smoke']): SmokePlace {
  if (given === true || given === 'account') return 'account';
  if (given === 'sandbox') return 'sandbox';
  throw new UsageError(`--smoke: must be sandbox or account, got ${given}; omit the value for account`);
}

function requireSandbox(run: RunSpec): void {
  if (!embeddedEndpoint())
    throw new UsageError(
      `--smoke sandbox: must be called with the environment variables of the sandbox, got ${process.env.AWS_ENDPOINT_URL ?? 'no AWS_ENDPOINT_URL'}; eval "$(slipway sandbox start)" and deploy the environment into it`,
    );
  if (needsAccelerator(run))
    throw new UsageError(
      `--smoke sandbox: must be a run that can run on CPUs (fsdp, ddp, custom), got library ${run.distribution.library}; use --smoke account`,
    );
}

/**
 * Stops the run once a checkpoint is committed, resumes it, and stops it again once the second attempt has committed one. Commits are read
 * from the bucket, because the status shows them only after the next tick of the control plane, minutes later.
 */
async function interrupted(descriptor: Descriptor, runId: string, terminal: Terminal): Promise<SmokeCheck[]> {
  const stop = () =>
    callControl<DesiredAnswer>(descriptor, { action: 'stop', runId, reason: 'smoke run: checks completed' });
  const isBeyond = (step: number) => async (status: StatusAnswer) =>
    hasEnded(status) || (await newestCommitted(descriptor, runId)) > step;
  const saved = await follow(descriptor, runId, terminal, { until: isBeyond(0) });
  if (hasEnded(saved)) return [{ name: 'checkpoint', ok: false, detail: `${saved.state}: ${saved.reason}` }];
  await stop();
  const before = (await follow(descriptor, runId, terminal)).attempts.length;
  const first = await newestCommitted(descriptor, runId);
  await callControl<DesiredAnswer>(descriptor, { action: 'resume', runId });
  const again = await follow(descriptor, runId, terminal, { until: isBeyond(first) });
  if (!hasEnded(again)) await stop();
  const ended = await follow(descriptor, runId, terminal);
  const second = await newestCommitted(descriptor, runId);
  return [
    { name: 'checkpoint', ok: first > 0, detail: `committed step ${first}` },
    resume(first, ended, before),
    { name: 'goes on', ok: second > first, detail: second > first ? `committed step ${second}` : ended.reason },
  ];
}

/** Step of the newest complete checkpoint; 0 = none yet. */
async function newestCommitted(descriptor: Descriptor, runId: string): Promise<number> {
  const listed = await committedCheckpoints(descriptor, runId);
  return Math.max(0, ...listed.filter(({ isComplete }) => isComplete).map(({ step }) => step));
}

/** The attempt that follows the resume must start at the newest checkpoint before it. */
function resume(committed: number, { attempts }: StatusAnswer, before: number): SmokeCheck {
  const first = attempts[before]?.firstStep ?? null;
  const detail = `attempt ${before + 1} from step ${first ?? '-'} after committed step ${committed}`;
  return { name: 'resume', ok: first === committed + 1, detail };
}

async function completed(descriptor: Descriptor, runId: string, terminal: Terminal): Promise<SmokeCheck> {
  const { state, reason } = await follow(descriptor, runId, terminal);
  return { name: 'completes', ok: state === 'completed', detail: reason ? `${state}: ${reason}` : state };
}
