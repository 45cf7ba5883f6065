import type { Descriptor } from '../config/descriptor';
import type { FailureHistory, KnownGpus, Rollback, Skip } from '../config/job-file';
import type { RunSpec } from '../config/run-spec';
import { HEARTBEAT_OBJECT } from '../contracts/storage';

/** Inputs for the request of one attempt. Pure data: the same plan gives exactly the same request. */
export interface JobPlan {
  run: RunSpec;
  descriptor: Descriptor;
  region: string;
  runId: string;
  /** Counted from 1. */
  attempt: number;
  /** Location of the code archive: the upload of this run, or the S3 URI in the run file. Absent for built-in code. */
  code?: { uri: string; sha256: string | null };
  driver: { uri: string; hash: string };
  /** sha256 of the resolved spec. */
  configHash: string;
  /** URI of the newest complete checkpoint; '' when there is none. */
  resumeFrom: string;
  /** Shared only by the hosts of this attempt. */
  restartSecret: string;
  /** Absent = no earlier attempts. */
  history?: FailureHistory;
  /** Absent = none is known. */
  knownGpus?: KnownGpus;
  /** Windows of the data that rollbacks have skipped; absent = none. */
  skips?: readonly Readonly<Skip>[];
  /** Absent = all checkpoints count. */
  rollback?: Readonly<Rollback>;
}

/** `<name>-<yymmddhhmmss>` in UTC. */
export function runIdAt(name: string, now: Date): string {
  return `${name}-${now.toISOString().replace(/\D/g, '').slice(2, 14)}`;
}

/** S3 prefixes of a run: docs/reference/runtime.md, "S3 layout". */
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
    heartbeat: `${checkpoints}${HEARTBEAT_OBJECT}`,
    /** Compiled code, for all runs of the team. */
    compileCache: `s3://${checkpointBucket}/runs/${team}/compile-cache/`,
    /** Beside job.json: where the driver polls for the request to save and exit. */
    handOver: `${artifacts}job/${plan.attempt}/hand-over.json`,
  };
}

/** Where the code archive of a run is uploaded. An isolated toolkit job finds it by the name that the SDK uses. */
export function codeUri(plan: Pick<JobPlan, 'descriptor' | 'runId'>, run: RunSpec, sha256: string): string {
  const isNamed = run.distribution.contract === 'toolkit' && run.network.isolation;
  const key = isNamed ? `${sha256}/sourcedir.tar.gz` : `${sha256}.tar.gz`;
  return `${runPrefixes({ ...plan, attempt: 1 }).code}${key}`;
}

/** The text from which a run's configuration hash is computed: two files with the same meaning give the same text. */
export function configText({ written: _written, ...resolved }: RunSpec): string {
  return JSON.stringify(resolved);
}
