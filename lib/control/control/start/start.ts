import { createHash } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { isArchiveInS3 } from '../../../core/config/code-source';
import type { Descriptor } from '../../../core/config/descriptor';
import { bucketAndKey, fillPlaceholders, parseS3Uri } from '../../../core/config/formats/places';
import { type Issue, issue } from '../../../core/config/issue';
import type { RunSpec } from '../../../core/config/run-spec';
import {
  type IntentAnswer,
  type Refusal,
  type StartRequest,
  UNMET,
  type UploadAnswer,
} from '../../../core/contracts/control';
import { latestName } from '../../../core/contracts/names';
import { codeUri, configText, runIdAt, runPrefixes } from '../../../core/job/plan';
import { teamKeyEncryption } from '../../../core/job/team-key';
import { event } from '../../../core/lifecycle/action';
import { policyOf } from '../../../core/lifecycle/capacity-options';
import { newRun, repeatStart } from '../../../core/lifecycle/intent';
import type { RunPolicy, RunRecord } from '../../../core/lifecycle/record';
import { elasticSizes } from '../../../core/rules/compute/hosts';
import { readDescriptor } from '../../shared/descriptors';
import type { RunIntent } from '../../shared/items';
import { UnreadableItem } from '../../shared/stored';
import { changeRun } from '../change-run';
import type { ControlDeps } from '../deps';
import { anotherRunRefusal, closedRefusal, refusal, unreadableIssue } from '../own-run';
import { checkStart } from './check-run';

/** Request id of a registered run: the hash of its file and code (lib/control/registered-run). Requests of people have random UUIDs. */
const REGISTERED = /^[0-9a-f]{64}$/;

/** Creates the record, with everything that `decide` needs from the run file. */
function recordOf(
  deps: Pick<ControlDeps, 'environment' | 'region'>,
  run: RunSpec,
  { clientRequestId, startAt, note }: StartRequest,
  { descriptor, runId, team, now }: Place & { team: string; now: number },
): RunRecord {
  const { prices, guardrails } = descriptor;
  return newRun(
    {
      runId,
      name: run.name,
      team,
      environment: deps.environment,
      kind: run.kind,
      configHash: configHash(run),
      priority: run.priority,
      after: run.after,
      policy: cappedPolicy(policyOf(run, deps.region, prices, elasticSizes(run)), guardrails),
      ...(Object.keys(run.tags).length > 0 && { tags: run.tags }),
      ...(note !== undefined && { note }),
      ...(!REGISTERED.test(clientRequestId) && { requestId: clientRequestId }),
      notBefore: timeOf(startAt),
    },
    now,
  );
}

/** The guardrail bounds every run, whether or not its file names a cap. */
function cappedPolicy(policy: RunPolicy, guardrails: Descriptor['guardrails']): RunPolicy {
  const most = guardrails?.maxCostPerRunUsd;
  if (most === undefined || (policy.maxCostUsd ?? Number.POSITIVE_INFINITY) <= most) return policy;
  return { ...policy, maxCostUsd: most, costCapFrom: 'guardrails.maxCostPerRunUsd' };
}

const timeOf = (iso?: string): number | undefined => (iso === undefined ? undefined : Date.parse(iso));

/** sha256 of the resolved spec: two files with the same meaning have the same hash. */
const configHash = (run: RunSpec): string => sha256(configText(run));
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Of what was sent: the same for each version of this code. `launch --fetch` waits for a run only until that has fetched. */
const textHash = ({ runFile, overrides = [] }: StartRequest): string =>
  sha256(JSON.stringify([runFile, overrides.filter((override) => !override.startsWith('after='))]));

/** Location of the code and the results of a run. */
type Place = Parameters<typeof codeUri>[0];

/** The inputs from which every attempt of the run is created. */
function intentOf(
  deps: Pick<ControlDeps, 'randomSecret'>,
  run: RunSpec,
  request: StartRequest,
  place: Place,
): RunIntent {
  const { descriptor } = place;
  if (!descriptor.driver)
    throw new Error(`the descriptor of environment ${descriptor.name} names no driver; deploy it again`);
  return {
    spec: run,
    code: codeOf(run, request, place),
    driver: { uri: descriptor.driver.uri, hash: descriptor.driver.hash },
    secret: deps.randomSecret(),
    trainingImageUri: descriptor.trainingImageUri ?? null,
    textHash: textHash(request),
  };
}

/** Location of the code. An archive that was already in S3 stays there, and must keep the digest that it had at the start. */
function codeOf(run: RunSpec, { code }: StartRequest, place: Place): RunIntent['code'] {
  const { source } = run.code;
  if (isArchiveInS3(source))
    return {
      uri: fillPlaceholders(source, place),
      sha256: run.code.sha256 ?? code?.sha256 ?? null,
      bytes: null,
    };
  return code ? { ...code, uri: codeUri(place, run, code.sha256) } : null;
}

/** Run ids are based on the time in seconds; this many taken ids in a row for one name indicate an error of the caller. */
const MAX_ID_TRIES = 30;

/** First call of a start: repeats all checks, stores the intent, and answers with the upload URLs. */
export async function startRun(
  deps: ControlDeps,
  team: string,
  request: StartRequest,
): Promise<IntentAnswer | Refusal> {
  const known = await deps.store.findRequest(team, request.clientRequestId);
  if (known) return startAgain(deps, team, request, known);
  const descriptor = await readDescriptor(deps, team);
  const { run, issues, quota } = await checkStart(request, descriptor, deps.region, deps.limits);
  const others = run ? [...sizeIssues(run), ...(await otherRunIssues(deps, team, run))] : [];
  if (!run || others.length > 0) return { ok: false, issues: [...issues, ...others], quota };
  const refused = (await closedRefusal(deps)) ?? (await anotherRunRefusal(deps, team));
  if (refused) return refused;
  const made = await writeIntent(deps, team, request, { run, descriptor });
  if (!made) return refusal(issue('run-id/taken', 'error', '--run-id', { ...TAKEN, got: request.runId ?? run.name }));
  await deps.s3.send(
    new PutObjectCommand({
      ...bucketAndKey(`${runPrefixes({ descriptor, runId: made.runId, attempt: 0 }).artifacts}run.yaml`),
      Body: request.runFile,
      ...teamKeyEncryption(descriptor),
    }),
  );
  const uploads = await uploadsOf(deps, made.intent, descriptor);
  return { ok: true, runId: made.runId, uploads, issues: [...issues, ...(await unmetIssues(deps, team, run))], quota };
}

const TAKEN = { must: 'must be a run id that is free', fix: 'leave --run-id out, or use another one' };

/** The same request again, because its answer was lost or its uploads did not arrive: returns the same run with fresh URLs. */
async function startAgain(
  deps: ControlDeps,
  team: string,
  request: StartRequest,
  runId: string,
): Promise<IntentAnswer | Refusal> {
  const [intent, record] = await Promise.all([deps.store.findIntent(runId), deps.store.find(runId)]);
  if (!intent) throw new Error(`run ${runId} has no intent in the run table`);
  if (record?.requestId !== undefined && !isRequestOf(intent, request)) {
    const must = `must be new for another run file or other code: it started ${runId}`;
    const text = { must, got: request.clientRequestId, fix: 'use another id' };
    return refusal(issue('request-id/reused', 'error', '--client-request-id', text));
  }
  const now = deps.now().getTime();
  if (record && repeatStart(record, now)) {
    const refused = (await closedRefusal(deps)) ?? (await anotherRunRefusal(deps, team));
    if (refused) return refused;
    await changeRun(deps, record, (newest) => repeatStart(newest, now, timeOf(request.startAt)));
  }
  const uploads = record?.confirmed ? [] : await uploadsOf(deps, intent, await readDescriptor(deps, team));
  return { ok: true, runId, uploads, issues: [], quota: [] };
}

/** Whether a request has the run file and the code of an intent. */
function isRequestOf({ textHash: hash, code }: RunIntent, request: StartRequest): boolean {
  if (hash === undefined) return true;
  return hash === textHash(request) && (!code?.bytes || code.sha256 === request.code?.sha256);
}

async function writeIntent(
  deps: ControlDeps,
  team: string,
  request: StartRequest,
  { run, descriptor }: { run: RunSpec; descriptor: Descriptor },
): Promise<{ runId: string; intent: RunIntent } | undefined> {
  const now = deps.now();
  for (let tries = 0; tries < MAX_ID_TRIES; tries++) {
    const runId = request.runId ?? runIdAt(run.name, new Date(now.getTime() + tries * 1000));
    const intent = intentOf(deps, run, request, { descriptor, runId });
    const record = recordOf(deps, run, request, { descriptor, runId, team, now: now.getTime() });
    const line = event(now.getTime(), 'run-intended', `start asked by team ${team}`, { configHash: record.configHash });
    if (await deps.store.create(record, intent, request.clientRequestId, line)) return { runId, intent };
    // The write may have succeeded although its answer was lost: in that case the request is known now.
    const known = await deps.store.findRequest(team, request.clientRequestId);
    const own = known === undefined ? undefined : await deps.store.findIntent(known);
    if (known !== undefined && own) return { runId: known, intent: own };
    if (request.runId) return undefined;
  }
  return undefined;
}

async function uploadsOf(deps: ControlDeps, intent: RunIntent, { teamKeyArn }: Descriptor): Promise<UploadAnswer[]> {
  const { code } = intent;
  if (!code || code.sha256 === null || code.bytes === null) return [];
  const place = parseS3Uri(code.uri);
  const signed = await deps.presign(place, { sha256: code.sha256, teamKeyArn });
  return [{ key: place.key, sha256: code.sha256, ...signed }];
}

/** An item of the run table has at most 400 KB; the record of the run and what is added later stay far below. */
const MAX_STORED_BYTES = 350_000;

function sizeIssues(run: RunSpec): Issue[] {
  const bytes = Buffer.byteLength(JSON.stringify(run));
  if (bytes <= MAX_STORED_BYTES) return [];
  const text = { must: `must have at most ${MAX_STORED_BYTES} bytes once its defaults are filled in`, got: bytes };
  return [
    issue('run-file/size', 'error', 'run file', { ...text, fix: 'move long values into files of the code folder' }),
  ];
}

/** Number of newest runs of a team among which one of a name is looked for. */
const MAX_LISTED = 2000;

/** Warns of `latest:<name>` without a run of that name: it may be launched later, or the name is mistyped. */
async function unmetIssues(deps: ControlDeps, team: string, { after }: RunSpec): Promise<Issue[]> {
  const unmet = new Set(after.flatMap((entry) => latestName(entry) ?? []));
  if (unmet.size > 0)
    for await (const page of deps.store.pagesOfTeam(team, MAX_LISTED)) {
      for (const { name } of page) unmet.delete(name);
      if (unmet.size === 0) break;
    }
  const must = `must be a run of team ${team}: this one waits until there is one`;
  const fix = 'launch it, or stop this run and correct the name';
  return after.flatMap((got, i) =>
    unmet.has(latestName(got) ?? '') ? [issue(UNMET, 'warning', `after[${i}]`, { must, got, fix })] : [],
  );
}

/** Runs that this run refers to must belong to the same team. */
async function otherRunIssues(deps: ControlDeps, team: string, run: RunSpec): Promise<Issue[]> {
  const { startFrom } = run.checkpoints;
  const named = [
    ...run.after.map((id, i) => ({ path: `after[${i}]`, id })).filter(({ id }) => latestName(id) === undefined),
    ...(startFrom && !startFrom.startsWith('s3://') ? [{ path: 'checkpoints.startFrom', id: startFrom }] : []),
  ];
  const found = await Promise.all(
    named.map(async (run) => ({ ...run, other: await deps.store.findOrUnreadable(run.id) })),
  );
  return found.flatMap(({ path, id, other }) => {
    if (other?.team !== team) {
      const text = { must: `must be a run of team ${team}`, got: id, fix: 'see slipway list' };
      return [issue('run/unknown', 'error', path, text)];
    }
    if (other instanceof UnreadableItem) return [unreadableIssue(path, other)];
    const isGone = path === 'checkpoints.startFrom' && other.filesDeletedAt !== undefined;
    const must = 'must be a run whose files were not deleted';
    return isGone ? [issue('run/deleted', 'error', path, { must, got: id, fix: 'name another run' })] : [];
  });
}
