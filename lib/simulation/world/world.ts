import { findCapacityPrice } from '../../catalog/capacity-prices';
import { findPrice } from '../../catalog/prices';
import { fillPlaceholders, jobName, runIdAt, runPrefixes } from '../../job/plan';
import type { Descriptor } from '../../spec/descriptor';
import type { JobFile } from '../../spec/job-file';
import { loadRun } from '../../spec/load';
import type { RunSpec } from '../../spec/run-spec';
import { CallFaults, Kills } from '../core/call-faults';
import { VirtualClock } from '../core/clock';
import { dateAt, EPOCH_MS } from '../core/epoch';
import { Gateway } from '../core/gateway';
import { Random } from '../core/random';
import { Fleet } from '../job/fleet';
import { beatOf } from '../job/heartbeat';
import { isLive, type JobRequest, type Shape, type SimJob, wantedShapes } from '../job/job';
import { RunTruth } from '../job/run-truth';
import { DEFAULT_SECONDS_PER_STEP, rateName, type Scenario, type ScenarioRun, stepsOf } from '../scenario/load';
import { Capacity } from '../services/capacity';
import { SimTable } from '../services/dynamodb';
import { AccountLimits } from '../services/limits';
import { SimQueue } from '../services/queue';
import { SimS3 } from '../services/s3';
import { SimSageMaker } from '../services/sagemaker';
import {
  eventBus,
  lambdaService,
  notifications,
  type Published,
  parameterStore,
  serviceQuotas,
} from '../services/small-services';
import { Usage } from '../services/usage';
import { type Deployed, deployed, descriptorsOf, parametersOf } from './descriptors';
import { EventSources } from './events';
import { type Functions, functionsOf } from './functions';
import { JobFaults } from './job-faults';
import { People } from './people';
import { SimRun } from './sim-run';
import { StateFaults } from './state-faults';
import type { Watch } from './watch';

const DEFAULT_START_MINUTES = 10;
const DEFAULT_COMMIT_MINUTES = 30;
const DEFAULT_CHECKPOINT_OBJECTS = 2;
/** Spot's share of the on-demand price where nobody has seen a price: about what ml.p5.48xlarge was billed at. */
const SPOT_SHARE = 0.4;

/** Everything of one scenario: the services, the functions, the people, and what watches them. */
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
  private readonly sagemaker: SimSageMaker;
  private readonly byRunId = new Map<string, SimRun>();

  constructor(
    readonly scenario: Scenario,
    seed: number,
    readonly watch: Watch,
  ) {
    const { clock } = this;
    const { environment } = scenario;
    const faults = scenario.faults ?? [];
    this.random = new Random(seed);
    this.names = deployed(environment);
    const descriptors = descriptorsOf(environment);
    this.runs = scenario.runs.map(
      (entry) => new SimRun(entry, descriptors.get(entry.team) as Descriptor, plannedId(entry)),
    );
    const rates = Object.fromEntries(Object.entries(scenario.rates ?? {}).map(([key, rate]) => [rateName(key), rate]));
    this.gateway = new Gateway(clock, this.random, new CallFaults(faults), new Kills(faults), rates);
    this.limits = new AccountLimits(scenario.limits);
    this.state = new StateFaults(faults, () => clock.now);
    this.capacity = new Capacity(scenario.capacity ?? []);
    this.fleet = new Fleet(clock, this.capacity, {
      onChange: (job) => this.onJobChange(job),
      onRoom: () => this.onRoom(),
      billedShare: (job) => this.billedShare(job),
      onResume: (job, step) => this.watch.onResume(job, step),
    });
    this.usage = new Usage(() => this.fleet.live());
    this.table = new SimTable({
      now: () => clock.now,
      epochSeconds: () => (EPOCH_MS + clock.now) / 1000,
      indexLagMs: () => this.state.indexLagMs(),
      mostIndexLagMs: this.state.mostIndexLagMs,
      onRun: (item, invocation) => {
        const runId = item.runId?.S ?? '';
        const run = this.byRunId.get(runId) ?? this.runs.find(({ plannedId: planned }) => planned === runId);
        if (!run) return;
        const before = run.written;
        run.write(item, clock.now);
        if (invocation) invocation.wroteRunAt.set(run.id, clock.now);
        this.watch.onRunWritten(run, before, item, invocation);
      },
    });
    this.s3 = new SimS3(
      () => clock.now,
      (truth) => this.look(truth),
      (bucket, key) => this.onPut(bucket, key),
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
      make: (request, kind, invocation) =>
        this.makeJob(request, kind, (job, run) => this.watch.onCreate(run, job, invocation)),
      onStop: (job, invocation) => this.watch.onStop(this.runOf(job), job, invocation),
      onRefused: (name) => this.watch.onRefused(name),
    });
    this.functions = functionsOf({
      clock,
      gateway: this.gateway,
      random: this.random,
      environment,
      names: this.names,
      skewMs: () => this.state.skewMs(),
      log: () => {},
      upload: (url, bytes) => this.upload(url, bytes),
    });
    this.events = new EventSources(
      clock,
      this.random,
      this.functions,
      () => this.queue,
      environment.name,
      faults,
      () => {},
    );
    this.jobFaults = new JobFaults(clock, this.fleet, (target) => this.findJob(target), faults);
    this.people = new People(clock, this.functions, this.names, this.s3, {
      runs: () => this.runs,
      onTaken: (run, runId) => this.onTaken(run, runId),
    });
    this.addServices(parametersOf(environment, descriptors));
    this.gateway.onTrouble = (operation, at) => this.watch.onTrouble(operation, at);
    for (const one of Object.values(this.functions)) one.onDeath = () => this.watch.onDeath(clock.now);
    this.watch.join(this);
  }

  /** Plays the scenario to its end. */
  async play(): Promise<void> {
    const { clock, scenario } = this;
    this.plan();
    await clock.runUntil(scenario.until * 1000);
    for (const run of this.runs) if (run.truth) this.look(run.truth);
  }

  /** The job of an attempt: `a#2`. */
  findJob(target: string): SimJob | undefined {
    const [id, attempt] = target.split('#');
    return this.runs.find((run) => run.id === id)?.jobs.findLast((job) => job.attempt === Number(attempt));
  }

  runOf(job: SimJob): SimRun | undefined {
    return job.truth && this.byRunId.get(job.truth.runId);
  }

  /** Dollars that AWS bills for a job so far. */
  billedUsd(job: SimJob, now: number): number {
    const heldHours = (job.heldMs + (job.held ? now - job.heldSince : 0)) / 3_600_000;
    return heldHours * this.billedShare(job) * this.onDemandUsd(job.chosen ?? []);
  }

  private onDemandUsd(shapes: readonly Shape[]): number {
    const { region, prices } = this.scenario.environment;
    return shapes.reduce((sum, s) => sum + s.count * (findPrice(s.instanceType, region, prices)?.usdPerHour ?? 0), 0);
  }

  private billedShare(job: SimJob): number {
    const type = job.chosen?.[0]?.instanceType;
    if (!job.spot || type === undefined) return 1;
    const { region, prices } = this.scenario.environment;
    const spot = findCapacityPrice('spot', type, region)?.usdPerHour;
    const full = findPrice(type, region, prices)?.usdPerHour;
    return spot === undefined || full === undefined ? SPOT_SHARE : spot / full;
  }

  private addServices(parameters: ReadonlyMap<string, string>): void {
    const { gateway, clock } = this;
    gateway.add('dynamodb', this.table.operations);
    gateway.add('sqs', this.queue.operations);
    gateway.add('s3', this.s3.operations);
    gateway.add('sagemaker', this.sagemaker.operations);
    gateway.add('ssm', parameterStore(parameters));
    gateway.add(
      'servicequotas',
      serviceQuotas((code) => this.limits.ofCode(code, clock.now)),
    );
    gateway.add(
      'sns',
      notifications((published) => this.onPublish(published)),
    );
    gateway.add('eventbridge', eventBus());
    gateway.add(
      'lambda',
      lambdaService((name, payload) => this.people.invoke(name, payload)),
    );
  }

  private plan(): void {
    const { clock, scenario } = this;
    this.events.startSchedule();
    this.people.plan(scenario.calls ?? []);
    this.jobFaults.plan();
    this.state.planStored(this);
    for (const [i, entry] of (scenario.outside ?? []).entries()) {
      const name = `outside-${i + 1}-${entry.instanceType.replace(/\W/g, '-')}-${entry.instances}`;
      const shapes = [{ instanceType: entry.instanceType, count: entry.instances }];
      clock.schedule((entry.at ?? 0) * 1000, () => this.addForeign(name, shapes, entry.spot ?? false, 'InProgress'));
      if (entry.to !== undefined) clock.schedule(entry.to * 1000, () => this.endForeign(name));
    }
    for (const { taken, at = 0, to } of scenario.faults ?? []) {
      if (taken === undefined) continue;
      clock.schedule(at * 1000, () => this.take(taken));
      if (to !== undefined) clock.schedule(to * 1000, () => this.giveBack(taken));
    }
    const { changes } = {
      changes: [
        ...this.limits.changes(),
        ...(scenario.capacity ?? []).flatMap((c) => [c.from ?? 0, c.to ?? 0]).map((s) => s * 1000),
      ],
    };
    for (const at of new Set(changes)) {
      clock.schedule(at, () => {
        this.fleet.give();
        this.onRoom();
      });
    }
  }

  private onTaken(run: SimRun, runId: string): void {
    if (run.runId !== undefined) return;
    run.runId = runId;
    run.refusal = undefined;
    run.startedAt = this.clock.now;
    this.byRunId.set(runId, run);
    const spec = loadRun(run.entry.text).value;
    if (!spec) return;
    run.truth = truthOf(run.entry, spec, run.descriptor, runId);
    this.s3.follow(run.truth);
    const item = this.table.find({ runId: { S: runId }, item: { S: 'RUN' } });
    if (!run.written && item) run.write(item, this.clock.now);
    for (const { taken, at = 0 } of this.scenario.faults ?? []) {
      if (taken?.startsWith(`${run.id}#`) && at * 1000 <= this.clock.now) this.take(taken);
    }
  }

  private makeJob(
    request: JobRequest,
    kind: SimJob['kind'],
    onMade: (job: SimJob, run: SimRun | undefined) => void,
  ): SimJob {
    const tags = new Map((request.Tags ?? []).map(({ Key, Value }) => [Key, Value]));
    const run = this.byRunId.get(tags.get('slipway:run') ?? '');
    const name = request.TrainingJobName ?? request.ProcessingJobName ?? '';
    const job = newJob(name, kind, request, this.clock.now);
    job.attempt = Number(tags.get('slipway:attempt') ?? 1);
    if (run?.truth) {
      job.truth = run.truth;
      job.sparesLeft = run.truth.spec.compute.spareInstances;
      this.readJobFile(job, run);
      run.jobs.push(job);
    }
    onMade(job, run);
    return job;
  }

  /** What job.json says of where the attempt begins; the toolkit contract has it in an environment variable. */
  private readJobFile(job: SimJob, { truth, descriptor }: SimRun): void {
    if (!truth) return;
    const place = runPrefixes({ descriptor, runId: truth.runId, attempt: job.attempt }).job;
    const key = `${place.slice(`s3://${descriptor.artifactBucket}/`.length)}job.json`;
    const text = this.s3.read(descriptor.artifactBucket, key);
    const file = text === undefined ? undefined : (JSON.parse(text) as JobFile);
    job.resumeUri = file?.checkpoints.resumeFrom ?? job.request.Environment?.SLIPWAY_RESUME_FROM ?? '';
    if (file?.checkpoints.rollback)
      truth.rollBack(file.checkpoints.rollback.toStep, file.checkpoints.rollback.beforeAttempt);
    const { startFrom } = truth.spec.checkpoints;
    if (startFrom !== undefined && truth.commits.length === 0) truth.baseStep = truth.stepOf(job.resumeUri) ?? 0;
  }

  /** The driver of a job sees a request to save and leave beside its job file. */
  private onPut(bucket: string, key: string): void {
    if (!key.endsWith('/hand-over.json')) return;
    const uri = `s3://${bucket}/${key}`;
    const job = this.fleet.live().find((one) => {
      const run = this.runOf(one);
      return (
        run?.runId !== undefined && runPrefixes({ ...run, runId: run.runId, attempt: one.attempt }).handOver === uri
      );
    });
    if (job) this.fleet.askToLeave(job);
  }

  private look(truth: RunTruth) {
    const run = this.byRunId.get(truth.runId);
    const live = run?.jobs.findLast(isLive);
    live?.stepping?.advance(this.clock.now);
    return (live && beatOf(live, this.clock.now)) ?? truth.lastBeat;
  }

  private onJobChange(job: SimJob): void {
    this.usage.changed();
    this.events.jobChanged(job);
    this.jobFaults.onChange(job);
    this.watch.onJobChange(this.runOf(job), job);
  }

  private onRoom(): void {
    this.usage.changed();
    this.watch.onRoom();
  }

  private onPublish({ id, runId, subject, message }: Published): void {
    const run = this.byRunId.get(runId ?? '');
    const text = message.split('\n')[0] ?? subject;
    run?.notices.push({ at: this.clock.now, id: id ?? subject, text });
    if (run) this.watch.onNotice(run);
  }

  private upload(url: string, bytes: number): void {
    const { hostname, pathname } = new URL(url);
    this.s3.put(hostname.replace(/\.invalid$/, ''), decodeURIComponent(pathname.slice(1)), '', bytes);
  }

  private addForeign(name: string, shapes: Shape[], spot: boolean, status: string): void {
    if (this.fleet.jobs.has(name)) return;
    const [shape] = shapes;
    const request: JobRequest = {
      TrainingJobName: name,
      ResourceConfig: {
        InstanceType: shape?.instanceType as NonNullable<JobRequest['ResourceConfig']>['InstanceType'],
        InstanceCount: shape?.count,
        VolumeSizeInGB: 100,
      },
      EnableManagedSpotTraining: spot,
    };
    const job = newJob(name, 'training', request, this.clock.now);
    job.held = shapes;
    job.chosen = shapes;
    job.startedAt = this.clock.now;
    this.sagemaker.adopt(job);
    setForeign(job, status, this.clock.now);
    this.onRoom();
  }

  private endForeign(name: string): void {
    const job = this.fleet.jobs.get(name);
    if (job) setForeign(job, 'Completed', this.clock.now);
    this.onRoom();
  }

  /** Somebody else's job, long over, has the name of an attempt. */
  private take(target: string): void {
    const name = this.nameOf(target);
    if (name) this.addForeign(name, [{ instanceType: 'ml.m5.large', count: 1 }], false, 'Completed');
  }

  private giveBack(target: string): void {
    const job = this.fleet.jobs.get(this.nameOf(target) ?? '');
    if (job && !job.truth) this.fleet.delete(job);
  }

  private nameOf(target: string): string | undefined {
    const [id, attempt] = target.split('#');
    const run = this.runs.find((one) => one.id === id);
    const isDeployed = (this.scenario.calls ?? []).some((call) => call.do === 'deploy' && call.run === id);
    const runId = run?.runId ?? (isDeployed ? undefined : run?.plannedId);
    return runId && jobName(this.scenario.environment.name, runId, Number(attempt));
  }
}

/** A run id as control makes them, of the scenario's id. */
const plannedId = ({ id, at = 0 }: ScenarioRun): string => runIdAt(id, dateAt(at * 1000));

function truthOf(entry: ScenarioRun, spec: RunSpec, descriptor: Descriptor, runId: string): RunTruth {
  const { mode, s3 } = spec.checkpoints;
  const isOnS3 = mode === 'direct' || mode === 'managed';
  const filled = fillPlaceholders(s3, { descriptor, runId });
  const place = isOnS3 ? placeOf(filled.endsWith('/') ? filled : `${filled}/`) : undefined;
  const beats = !spec.network.isolation && spec.distribution.contract !== 'toolkit' && spec.kind === 'training';
  const beat = placeOf(runPrefixes({ descriptor, runId, attempt: 1 }).heartbeat);
  return new RunTruth(
    runId,
    spec,
    {
      totalSteps: stepsOf(entry, spec.training) ?? 0,
      secondsPerStep: entry.secondsPerStep ?? DEFAULT_SECONDS_PER_STEP,
      commitEveryMs: (entry.commitEveryMinutes ?? DEFAULT_COMMIT_MINUTES) * 60_000,
      startMs: (entry.startMinutes ?? DEFAULT_START_MINUTES) * 60_000,
      checkpointObjects: entry.checkpointObjects ?? DEFAULT_CHECKPOINT_OBJECTS,
    },
    place,
    beats ? { bucket: beat.bucket, key: beat.prefix } : undefined,
  );
}

function placeOf(uri: string): { bucket: string; prefix: string } {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(uri) ?? [];
  return { bucket, prefix };
}

function newJob(name: string, kind: SimJob['kind'], request: JobRequest, now: number): SimJob {
  return {
    name,
    kind,
    request,
    spot: request.EnableManagedSpotTraining ?? false,
    truth: undefined,
    attempt: 0,
    resumeUri: '',
    status: '',
    secondaryStatus: '',
    failureReason: undefined,
    createdAt: now,
    startedAt: undefined,
    endedAt: undefined,
    deletedAt: undefined,
    wanted: wantedShapes(request),
    held: undefined,
    chosen: undefined,
    heldSince: now,
    heldMs: 0,
    pendingSince: undefined,
    stepping: undefined,
    driverSince: undefined,
    isHung: false,
    silentSince: undefined,
    isAskedToLeave: false,
    sparesLeft: 0,
    restarts: 0,
    setAside: [],
    history: [],
    timers: new Set(),
    stopAt: undefined,
    poolUntil: undefined,
  };
}

function setForeign(job: SimJob, status: string, now: number): void {
  job.status = status;
  job.secondaryStatus = status === 'InProgress' ? 'Training' : status;
  if (status !== 'InProgress') job.held = undefined;
  job.history.push({
    at: now,
    status,
    secondaryStatus: job.secondaryStatus,
    failureReason: undefined,
    startedAt: job.startedAt,
    endedAt: status === 'InProgress' ? undefined : now,
    billableSeconds: undefined,
    trainingSeconds: undefined,
    shapes: job.chosen,
    finalStep: undefined,
  });
}
