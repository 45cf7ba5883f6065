import { isEqual } from '../../../lib/core/lifecycle/health/observation-schedule';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import type { SimJob } from '../job/job';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';

/**
 * The table and each job contain the values of the run file, and the checkpoint address that a job gets is one that its container can read.
 */
export class AsWritten extends Invariant {
  readonly name = 'as-written';
  private readonly seen = new Set<SimRun>();

  /** `list` searches by these fields, and the queue sorts by them. */
  override onRunWritten(run: SimRun): void {
    const { record, truth } = run;
    if (!record || !truth) return;
    this.checkReason(run, record);
    if (this.seen.has(run)) return;
    this.seen.add(run);
    const { name, kind, priority, tags } = truth.spec;
    const { note } = run.entry;
    const written = { name: record.name, kind: record.kind, priority: record.priority, tags: record.tags ?? {} };
    if (!isEqual(written, { name, kind, priority, tags }) || record.note !== note)
      this.break(`the table says of run ${run.id} ${JSON.stringify(written)}, and its run file something else`);
  }

  /**
   * While a job is being stopped or asked to exit, the record states the reason; after a person's stop, that of the stop until the next
   * observation.
   */
  private checkReason(run: SimRun, { attempt, reason, desired }: RunRecord): void {
    const leaves = attempt?.phase === 'created' && !run.isOver ? (attempt.stop ?? attempt.handOver) : undefined;
    const isStop = desired === 'stop' && reason.startsWith('stop asked by ');
    if (leaves && !isStop && reason !== leaves.text)
      this.break(`the table says of run ${run.id} '${reason}', and its job leaves: ${leaves.text}`);
  }

  override onCreate(run: SimRun | undefined, job: SimJob): void {
    if (!run || !job.truth) return;
    if (this.now < run.mayStartAt - this.skewMs()) this.break(`${job.name} was created before its run may start`);
    const { tags, checkpoints } = job.truth.spec;
    const given = new Map((job.request.Tags ?? []).map(({ Key, Value }) => [Key, Value]));
    const missing = Object.entries(tags).find(([key, value]) => given.get(key) !== value);
    if (missing) this.break(`${job.name} has no tag ${missing[0]}: ${missing[1]}, which its run file sets`);
    if (job.resumeUri === '') return;
    // The service restores managed checkpoints to a local path, and the container does not know the prefix in S3.
    const isLocal = job.resumeUri.startsWith(`${checkpoints.localPath.replace(/\/$/, '')}/`);
    if (isLocal !== (checkpoints.mode === 'managed'))
      this.break(`${job.name} is told to begin at ${job.resumeUri}, with checkpoints of mode ${checkpoints.mode}`);
  }

  private skewMs(): number {
    return (this.scene.world.scenario.faults ?? []).reduce((sum, { clock = 0 }) => sum + Math.abs(clock) * 1000, 0);
  }
}
