import {
  DeleteTrainingJobCommand,
  DescribeTrainingJobCommand,
  StopTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import type { Stage } from './stage';

/** What the model of a job says of it. */
export interface ModelState {
  status: string;
  secondaryStatus: string;
  failureReason: string | undefined;
}

const ALGORITHM_ERROR = /^AlgorithmError: ([\s\S]*), exit code: (\d+)$/;
const OVER = ['Completed', 'Failed', 'Stopped'];
/** Where SageMaker itself can fail a job. */
const STATES = ['Starting', 'Downloading', 'Training'] as const;

/** Jobs of the sandbox that follow a model: faults keep each in its state until the model leaves it. */
export class ScriptedJobs {
  /** Faults that hold a job, by its name: without instances, or without its inputs. */
  private readonly pending = new Map<string, string>();
  private readonly downloading = new Map<string, string>();

  constructor(private readonly stage: Stage) {}

  /** A job of this name gets no instances, and then no inputs, until the model says so. */
  async hold(jobName: string): Promise<void> {
    const { admin } = this.stage;
    if (!this.pending.has(jobName))
      this.pending.set(jobName, (await admin.fault({ kind: 'pending', jobName, seconds: null, times: null })).id);
    if (this.downloading.has(jobName)) return;
    const { id } = await admin.fault({
      kind: 'state-delay',
      state: 'Downloading',
      jobName,
      seconds: null,
      times: null,
    });
    this.downloading.set(jobName, id);
  }

  /** Takes a job to where its model is. */
  async turn(jobName: string, model: ModelState): Promise<void> {
    switch (model.secondaryStatus) {
      case 'Downloading':
        return this.release(this.pending, jobName);
      case 'Training':
        await this.release(this.downloading, jobName);
        return this.until(jobName, (status, secondary) => OVER.includes(status) || secondary === 'Training');
      case 'Interrupted':
        return this.interrupt(jobName);
      case 'Completed':
        return this.end(jobName, 0);
      case 'Failed':
        return this.fail(jobName, model.failureReason ?? '');
      case 'Stopped':
        return this.stop(jobName);
      case 'Starting':
      case 'Pending':
      case 'Stopping':
      case 'Uploading':
        return;
      default:
        throw new Error(`${jobName}: the sandbox cannot be told to make it ${model.secondaryStatus}`);
    }
  }

  /** Its containers leave with this code. */
  async end(jobName: string, code: number, failure = ''): Promise<void> {
    this.stage.order(jobName, code, failure);
    await this.release(this.downloading, jobName);
    await this.until(jobName, (status) => OVER.includes(status));
  }

  /** Its processes end, and it has no instances again. */
  private async interrupt(jobName: string): Promise<void> {
    await this.hold(jobName);
    await this.stage.admin.fault({ kind: 'spot-interruption', jobName });
    await this.until(jobName, (_, secondary) => secondary === 'Interrupted');
    this.stage.order(jobName, 0);
    await this.until(jobName, (_, secondary) => secondary === 'Pending');
    this.stage.takeBackOrder(jobName);
  }

  /** Somebody stops a job and deletes it. */
  async remove(jobName: string): Promise<void> {
    await this.stop(jobName);
    await this.stage.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName: jobName }));
  }

  private async stop(jobName: string): Promise<void> {
    const [status] = await this.stateOf(jobName);
    const request = new StopTrainingJobCommand({ TrainingJobName: jobName });
    if (status === 'InProgress') await this.stage.sagemaker.send(request);
    await this.end(jobName, 0);
  }

  private async fail(jobName: string, reason: string): Promise<void> {
    const [, failure, code] = ALGORITHM_ERROR.exec(reason) ?? [];
    if (failure !== undefined) return this.end(jobName, Number(code), failure);
    if (reason.startsWith('InternalServerError')) return this.failInService(jobName);
    if (reason.startsWith('CapacityError')) return this.refuse(jobName);
    throw new Error(`${jobName}: the sandbox cannot be told to fail it with ${reason}`);
  }

  /** Until the RetryStrategy of the job is used up. */
  private async failInService(jobName: string): Promise<void> {
    const { admin } = this.stage;
    const ids: string[] = [];
    for (const state of STATES)
      ids.push((await admin.fault({ kind: 'internal-error', jobName, state, times: null })).id);
    await this.release(this.pending, jobName);
    await this.release(this.downloading, jobName);
    await this.until(jobName, (status) => OVER.includes(status));
    for (const id of ids) await admin.removeFault(id);
  }

  private async refuse(jobName: string): Promise<void> {
    if (!this.pending.has(jobName))
      throw new Error(`${jobName}: the sandbox has no CapacityError for a job that trains`);
    await this.stage.admin.fault({ kind: 'capacity-error', jobName });
    await this.release(this.pending, jobName);
    await this.until(jobName, (status) => OVER.includes(status));
  }

  private async release(held: Map<string, string>, jobName: string): Promise<void> {
    const id = held.get(jobName);
    held.delete(jobName);
    if (id !== undefined) await this.stage.admin.removeFault(id);
  }

  private async until(jobName: string, holds: (status: string, secondary: string) => boolean): Promise<void> {
    for (let count = 0; ; count++) {
      const [status, secondary] = await this.stateOf(jobName);
      if (holds(status, secondary)) return;
      if (count > 1000) throw new Error(`${jobName}: must change within 1000 observations, is ${status}/${secondary}`);
      await this.stage.pause();
    }
  }

  private async stateOf(TrainingJobName: string): Promise<[string, string]> {
    const { TrainingJobStatus = '', SecondaryStatus = '' } = await this.stage.sagemaker.send(
      new DescribeTrainingJobCommand({ TrainingJobName }),
    );
    return [TrainingJobStatus, SecondaryStatus];
  }
}
