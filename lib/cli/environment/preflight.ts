import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { limitIssues, quotaIssues, withinLimits } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders, placeOf } from '../../core/config/formats/places';
import { textTable } from '../../core/config/formats/plain-text';
import { bareIssue, hasErrors, type Issue, type IssueText, issue } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import type { RunSpec } from '../../core/config/run-spec';
import { type Limits, launchOutcome, type QuotaRow, quotaTable, runQuotaNeeds, shortRows } from '../../core/quota';
import { awsClient } from '../aws-client';
import { calling, isDenied } from '../aws-errors';
import { EXIT, Refusal } from '../exit';
import { withS3Config } from '../hub/fetched';
import { type CommonOptions, readGiven, requireRun } from '../inputs';
import { json, quoted, type Terminal } from '../terminal';
import { accountChecks, type Check, checkIssues, checkTrainingPlans } from './checks/account-checks';
import { environmentChecks } from './checks/environment-checks';
import { deployChecks, hasNoStack } from './checks/first-deploy';
import { callRegion, findDescriptor } from './environment';
import { environmentFiles, environmentIn, needsOfEnvironment, requireEnvironment } from './environment-file';
import { quotaJson, quotaRows } from './quota';

/** ListObjectsV2 answers no more keys at once; a run of more instances is not asked for more. */
const MAX_KEYS = 1000;

/**
 * Issues about data and weights that do not exist; the service would report them only after the job's instances had started. A run that
 * waits for another one (`after`) may read the output of that run, so for it they are warnings.
 */
export async function missingData(run: RunSpec, descriptor: Descriptor): Promise<Issue[]> {
  const places = placesOf(run, descriptor);
  const s3 = awsClient(S3Client, { region: descriptor.region, followRegionRedirects: true });
  const level = run.after.length > 0 ? 'warning' : 'error';
  return (await Promise.all(places.map((place) => checkPlace(s3, place, level)))).flat();
}

/** Places that must have an object for each of `instances`. */
function placesOf(run: RunSpec, descriptor: Descriptor) {
  const written = [
    ...run.data.map(({ s3, s3DataType = 'S3Prefix', s3DataDistribution }, i) => {
      const isDivided = s3DataDistribution === 'ShardedByS3Key' && s3DataType === 'S3Prefix';
      const instances = isDivided ? Math.min(run.compute.instanceCount, MAX_KEYS) : 1;
      return { path: `data[${i}].s3`, uri: s3, instances };
    }),
    { path: 'model.weights', uri: placeOf(run.written.model?.weights), instances: 1 },
  ];
  return written.flatMap(({ path, uri, instances }) => {
    const runId = `${run.name}-000000000000`;
    // The run's own output does not exist yet.
    if (uri === undefined || uri.includes('{runId}')) return [];
    const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(fillPlaceholders(uri, { descriptor, runId })) ?? [];
    return bucket ? [{ path, bucket, prefix, instances }] : [];
  });
}

async function checkPlace(
  s3: S3Client,
  { path, bucket, prefix, instances }: ReturnType<typeof placesOf>[number],
  level: 'error' | 'warning',
): Promise<Issue[]> {
  const problem = (level: Issue['level'], text: IssueText) => [issue('data/empty', level, path, text)];
  try {
    const { KeyCount: found = 0 } = await s3.send(
      new ListObjectsV2Command({
        ...{ Bucket: bucket, Prefix: prefix, MaxKeys: instances },
        ...(instances === 1 && { Delimiter: '/' }),
      }),
    );
    if (found >= instances) return [];
    const place = `s3://${bucket}/${prefix}`;
    if (found === 0)
      return problem(level, {
        must: 'must contain at least one object',
        got: `none at ${place}`,
        fix: `upload the data (aws s3 sync FOLDER ${place}), or correct the prefix`,
      });
    return problem('warning', {
      must: `must contain an object for each of ${instances} instances (s3DataDistribution: ShardedByS3Key)`,
      got: `${found} at ${place}`,
      fix: 'write more files, or use FullyReplicated',
    });
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'NoSuchBucket')
      return problem('error', {
        must: 'must be in a bucket that exists',
        got: bucket,
        fix: 'correct the name, or create the bucket',
      });
    const denied = `no permission for s3:ListBucket on ${bucket} under ${prefix}`;
    return problem('warning', {
      must: 'must contain at least one object, which could not be checked',
      got: isDenied(error) ? denied : `${name}: ${message}`,
      fix: "ask the bucket's owner; the job itself uses its own role",
    });
  }
}

/**
 * `slipway preflight FILE`: checks quotas, and what the account must provide for the run or the environment. Without a file, it checks the
 * credentials and names the environment files of this folder.
 */
export async function preflight(file: string | undefined, given: CommonOptions, terminal: Terminal): Promise<number> {
  if (file === undefined) return credentialsPreflight(given, terminal);
  const read = readGiven(file);
  if (isEnvironmentFile(read.text)) return environmentPreflight(file, read.text, given, terminal);
  const options = await withS3Config(read, given);
  const descriptor = await findDescriptor(options, requireRun(read, options).run.environment);
  const { run, issues } = requireRun(read, options, descriptor);
  const [rows, checks, missing, plans] = await Promise.all([
    quotaRows(runQuotaNeeds(run), descriptor.region),
    accountChecks(run, descriptor),
    missingData(run, descriptor),
    checkTrainingPlans(run, descriptor),
  ]);
  const allChecks = [...checks, ...plans.checks];
  const limits = limitsOf(rows);
  const ofQuotas = run.compute.elastic ? limitIssues(run, rows, limits) : quotaIssues(rows);
  const found = [...issues, ...ofQuotas, ...checkIssues(allChecks), ...plans.issues, ...missing];
  return report({ rows, checks: allChecks, issues: found }, options, terminal);
}

async function credentialsPreflight(options: CommonOptions, terminal: Terminal): Promise<number> {
  const region = await callRegion(options);
  const sts = awsClient(STSClient, { region, maxAttempts: 3 });
  const { Account: account, Arn: caller } = await calling('reading the caller of AWS', () =>
    sts.send(new GetCallerIdentityCommand({})),
  );
  const environments = environmentFiles();
  if (options.json) terminal.out(json({ ok: true, region, account, caller, environments }));
  else {
    const cells = ['credentials', 'ok', `${caller} in account ${account}, ${region}`];
    terminal.out(textTable(['check', 'verdict', 'detail'], [cells]));
    for (const one of environments) terminal.out(`to check an environment: slipway preflight ${quoted(one)}`);
    if (environments.length === 0) terminal.err('no environment file in environments/; slipway init writes one');
  }
  return EXIT.done;
}

/** The limits that are known, by quota name. */
const limitsOf = (rows: readonly QuotaRow[]): Limits =>
  new Map(rows.flatMap((row) => (row.limit === null ? [] : [[row.name, { value: row.limit }]])));

async function environmentPreflight(
  file: string,
  text: string,
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const disk = requireEnvironment(file, text, options);
  const environment = await environmentIn(disk, file, options);
  const [rows, ...found] = await Promise.all([
    quotaRows(needsOfEnvironment(disk, environment), environment.region),
    environmentChecks(environment, file),
    hasNoStack(environment).then((isFirst) => deployChecks(environment, isFirst)),
  ]);
  const checked = found.flat();
  const issues = [...disk.issues.map(bareIssue), ...quotaIssues(rows), ...checked.flatMap((one) => one.issues)];
  return report({ rows, checks: checked.map(({ check }) => check), issues }, options, terminal);
}

function report(
  { rows, checks, issues }: { rows: QuotaRow[]; checks: Check[]; issues: Issue[] },
  options: CommonOptions,
  terminal: Terminal,
): number {
  const ok = !hasErrors(issues);
  if (options.json) terminal.out(json({ ok, issues, quotas: rows.map(quotaJson), checks }));
  else {
    terminal.out(quotaTable(rows));
    const cells = checks.map((c) => [c.name, c.verdict, c.detail]);
    if (checks.length > 0) terminal.out(`\n${textTable(['check', 'verdict', 'detail'], cells)}`);
    for (const found of issues) terminal.err(`${found.level}: ${found.message}`);
  }
  return ok ? EXIT.done : EXIT.refused;
}

/** For an elastic run: the rows for the largest size that the limits allow. */
async function quotaRowsOf(run: RunSpec, region: string, terminal: Terminal): Promise<QuotaRow[]> {
  const rows = await quotaRows(runQuotaNeeds(run), region);
  const limits = limitsOf(rows);
  for (const found of run.compute.elastic ? limitIssues(run, rows, limits) : [])
    if (found.level === 'warning') terminal.err(`${found.level}: ${found.message}`);
  const sized = withinLimits(run, limits);
  return sized.compute.instanceCount === run.compute.instanceCount ? rows : quotaRows(runQuotaNeeds(sized), region);
}

/** The preflight of a launch: missing data and needs above a limit are errors; a run that needs more than is free waits in the queue. */
export async function preflightRun(run: RunSpec, descriptor: Descriptor, terminal: Terminal): Promise<void> {
  const [rows, missing, plans] = await Promise.all([
    quotaRowsOf(run, descriptor.region, terminal),
    missingData(run, descriptor),
    checkTrainingPlans(run, descriptor),
  ]);
  const reported = [...missing, ...checkIssues(plans.checks), ...plans.issues];
  if (hasErrors(reported)) throw new Refusal(reported.filter(({ level }) => level === 'error'));
  for (const found of reported) terminal.err(`${found.level}: ${found.message}`);
  const outcome = launchOutcome(rows);
  if (outcome === 'refuse') throw new Refusal(quotaIssues(rows), { quotas: rows.map(quotaJson) });
  if (outcome === 'wait') terminal.err(`quota: the run will wait for free instances\n${quotaTable(shortRows(rows))}`);
  const unknown = rows.filter((r) => r.verdict === 'unknown').map((r) => `${r.name}: ${r.reason}`);
  if (outcome === 'unknown') terminal.err(`quota: ${unknown.join('; ')}`);
}
