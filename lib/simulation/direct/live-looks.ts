import { TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import type { ListObjectsV2CommandOutput } from '@aws-sdk/client-s3';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { CommittedSearch, MARKER } from '../../handlers/reconcile/observe/checkpoints';
import { isLiveJob } from '../../handlers/reconcile/observe/describe';
import { folderOf } from '../../handlers/reconcile/observe/folders';
import { freesCapacity, isSettled, wanted } from '../../handlers/reconcile/reconcile-run';
import { beatReading, unreadBeat } from '../../handlers/shared/heartbeat';
import { type Item, runKey } from '../../handlers/shared/items';
import { itemsOf, writesOf } from '../../handlers/shared/run-writes';
import type { Action } from '../../lifecycle/action';
import { isDueForListing, isSteady } from '../../lifecycle/health/look';
import { NOTHING_OBSERVED, type Observed, type PresentJob } from '../../lifecycle/observed';
import { isOver, type RunRecord } from '../../lifecycle/record';
import { bucketAndKey, parseS3Uri } from '../../spec/formats/s3-uri';
import { keepRecord, keptAfter, recordOfItem } from '../services/kept-document';
import type { SimBody } from '../services/s3-object';
import type { SimRun } from '../world/sim-run';
import { DirectCalls, type DirectWork } from './direct-work';
import { NOTHING_FAILED, presentOf, TICK_MS, type WorldOfLooks } from './world-of-looks';

const READ_OBJECT = 's3:GetObject';
const LIST = 's3:ListObjectsV2';
const CALLS = ['sagemaker:DescribeTrainingJob', READ_OBJECT, LIST, 'dynamodb:TransactWriteItems'];
/** Upper bound on the time of one pass's calls when each of them is made three times. */
const REPEATED_LOOK_MS = 20_000;

/** The heartbeat that a pass read, or why it has none. */
type Beat = Pick<Observed, 'heartbeat' | 'heartbeatError'>;

/**
 * Passes of `reconcile` over a live training job that result in at most one write: makes the calls of `reconcileRun` one by one, and
 * applies the product's own decision to the answers, without running the function. If anything else follows, the function takes over with
 * the answers so far, and decides at the same moment on the same observation.
 */
export class DirectLooks {
  /** Number of passes, or rounds of them, without a call of the function. */
  count = 0;

  constructor(readonly world: WorldOfLooks) {}

  /** Whether the run has a live job with visible heartbeats, and nothing can disturb the calls of a pass. */
  mayPlay({ record }: SimRun): boolean {
    const attempt = record?.attempt;
    if (!record || attempt?.phase !== 'created' || !attempt.files || attempt.files.checkpoints?.marker) return false;
    return record.kind === 'training' && !isOver(record) && record.admitted && this.isCalm();
  }

  play(run: SimRun, work: DirectWork<ReconcileDeps>): void {
    new LiveLook(this, run, work).round();
  }

  /** Whether every call is answered or fails immediately, the world does not change, and no other tick happens until the pass is over. */
  private isCalm(): boolean {
    const { world } = this;
    const { now } = world.clock;
    const time = world.functionsNow();
    const isOneTick = Math.floor(time / TICK_MS) === Math.floor((time + REPEATED_LOOK_MS) / TICK_MS);
    return isOneTick && !world.state.hasEdge(now, now + REPEATED_LOOK_MS) && !world.gateway.mayStall(CALLS);
  }
}

class LiveLook {
  private readonly calls: DirectCalls<ReconcileDeps>;
  private record!: RunRecord;
  private job!: PresentJob;
  private beat: Beat | undefined;
  private checkpoints: Observed['checkpoints'] | 'left' | undefined;

  constructor(
    private readonly looks: DirectLooks,
    private readonly run: SimRun,
    private readonly work: DirectWork<ReconcileDeps>,
  ) {
    this.calls = new DirectCalls(looks.world, work);
  }

  /** Plays one round. */
  round(): void {
    const { world } = this.looks;
    const input = { TableName: world.names.tableName, Key: runKey(this.run.runId ?? ''), ConsistentRead: true };
    this.calls.call(
      'dynamodb:GetItem',
      input,
      ({ Item: item }: { Item?: Item }) => {
        // The state that triggered this pass may have changed since.
        if (item === undefined || item !== this.run.written || !this.looks.mayPlay(this.run)) {
          this.calls.goOn();
          return;
        }
        this.record = recordOfItem(item);
        this.describe();
      },
      () => this.calls.fail(),
    );
  }

  private describe(): void {
    const { jobName = '' } = this.record.attempt ?? {};
    this.calls.call('sagemaker:DescribeTrainingJob', { TrainingJobName: jobName }, (answer) => {
      this.job = presentOf(answer);
      if (isLiveJob(this.job)) this.observe();
      else this.calls.goOn();
    });
  }

  /** Reads heartbeat and checkpoints in parallel. */
  private observe(): void {
    const isListed = isDueForListing(this.record, this.job, this.work.deps.now().getTime());
    this.beat = undefined;
    this.checkpoints = NOTHING_OBSERVED.checkpoints;
    const { heartbeat, checkpoints } = this.record.attempt?.files ?? { heartbeat: '' };
    if (isListed) this.checkpoints = checkpoints ? undefined : { kind: 'listed', committed: [], torn: [] };
    const read = (beat: Beat) => {
      this.beat = beat;
      // Without a heartbeat, the time of the last write is the only sign of life.
      if (!isListed && !beat.heartbeat) this.calls.goOn();
      else this.join();
    };
    this.calls.call(
      READ_OBJECT,
      bucketAndKey(heartbeat),
      (answer) => {
        const { Body, LastModified } = answer as { Body: SimBody; LastModified: Date };
        read(beatReading(Body.facts, LastModified.getTime()));
      },
      (error) => read(unreadBeat(error)),
    );
    if (isListed && checkpoints) this.list(checkpoints.prefix);
  }

  private list(prefix: string): void {
    const { bucket: Bucket, key: Prefix } = parseS3Uri(prefix);
    this.calls.call(
      LIST,
      { Bucket, Prefix, Delimiter: '/' },
      (answer) => {
        const page = answer as Partial<ListObjectsV2CommandOutput>;
        if (page.IsTruncated) {
          this.giveListingUp();
          return;
        }
        const { badCheckpoints: bad, committed } = this.record;
        const search = { bad, enough: 1, ...(isSteady(this.record) && { known: committed }) };
        this.look(new CommittedSearch(prefix, search, folderOf([page], Prefix)));
      },
      () => this.giveListingUp(),
    );
  }

  /** Searches folder by folder until a complete checkpoint is found. */
  private look(search: CommittedSearch): void {
    const uri = search.next();
    if (uri === undefined) {
      this.checkpoints = search.listed;
      this.join();
      return;
    }
    const { bucket: Bucket, key: Prefix } = parseS3Uri(uri);
    this.calls.call(
      LIST,
      { Bucket, Prefix },
      (answer) => {
        const page = answer as Partial<ListObjectsV2CommandOutput>;
        if (page.IsTruncated) {
          this.giveListingUp();
          return;
        }
        const folder = folderOf([page], Prefix);
        const add = (text?: string) => {
          search.add(uri, folder, text);
          this.look(search);
        };
        if (!folder.objects.has(MARKER)) return add();
        this.calls.call(
          READ_OBJECT,
          { Bucket, Key: `${Prefix}${MARKER}` },
          (read) => add((read as { Body: SimBody }).Body.text),
          () => this.giveListingUp(),
        );
      },
      () => this.giveListingUp(),
    );
  }

  /** The function takes over in the middle of a listing, as soon as the heartbeat has been read. */
  private giveListingUp(): void {
    this.checkpoints = 'left';
    this.join();
  }

  private join(): void {
    if (!this.beat || !this.checkpoints) return;
    if (this.checkpoints === 'left') {
      this.calls.goOn();
      return;
    }
    const { job, beat, checkpoints, record } = this;
    const observed: Observed = { ...NOTHING_OBSERVED, job, ...beat, checkpoints, startFrom: undefined, published: [] };
    const actions = wanted(record, observed, this.work.deps.now().getTime());
    const [save, ...effects] = actions;
    if (!save) {
      this.end();
      return;
    }
    const isWrite = save.do === 'save' && effects.length === 0 && save.record.state === record.state;
    if (!isWrite || isOver(save.record) || freesCapacity(record, save.record)) {
      this.calls.goOn();
      return;
    }
    const { run, others } = itemsOf(save, keptAfter(this.run.written?.document));
    keepRecord(run, save.record);
    const TransactItems = writesOf(this.looks.world.names.tableName, [run, ...others], save.previousVersion);
    const then = () => this.written(actions, observed);
    this.calls.call('dynamodb:TransactWriteItems', { TransactItems }, then, (error) => {
      if (error instanceof TransactionCanceledException) this.calls.goOn();
      else this.calls.fail();
    });
  }

  /** Another round follows if the same observation requires more actions. */
  private written(actions: readonly Action[], observed: Observed): void {
    if (isSettled(actions, observed, this.work.deps.now().getTime())) {
      this.end();
      return;
    }
    this.looks.count += 1;
    this.calls.forget();
    if (this.looks.mayPlay(this.run)) this.round();
    else this.calls.goOn();
  }

  private end(): void {
    this.looks.count += 1;
    this.work.settle(NOTHING_FAILED);
  }
}
