// A scenario played on the embedded AWS. How jobs behave is the simulation's (tools/simulation/job); everything that looks at them,
// decides and acts is the deployed product, and every service is the sandbox's.
import { CreateTrainingJobCommand, DescribeTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES, instanceQuota, type QuotaUsage } from '../../../lib/core/catalog/quotas';
import type { ControlAnswer, IntentAnswer } from '../../../lib/core/contracts/control';
import { jobName } from '../../../lib/core/contracts/names';
import { TICK_MS } from '../../../lib/core/lifecycle/health/observation-schedule';
import { VirtualClock } from '../../../tools/simulation/core/clock';
import { EPOCH_MS } from '../../../tools/simulation/core/epoch';
import { Fleet } from '../../../tools/simulation/job/fleet';
import { heartbeatOf } from '../../../tools/simulation/job/heartbeat';
import { isLive, type SimJob } from '../../../tools/simulation/job/job';
import { type Scenario, specOf } from '../../../tools/simulation/scenario/load';
import { CODE_BYTES, startRequest, submittedText } from '../../../tools/simulation/scenario/submission';
import { Capacity } from '../../../tools/simulation/services/capacity';
import { AccountLimits } from '../../../tools/simulation/services/limits';
import { SimS3 } from '../../../tools/simulation/services/s3';
import { type S3Object, textOf } from '../../../tools/simulation/services/s3-object';
import { JobFaults } from '../../../tools/simulation/world/faults/job-faults';
import { requestedJob } from '../../../tools/simulation/world/requested-job';
import { plannedId, SimRun } from '../../../tools/simulation/world/sim-run';
import { truthOf } from '../../../tools/simulation/world/truth';
import { callFault } from './call-faults';
import { ScriptedJobs } from './scripted-jobs';
import type { Stage } from './stage';

/** So often the sandbox learns what the model of the jobs did, and the model which jobs the product made. */
const STEP_MS = 1_000;
const UNLIMITED = 1_000_000;
/** Where the simulation decides nothing, the sandbox looks at every so many ticks whether it does. */
const QUIET_TICKS = 6;

/** Something that happens at a moment of the scenario. */
interface Happening {
  at: number;
  do: () => Promise<void>;
}

export class SandboxPlay {
  readonly runs: SimRun[];
  private readonly clock = new VirtualClock();
  private readonly fleet: Fleet;
  private readonly jobFaults: JobFaults;
  private readonly jobs: ScriptedJobs;
  private readonly happenings: Happening[] = [];
  private readonly written = new Map<string, string>();
  /** Quotas as they are now, by code. */
  private readonly limits = new Map<string, number>();

  constructor(
    private readonly stage: Stage,
    private readonly scenario: Scenario,
    /** When the simulation decided something: milliseconds of the scenario. */
    private readonly decisions: readonly number[],
  ) {
    const { clock } = this;
    this.runs = scenario.runs.map((entry) => {
      const descriptor = stage.descriptors.get(entry.team);
      if (!descriptor) throw new Error(`team ${entry.team} must be deployed`);
      return new SimRun(entry, descriptor, plannedId(entry));
    });
    this.jobs = new ScriptedJobs(stage);
    this.fleet = new Fleet(clock, new Capacity(scenario.capacity ?? []), {
      onChange: (job) => {
        const { status, secondaryStatus, failureReason } = job;
        this.happens(() => this.jobs.turn(job.name, { status, secondaryStatus, failureReason }));
        this.jobFaults.onChange(job);
      },
      onCapacity: () => {},
      billedShare: () => 1,
      warmPoolLimit: () => 0,
      onResume: () => {},
    });
    const remove = this.fleet.delete.bind(this.fleet);
    this.fleet.delete = (job) => {
      remove(job);
      this.happens(() => this.jobs.remove(job.name));
    };
    this.jobFaults = new JobFaults(clock, this.fleet, (target) => this.findJob(target), scenario.faults ?? []);
  }

  /** Plays it to its end. */
  async play(): Promise<void> {
    this.stage.setTime(EPOCH_MS);
    this.plan();
    const end = this.scenario.until * 1000;
    for (let now = 0; now < end; now += STEP_MS) {
      await this.clock.runUntil(now);
      while (this.happenings.length > 0) await this.perform();
    }
  }

  /** Everything that has happened so far, in turn; then the jobs that the product made or stopped. */
  private async perform(): Promise<void> {
    const due = this.happenings.splice(0).sort((a, b) => a.at - b.at);
    for (const { at, do: act } of due) {
      this.stage.setTime(Math.max(EPOCH_MS + at, this.stage.now));
      await this.writeObjects();
      await act();
      await this.stage.settle();
    }
    await this.adopt();
  }

  private happens(act: () => Promise<void>, at = this.clock.now): void {
    this.happenings.push({ at, do: act });
  }

  private findJob(target: string): SimJob | undefined {
    const [id, attempt] = target.split('#');
    return this.runs.find((run) => run.id === id)?.jobs.findLast((job) => job.attempt === Number(attempt));
  }

  private plan(): void {
    const { clock, scenario } = this;
    const tick = () => {
      if (this.matters(clock.now)) this.happens(() => this.stage.tick());
      clock.after(TICK_MS, tick);
    };
    this.planLimits();
    for (const run of this.runs) clock.schedule((run.entry.at ?? 0) * 1000, () => this.happens(() => this.start(run)));
    for (const call of scenario.calls ?? []) {
      const run = this.runs.find(({ id }) => id === call.run);
      clock.schedule((call.at ?? 0) * 1000, () => {
        if (run) this.happens(() => this.ask(run, call.do));
      });
    }
    for (const [i, entry] of (scenario.outside ?? []).entries()) {
      const name = `outside-${i + 1}`;
      clock.schedule((entry.at ?? 0) * 1000, () => this.happens(() => this.addForeign(name, entry)));
      if (entry.to !== undefined) clock.schedule(entry.to * 1000, () => this.happens(() => this.jobs.end(name, 0)));
    }
    this.planFaults();
    for (const at of new Capacity(scenario.capacity ?? []).changes()) clock.schedule(at, () => this.fleet.give());
    clock.after(TICK_MS, tick);
  }

  /**
   * A tick at which the simulation decided something, one soon before it, from which the product knows which checkpoint is new, one after it,
   * or one of those at which nothing should be decided.
   */
  private matters(now: number): boolean {
    if ((now / TICK_MS) % QUIET_TICKS === 0) return true;
    return this.decisions.some((at) => at > now - 2 * TICK_MS && at < now + QUIET_TICKS * TICK_MS);
  }

  private planFaults(): void {
    const { clock, stage } = this;
    for (const fault of this.scenario.faults ?? []) {
      const { at = 0, to } = fault;
      if (fault.taken !== undefined) clock.schedule(at * 1000, () => this.happens(() => this.take(fault.taken ?? '')));
      if (fault.call === undefined) continue;
      const planned: { id?: string } = {};
      const add = async () => {
        planned.id = (await stage.admin.fault(callFault(fault))).id;
      };
      const remove = async () => {
        const entry = (await stage.admin.faults()).find(({ id }) => id === planned.id);
        if (!entry?.hits.length)
          throw new Error(`${fault.call} from ${at} s: the fault must strike, and struck nothing`);
        await stage.admin.removeFault(entry.id);
      };
      clock.schedule(at * 1000, () => this.happens(add));
      if (to !== undefined) clock.schedule(to * 1000, () => this.happens(remove));
    }
    // What happens to a job in the same moment is seen by functions whose calls fail already, as in the simulation.
    this.jobFaults.plan();
  }

  /** A job of somebody else, long over, has the name that an attempt will have. */
  private async take(target: string): Promise<void> {
    const [id, attempt] = target.split('#');
    const run = this.runs.find((one) => one.id === id);
    const name = jobName(this.stage.environment, run?.plannedId ?? '', Number(attempt));
    await this.addForeign(name, { instanceType: 'ml.p5.48xlarge', instances: 1 });
    await this.jobs.end(name, 0);
  }

  /** Every quota at every time at which one changes. */
  private planLimits(): void {
    const limits = new AccountLimits(this.scenario.limits);
    const names = new Map<string, string>([
      ...Object.entries(GENERAL_QUOTAS).map(([code, { name }]): [string, string] => [code, name]),
      ...Object.entries(INSTANCE_QUOTA_CODES).flatMap(([type, codes]) =>
        Object.entries(codes).map(([usage, code]): [string, string] => [
          code,
          instanceQuota(type, usage as QuotaUsage).name,
        ]),
      ),
    ]);
    const applied = this.limits;
    const apply = async () => {
      for (const [code, name] of names) {
        const value = limits.of(name, this.clock.now);
        if (applied.get(code) === value) continue;
        applied.set(code, value);
        await this.stage.admin.setQuota('us-west-2', code, value);
      }
    };
    for (const at of new Set([0, ...limits.changes()])) this.clock.schedule(at, () => this.happens(apply));
  }

  private async start(run: SimRun): Promise<void> {
    const { stage } = this;
    await this.jobs.hold(jobName(stage.environment, run.plannedId, 1));
    const answer = await stage.control<ControlAnswer>(
      run.team,
      startRequest(run.entry, run.plannedId, this.textOf(run)),
    );
    if (!answer.ok) {
      run.refusal = answer.issues
        .filter(({ level }) => level === 'error')
        .map(({ message }) => message)
        .join('; ');
      return;
    }
    const { runId, uploads } = answer as IntentAnswer;
    run.runId = runId;
    const spec = specOf(run.entry.text);
    if (spec) run.truth = truthOf(run.entry, spec, run.descriptor, runId);
    for (const { key } of uploads) await stage.put(run.descriptor.artifactBucket, key, 'x'.repeat(CODE_BYTES));
    await stage.control(run.team, { action: 'start', runId, confirm: true });
  }

  private textOf({ entry }: SimRun): string {
    return submittedText(entry.text, (named) => this.runs.find(({ id }) => id === named)?.plannedId ?? named);
  }

  private async ask(run: SimRun, action: string): Promise<void> {
    if (run.runId !== undefined) await this.stage.control(run.team, { action, runId: run.runId });
  }

  /** A job of somebody else, which trains until it is told to end. */
  private async addForeign(name: string, entry: NonNullable<Scenario['outside']>[number]): Promise<void> {
    const [run] = this.runs;
    const { stage } = this;
    if (!run) return;
    const limit = 86_400;
    const request = new CreateTrainingJobCommand({
      TrainingJobName: name,
      RoleArn: stage.outsideRoleArn,
      AlgorithmSpecification: {
        TrainingImage: 'outside',
        TrainingInputMode: 'File',
        ContainerEntrypoint: ['/bin/bash'],
        ContainerArguments: ['-c', stage.waiting],
      },
      OutputDataConfig: { S3OutputPath: `s3://${run.descriptor.artifactBucket}/outside/` },
      ResourceConfig: {
        InstanceType: entry.instanceType as 'ml.m5.large',
        InstanceCount: entry.instances,
        VolumeSizeInGB: 100,
      },
      StoppingCondition: { MaxRuntimeInSeconds: limit, ...(entry.spot ? { MaxWaitTimeInSeconds: limit } : {}) },
      EnableManagedSpotTraining: entry.spot ?? false,
    });
    // Others were there before the limit was, as in the simulation.
    const codes = [...Object.values(INSTANCE_QUOTA_CODES[entry.instanceType] ?? {}), ...Object.keys(GENERAL_QUOTAS)];
    for (const code of codes) await stage.admin.setQuota('us-west-2', code, UNLIMITED);
    await stage.sagemaker.send(request);
    for (const code of codes) await stage.admin.setQuota('us-west-2', code, this.limits.get(code) ?? UNLIMITED);
  }

  /** What jobs write: heartbeats and checkpoints, each at its own time. */
  private async writeObjects(): Promise<void> {
    for (const run of this.runs) {
      if (!run.truth) continue;
      const live = run.jobs.findLast(isLive);
      const now = this.stage.now - EPOCH_MS;
      live?.stepping?.advance(Math.min(now, this.clock.now));
      const heartbeat = (live && heartbeatOf(live, Math.min(now, this.clock.now))) ?? run.truth.lastHeartbeat;
      if (heartbeat && run.truth.heartbeat)
        await this.write(run.truth.heartbeat.bucket, run.truth.heartbeat.key, heartbeat);
      await this.writeCheckpoints(run);
    }
  }

  private async writeCheckpoints({ truth }: SimRun): Promise<void> {
    if (!truth?.place) return;
    const { bucket, prefix } = truth.place;
    const there = new Set(truth.objects().map(({ key }) => `${bucket}/${prefix}${key}`));
    const marked = (key: string) => Number(key.endsWith('COMMITTED.json'));
    const sorted = [...truth.objects()].sort((a, b) => a.at - b.at || marked(a.key) - marked(b.key));
    for (const object of sorted) await this.write(bucket, `${prefix}${object.key}`, object);
    for (const name of [...this.written.keys()]) {
      if (!name.startsWith(`${bucket}/${prefix}step-`) || there.has(name)) continue;
      this.written.delete(name);
      await this.stage.remove(bucket, name.slice(bucket.length + 1));
    }
  }

  private async write(bucket: string, key: string, object: S3Object): Promise<void> {
    const { at, bytes } = object;
    const name = `${bucket}/${key}`;
    const version = `${at}/${bytes}`;
    if (this.written.get(name) === version) return;
    this.written.set(name, version);
    const body = textOf(object) ?? 'x'.repeat(Math.min(bytes, 2_000_000));
    await this.stage.putAt(EPOCH_MS + at, { bucket, key, body });
  }

  /** Jobs that the product has created, stopped or asked to leave since the last observation. */
  private async adopt(): Promise<void> {
    for (const { TrainingJobName: name = '', TrainingJobStatus } of (await this.stage.jobs()).reverse()) {
      const known = this.fleet.jobs.get(name);
      if (!known && name.startsWith(`${this.stage.environment}-`)) await this.add(name);
      const job = this.fleet.jobs.get(name);
      if (
        job?.status === 'InProgress' &&
        job.stopAt === undefined &&
        ['Stopping', 'Stopped'].includes(TrainingJobStatus ?? '')
      )
        this.fleet.stop(job);
    }
    for (const job of this.fleet.live()) await this.passOn(job);
  }

  private async add(name: string): Promise<void> {
    const described = await this.stage.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: name }));
    const [, attempt = '1'] = /-a(\d+)$/.exec(name) ?? [];
    const run = this.runs.find(({ runId = '-' }) => name.startsWith(`${this.stage.environment}-${runId}-a`));
    if (!run?.runId) return;
    const tags = { 'slipway:run': run.runId, 'slipway:attempt': String(Number(attempt)) };
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    const s3 = await this.jobFiles(run, Number(attempt));
    const place = { now: this.clock.now, runOf: () => run, s3 };
    const { job } = requestedJob({ ...described, Tags } as Parameters<typeof requestedJob>[0], 'training', place);
    await this.jobs.hold(jobName(this.stage.environment, run.runId, Number(attempt) + 1));
    this.fleet.add(job);
  }

  /** The job file of an attempt where the model of its trainer looks for it. */
  private async jobFiles(run: SimRun, attempt: number): Promise<SimS3> {
    const s3 = new SimS3(
      () => 0,
      () => undefined,
      () => {},
    );
    const { artifactBucket: bucket, team } = run.descriptor;
    for (const key of await this.stage.keys(bucket, `runs/${team}/${run.runId}/job/${attempt}/`))
      if (key.endsWith('job.json')) s3.put(bucket, key, await this.stage.read(bucket, key));
    return s3;
  }

  /** A request to save and leave beside the job's file. */
  private async passOn(job: SimJob): Promise<void> {
    const run = this.runs.find(({ runId }) => runId === job.truth?.runId);
    if (!run || job.isLeaveRequested) return;
    const { artifactBucket, team } = run.descriptor;
    const keys = await this.stage.keys(artifactBucket, `runs/${team}/${run.runId}/job/${job.attempt}/`);
    if (keys.some((key) => key.endsWith('/hand-over.json'))) this.fleet.askToLeave(job);
  }
}
