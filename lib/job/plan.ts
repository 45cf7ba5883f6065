import type { Descriptor } from '../spec/descriptor';
import type { FailureHistory, Rollback, Skip } from '../spec/job-file';
import type { RunSpec } from '../spec/run-spec';

/** Everything one attempt's request is made of. Pure data: the same plan gives the same request, byte for byte. */
export interface JobPlan {
  run: RunSpec;
  descriptor: Descriptor;
  region: string;
  runId: string;
  /** From 1 on. */
  attempt: number;
  /** Where the code archive is: the upload of this run, or the S3 address the run file names. Absent for built-in code. */
  code?: { uri: string; sha256: string | null };
  driver: { uri: string; hash: string };
  /** sha256 of the resolved spec. */
  configHash: string;
  /** The newest complete checkpoint; '' at the start. */
  resumeFrom: string;
  /** Shared by the hosts of this attempt alone. */
  restartSecret: string;
  /** Absent = no earlier attempts. */
  history?: FailureHistory;
  /** Windows of the data that rollbacks have left out; absent = none. */
  skips?: Skip[];
  /** Absent = all checkpoints count. */
  rollback?: Rollback;
}

/** `<name>-<yymmddhhmmss>` in UTC. */
export function runIdAt(name: string, now: Date): string {
  return `${name}-${now.toISOString().replace(/\D/g, '').slice(2, 14)}`;
}

/** `<environment>-<runId>-a001`: fixed by what it runs, so that a repeated create finds itself. */
export function jobName(environment: string, runId: string, attempt: number): string {
  return `${environment}-${runId}-a${String(attempt).padStart(3, '0')}`;
}

/** Prefixes of a run: docs/reference/runtime.md, "S3 layout". */
export function runPrefixes(plan: Pick<JobPlan, 'descriptor' | 'runId' | 'attempt'>) {
  const { artifactBucket, checkpointBucket, team } = plan.descriptor;
  const artifacts = `s3://${artifactBucket}/runs/${team}/${plan.runId}/`;
  const checkpoints = `s3://${checkpointBucket}/runs/${team}/${plan.runId}/`;
  return {
    artifacts,
    job: `${artifacts}job/${plan.attempt}/`,
    code: `${artifacts}code/`,
    output: `${artifacts}output/`,
    checkpoints,
    heartbeat: `${checkpoints}heartbeat.json`,
    /** Beside job.json: where the driver looks whether the attempt is asked to save and leave. */
    handOver: `${artifacts}job/${plan.attempt}/hand-over.json`,
  };
}

/** Where the code archive of a run is uploaded. An isolated toolkit job finds it by the name that the SDK gives it. */
export function codeUri(plan: Pick<JobPlan, 'descriptor' | 'runId'>, run: RunSpec, sha256: string): string {
  const isNamed = run.distribution.contract === 'toolkit' && run.network.isolation;
  const key = isNamed ? `${sha256}/sourcedir.tar.gz` : `${sha256}.tar.gz`;
  return `${runPrefixes({ ...plan, attempt: 1 }).code}${key}`;
}

/** What a run's configuration hash is taken over: two files that mean the same give the same text. */
export function configText({ written: _written, ...resolved }: RunSpec): string {
  return JSON.stringify(resolved);
}

/** Fills `{dataBucket}`, `{checkpointBucket}`, `{team}`, `{runId}` and `{fsx}` in. */
export function fillPlaceholders(text: string, plan: Pick<JobPlan, 'descriptor' | 'runId'>): string {
  const { descriptor } = plan;
  const fileSystem = Object.values(descriptor.fileSystems ?? {})[0];
  const values: Record<string, string | undefined> = {
    dataBucket: descriptor.dataBucket,
    checkpointBucket: descriptor.checkpointBucket,
    team: descriptor.team,
    runId: plan.runId,
    fsx: fileSystem?.id ?? fileSystem?.fsxLustre,
  };
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
