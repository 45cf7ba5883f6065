import { describeError } from '../../../lib/control/shared/errors';
import { instanceQuota } from '../../../lib/core/catalog/quotas';
import type { Descriptor } from '../../../lib/core/config/descriptor';
import { CallFaults, Kills } from '../core/call-faults';
import { VirtualClock } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import { Gateway } from '../core/gateway';
import { noteWrite } from '../core/invocation';
import { Random } from '../core/random';
import { Fleet } from '../job/fleet';
import { heartbeatOf } from '../job/heartbeat';
import { isLive, type SimJob } from '../job/job';
import type { RunTruth } from '../job/steps/run-truth';
import { rateName, type Scenario, specOf } from '../scenario/load';
import { Capacity } from '../services/capacity';
import { SimTable } from '../services/dynamodb';
import { AccountLimits } from '../services/limits';
import { SimQueue } from '../services/queue';
import { SimS3 } from '../services/s3';
import { SimSageMaker } from '../services/sagemaker';
import type { Published } from '../services/small-services';
import { Usage } from '../services/usage';
import { type Deployed, deployed, descriptorsOf, parametersOf } from './descriptors';
import { EventSources } from './events';
import { JobFaults } from './faults/job-faults';
import { StackChanges } from './faults/stack-changes';
import { StateFaults } from './faults/state-faults';
import { ForeignJobs } from './foreign-jobs';
import { type Functions, functionsOf } from './functions';
import { asksToLeave } from './job-file';
import { People } from './people';
import { Prices } from './prices';
import { requestedJob } from './requested-job';
import { addServices } from './services';
import { plannedId, SimRun } from './sim-run';
import { truthOf } from './truth';
import type { Watch } from './watch';

/** The world of one scenario: the services, the functions, the people, and the watchers. */
export class World {
  readonly clock = new VirtualClock();
  readonly random: Random;
  readonly runs: SimRun[];
  readonly fleet: Fleet;
  readonly table: SimTable;
  readonly queue: SimQueue;
  readonly s3: SimS3;
  readonly usage: Usage;
  readonly limits: AccountLimits;
  readonly capacity: Capacity;
  readonly gateway: Gateway;
  readonly functions: Functions;
  readonly events: EventSources;
  readonly names: Deployed;
  readonly state: StateFaults;
  readonly jobFaults: JobFaults;
  readonly people: People;
  readonly stack: StackChanges;
  readonly prices: Prices;
  private readonly foreign: ForeignJobs;
  private readonly sagemaker: SimSageMaker;
  private readonly byRunId = new Map<string, SimRun>();

  constructor(
    readonly scenario: Scenario,
    seed: number,
    readonly watch: Watch<World>,
  ) {
    const { clock } = this;
    const { environment } = scenario;
    const faults = scenario.faults ?? [];
    this.random = new Random(seed);
    this.names = deployed(environment);
    this.prices = new Prices(environment, scenario.spotShare);
    const descriptors = descriptorsOf(environment);
    this.runs = scenario.runs.map(
      (entry) => new SimRun(entry, descriptors.get(entry.team) as Descriptor, plannedId(entry)),
    );
    const rates = Object.fromEntries(Object.entries(scenario.rates ?? {}).map(([key, rate]) => [rateName(key), rate]));
    this.gateway = new Gateway(clock, seed, { faults: new CallFaults(faults), kills: new Kills(faults), rates });
    this.limits = new AccountLimits(scenario.limits);
    this.state = new StateFaults(faults, () => clock.now);
    this.capacity = new Capacity(scenario.capacity ?? []);
    this.fleet = new Fleet(clock, this.capacity, {
      onChange: (job) => this.onJobChange(job),
      onCapacity: () => this.onCapacity(),
      billedShare: (job) => this.prices.billedShare(job),
      warmPoolLimit: (type) => this.limits.of(instanceQuota(type, 'warm-pool').name, clock.now),
      onResume: (job, step) => this.watch.onResume(job, step),
    });
    this.usage = new Usage(
      () => this.fleet.live(),
      () => this.fleet.pools.waiting(),
    );
    this.table = new SimTable({
      now: () => clock.now,
      epochSeconds: () => (EPOCH_MS + clock.now) / 1000,
      indexLagMs: () => this.state.indexLagMs(),
      mostIndexLagMs: this.state.mostIndexLagMs,
      onRun: (item, invocation) => {
        const run = this.findRun(item.runId?.S ?? '');
        if (!run) return;
        const before = run.written;
        run.write(item, clock.now);
        if (invocation) noteWrite(invocation, run.id, clock.now);
        this.watch.onRunWritten(run, before, item, invocation);
      },
    });
    this.s3 = new SimS3(
      () => clock.now,
      (truth) => this.observe(truth),
      (bucket, key, isTag) => this.onObjectWritten(bucket, key, isTag),
    );
    this.queue = new SimQueue(clock, {
      deliver: (message) => this.events.deliver(message),
      onSent: (message, invocation) => this.events.messageSent(message, invocation),
      onDone: (message) => {
        this.events.messageOver(message);
        this.watch.onMessageOver(message, false);
      },
      onDead: (message) => {
        this.events.messageOver(message);
        this.watch.onMessageOver(message, true);
      },
    });
    this.sagemaker = new SimSageMaker(this.fleet, this.limits, this.usage, {
      now: () => clock.now,
      describeLagMs: () => this.state.describeLagMs(),
      arnOf: this.names.jobArn,
      make: (request, kind, invocation) => {
        const { job, run } = requestedJob(request, kind, {
          now: clock.now,
          runOf: (runId) => this.byRunId.get(runId),
          s3: this.s3,
        });
        this.watch.onCreate(run, job, invocation);
        return job;
      },
      onStop: (job, invocation) => this.watch.onStop(this.runOf(job), job, invocation),
      onRefused: (name) => this.watch.onRefused(name),
    });
    this.foreign = new ForeignJobs(scenario, {
      clock,
      fleet: this.fleet,
      runs: this.runs,
      adopt: (job) => this.sagemaker.adopt(job),
      onState: (job) => this.events.jobChanged(job),
      onCapacity: () => this.onCapacity(),
    });
    this.functions = functionsOf({
      clock,
      gateway: this.gateway,
      random: this.random,
      environment,
      names: this.names,
      skewMs: () => this.state.skewMs(),
      log: (_level, _message, { error }) => {
        if (error !== undefined) this.watch.onError(String(error));
      },
      upload: (url, bytes) => this.s3.upload(url, bytes),
    });
    this.events = new EventSources(clock, this.random, this.functions, {
      environment: environment.name,
      faults,
      queue: () => this.queue,
      isDeleted: () => this.stack.isDeleted,
    });
    this.jobFaults = new JobFaults(clock, this.fleet, (target) => this.findJob(target), faults);
    this.people = new People(clock, this.functions, this, {
      runs: () => this.runs,
      isDeleted: () => this.stack.isDeleted,
      onTaken: (run, runId) => this.onTaken(run, runId),
      onGranted: (run, action) => this.watch.onGranted(run, action),
      onDenied: (run, action, reason) => this.watch.onDenied(run, action, reason),
      onStranger: (run, action, answer) => this.watch.onStranger(run, action, answer),
      onGivenUp: (run, action) => this.watch.onGivenUp(run, action),
    });
    this.stack = new StackChanges(clock, this.functions, environment.name, {
      onChange: (what, refusal) => this.watch.onStackChange(what, refusal),
    });
    addServices(this.gateway, {
      table: this.table,
      queue: this.queue,
      s3: this.s3,
      sagemaker: this.sagemaker,
      parameters: parametersOf(environment, descriptors),
      limitOf: (code) => this.limits.ofCode(code, clock.now),
      onPublish: (published) => this.onPublish(published),
      invoke: (name, payload) => this.people.invoke(name, payload),
    });
    this.gateway.onTrouble = (operation, at, isOverRate) => this.watch.onTrouble(operation, at, isOverRate);
    for (const one of Object.values(this.functions)) {
      one.onDeath = (why) => this.watch.onDeath(clock.now, why);
      one.onError = (error) => this.watch.onError(describeError(error));
    }
    this.watch.join(this);
  }

  /** Epoch milliseconds by the functions' clock. */
  functionsNow(): number {
    return EPOCH_MS + this.clock.now + this.state.skewMs();
  }

  /** The current answer of Describe for a job. */
  describe(jobName: string): object {
    return this.sagemaker.describe(jobName);
  }

  /** Plays the scenario to its end. */
  async play(): Promise<void> {
    const { clock, scenario } = this;
    this.plan();
    await clock.runUntil(scenario.until * 1000);
    for (const run of this.runs) if (run.truth) this.observe(run.truth);
  }

  /** The job of an attempt: `a#2`. */
  findJob(target: string): SimJob | undefined {
    const [id, attempt] = target.split('#');
    return this.runs.find((run) => run.id === id)?.jobs.findLast((job) => job.attempt === Number(attempt));
  }

  /** Also finds a run whose start is in the table although its caller never got an answer. */
  findRun(runId: string): SimRun | undefined {
    return this.byRunId.get(runId) ?? this.runs.find(({ plannedId: planned }) => planned === runId);
  }

  runOf(job: SimJob): SimRun | undefined {
    return job.truth && this.byRunId.get(job.truth.runId);
  }

  private plan(): void {
    const { clock, scenario } = this;
    const [first = 0] = scenario.runs.map(({ at = 0 }) => at).sort((a, b) => a - b);
    this.events.startSchedule(1000 * first);
    this.people.plan(scenario.calls ?? []);
    this.stack.plan(scenario.calls ?? []);
    this.jobFaults.plan();
    this.state.planStored(this);
    this.foreign.plan();
    const changes = [...this.limits.changes(), ...this.capacity.changes()];
    for (const at of new Set(changes)) {
      clock.schedule(at, () => {
        this.fleet.give();
        this.onCapacity();
      });
    }
  }

  private onTaken(run: SimRun, runId: string): void {
    if (run.runId !== undefined) return;
    run.runId = runId;
    run.refusal = undefined;
    run.startedAt = this.clock.now;
    this.byRunId.set(runId, run);
    const spec = specOf(run.entry.text);
    if (!spec) return;
    run.truth = truthOf(run.entry, spec, run.descriptor, runId);
    this.s3.follow(run.truth);
    const item = this.table.find({ runId: { S: runId }, item: { S: 'RUN' } });
    if (!run.written && item) run.write(item, this.clock.now);
    for (const { taken, at = 0 } of this.scenario.faults ?? []) {
      if (taken?.startsWith(`${run.id}#`) && at * 1000 <= this.clock.now) this.foreign.take(taken);
    }
  }

  /** The driver of a job finds a request to save and exit beside its job file. */
  private onObjectWritten(bucket: string, key: string, isTag: boolean): void {
    this.watch.onObjectWritten(bucket, key, isTag);
    if (!key.endsWith('/hand-over.json')) return;
    const job = this.fleet.live().find((one) => asksToLeave(one, this.runOf(one), `s3://${bucket}/${key}`));
    if (job) this.fleet.askToLeave(job);
  }

  /**
   * Brings a run's training up to date.
   * @returns its newest heartbeat
   */
  observe(truth: RunTruth) {
    const run = this.byRunId.get(truth.runId);
    const live = run?.jobs.findLast(isLive);
    live?.stepping?.advance(this.clock.now);
    return (live && heartbeatOf(live, this.clock.now)) ?? truth.lastHeartbeat;
  }

  private onJobChange(job: SimJob): void {
    this.usage.changed();
    this.events.jobChanged(job);
    this.jobFaults.onChange(job);
    this.watch.onJobChange(this.runOf(job), job);
  }

  private onCapacity(): void {
    this.usage.changed();
    this.watch.onCapacity();
  }

  private onPublish({ id, runId, subject, message }: Published): void {
    const run = this.findRun(runId ?? '');
    const text = message.split('\n')[0] ?? subject;
    run?.notices.push({ at: this.clock.now, id: id ?? subject, text, mail: { subject, message } });
    if (run) this.watch.onNotice(run);
  }
}
