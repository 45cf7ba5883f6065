import {
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  UpdateTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { StartSessionCommand, type StartSessionCommandInput } from '@aws-sdk/client-ssm';
import { type Issue, issue } from '../../core/config/issue';
import type { Refusal, RequestOf, ShellAnswer } from '../../core/contracts/control';
import { type RunPlace, runCommand } from '../../core/contracts/names';
import { noteEvent } from '../../core/lifecycle/intent';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import { trainingInstances } from '../../shared/aws/live-usage';
import { isNamed } from '../shared/custom-resource';
import { readDescriptor } from '../shared/descriptors';
import { changeRun } from './change-run';
import type { ControlDeps } from './deps';
import { refusal } from './own-run';

/** Documentation of target format, statuses and permissions. */
const PAGE = 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-remote-debugging.html';
/** AWS document that runs one command in a terminal. */
const COMMAND_DOCUMENT = 'AWS-StartInteractiveCommand';

/**
 * Opens a Session Manager session on a host of the run, and enables remote debugging if the run did not.
 *
 * People have no permission to start sessions themselves: the target of a session is named after the job, and the name of a job does not
 * show which team it belongs to. The answer contains a token that is valid for this one session. While the agent of the host is not
 * connected, the answer says so, and the caller asks again.
 */
export async function openShell(
  deps: ControlDeps,
  own: RunRecord,
  request: RequestOf<'shell'>,
): Promise<ShellAnswer | Refusal> {
  const { guardrails } = await readDescriptor(deps, own.team);
  const place = { name: deps.environment, team: own.team, region: deps.region };
  const wrong = runIssue(own, guardrails?.allowRemoteDebug === true, place);
  if (wrong) return refusal(wrong);
  const job = await deps.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: own.attempt?.jobName }));
  const unfit = jobIssue(job, request.host, own.runId, place);
  if (unfit) return refusal(unfit);
  await enableRemoteDebug(deps, own, job);
  return startSession(deps, own, request, job.TrainingJobName ?? '');
}

/** Why no shell can be opened on any host of the run; undefined when it can. */
function runIssue(run: RunRecord, isAllowed: boolean, place: RunPlace): Issue | undefined {
  if (run.kind !== 'training')
    return issue('shell/kind', 'error', 'run', {
      must: 'must be a training run: the API has no remote debugging for processing jobs',
      got: run.runId,
      fix: `read its log with ${runCommand('logs', run.runId, place)}`,
    });
  if (!isAllowed)
    return issue('shell/guardrail', 'error', 'guardrails.allowRemoteDebug', {
      must: `must be true in environment ${place.name}: a shell has the credentials of the team's role`,
      fix: 'ask the platform team to set it and deploy',
    });
  if (isOver(run) || run.attempt?.phase !== 'created')
    return issue('shell/not-running', 'error', 'run', {
      must: 'must have a live job',
      got: `${run.runId}, ${run.state}`,
      fix: 'see slipway status',
    });
  return undefined;
}

function jobIssue(
  job: DescribeTrainingJobCommandOutput,
  host: number,
  runId: string,
  place: RunPlace,
): Issue | undefined {
  if (job.SecondaryStatus !== 'Training' && job.SecondaryStatus !== 'Downloading')
    return issue('shell/not-running', 'error', 'run', {
      must: 'must have a job in Training: only then do its containers take sessions',
      got: `${runId}, ${job.SecondaryStatus}`,
      fix: 'try again when slipway status shows Training',
    });
  if (job.EnableNetworkIsolation)
    return issue('shell/isolation', 'error', 'network.isolation', {
      must: 'must be false for a shell: an isolated container cannot reach Systems Manager',
      got: true,
      fix: `read its log with ${runCommand('logs', runId, place)}`,
    });
  const hosts = trainingInstances(job).instances.reduce((sum, { count }) => sum + count, 0);
  if (host <= hosts) return undefined;
  return issue('shell/host', 'error', '--node', {
    must: `must be 1 to ${hosts}`,
    got: host,
    fix: 'choose one of them',
  });
}

/** UpdateTrainingJob accepts this change while the job is Downloading or Training. */
async function enableRemoteDebug(
  deps: ControlDeps,
  run: RunRecord,
  job: DescribeTrainingJobCommandOutput,
): Promise<void> {
  if (job.RemoteDebugConfig?.EnableRemoteDebug) return;
  const change = { TrainingJobName: job.TrainingJobName, RemoteDebugConfig: { EnableRemoteDebug: true } };
  await deps.sagemaker.send(new UpdateTrainingJobCommand(change));
  const text = `remote debugging was turned on for ${job.TrainingJobName}, for slipway shell of team ${run.team}`;
  await changeRun(deps, run, (r) => noteEvent(r, 'remote-debug-enabled', text, deps.now().getTime()));
}

async function startSession(
  deps: ControlDeps,
  run: RunRecord,
  { host, command }: RequestOf<'shell'>,
  trainingJobName: string,
): Promise<ShellAnswer | Refusal> {
  const input: StartSessionCommandInput = {
    Target: `sagemaker-training-job:${trainingJobName}_algo-${host}`,
    ...(command !== undefined && { DocumentName: COMMAND_DOCUMENT, Parameters: { command: [command] } }),
    Reason: `slipway shell: run ${run.runId}, team ${run.team}`,
  };
  const shared = { ok: true as const, runId: run.runId, trainingJobName, request: input };
  try {
    const { SessionId = '', StreamUrl = '', TokenValue = '' } = await deps.ssm.send(new StartSessionCommand(input));
    const text = `a shell was opened into algo-${host} of ${trainingJobName} for team ${run.team}: session ${SessionId}`;
    await changeRun(deps, run, (r) => noteEvent(r, 'shell-opened', text, deps.now().getTime()));
    return { ...shared, session: { SessionId, StreamUrl, TokenValue } };
  } catch (error) {
    if (isNamed(error, 'TargetNotConnected')) return { ...shared, session: null };
    if (isNamed(error, 'AccessDeniedException', 'InvalidDocument')) return refusal(sessionIssue(error));
    throw error;
  }
}

const sessionIssue = (error: unknown) =>
  issue('shell/session', 'error', 'run', {
    must: 'must be a host that Systems Manager opens a session into',
    got: (error as Error).message,
    fix: `compare with ${PAGE}`,
  });
