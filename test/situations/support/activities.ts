import { DescribeTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { onRequest } from '../../../lib/control/control/control';
import type { ControlDeps } from '../../../lib/control/control/deps';
import { admitRuns } from '../../../lib/control/reconcile/admit-runs';
import type { ReconcileDeps } from '../../../lib/control/reconcile/deps';
import { reconcileRun } from '../../../lib/control/reconcile/reconcile-run';
import { describedJob, serviceError } from '../../control/support/fake-sagemaker';
import { ALIAS, type FakeWorld } from '../../control/support/fake-world';

export type Kind = 'reconcile' | 'admit' | 'stop' | 'resume';

interface Pending {
  who: string;
  what: string;
  go: () => void;
}

const STORE_CALLS = ['find', 'findIntent', 'save', 'active', 'attempts'];

/** Lets what was let go run until it waits again. */
const flush = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise((done) => setImmediate(done));
};

/**
 * Invocations of the functions over one run that are under way at the same time. Each stops before and after each of its calls until `step`
 * lets it go on; one that was killed never goes on, whatever its last call did.
 */
export class Activities {
  readonly story: string[] = [];
  private readonly pending: Pending[] = [];
  private readonly alive = new Set<string>();
  private readonly killed = new Set<string>();
  private started = 0;

  constructor(
    private readonly world: FakeWorld,
    private readonly runId: string,
  ) {}

  get names(): string[] {
    return [...this.alive];
  }

  get waiting(): number {
    return this.pending.length;
  }

  start(kind: Kind): void {
    const who = `${kind}${++this.started}`;
    this.alive.add(who);
    this.story.push(`start ${who}`);
    this.invoke(kind, who)
      .catch((error: Error) => this.story.push(`${who} threw ${error.message}`))
      .finally(() => this.alive.delete(who));
  }

  kill(who: string): void {
    this.killed.add(who);
    this.alive.delete(who);
    this.story.push(`killed ${who}`);
  }

  /** Lets the `at`-th of the waiting calls go on, if there is one. */
  async step(at = 0): Promise<void> {
    const [next] = this.pending.splice(at, 1);
    if (next) {
      this.story.push(`${next.who} ${next.what}`);
      next.go();
    }
    await flush();
  }

  private invoke(kind: Kind, who: string): Promise<unknown> {
    const { world, runId } = this;
    const store = this.gated(who, world.store, STORE_CALLS);
    if (kind === 'stop' || kind === 'resume') {
      const deps: ControlDeps = { ...world.control, store };
      return onRequest(deps, { action: kind, runId }, ALIAS);
    }
    const sagemaker = this.gated(who, world.sagemaker.client, ['send']);
    const sleep = async (milliseconds: number) => {
      await this.pause(who, 'sleep');
      world.pass(milliseconds);
    };
    const deps: ReconcileDeps = { ...world.reconcile, store, sagemaker, sagemakerOnce: sagemaker, sleep };
    return kind === 'admit' ? admitRuns(deps) : reconcileRun(deps, runId);
  }

  private pause(who: string, what: string): Promise<void> {
    return new Promise((go) => this.pending.push({ who, what, go: () => this.killed.has(who) || go() }));
  }

  private gated<T extends object>(who: string, target: T, names: readonly string[]): T {
    return new Proxy(target, {
      get: (inner, key) => {
        const value = Reflect.get(inner, key);
        if (typeof value !== 'function') return value;
        if (!names.includes(String(key))) return value.bind(inner);
        return async (...args: unknown[]) => {
          await this.pause(who, `${String(key)} before`);
          const [result] = await Promise.allSettled([value.apply(inner, args)]);
          await this.pause(who, `${String(key)} after`);
          if (result.status === 'rejected') throw result.reason;
          return result.value;
        };
      },
    });
  }
}

/** Describe shows a job only `lagMs` after its creation, and fails now and then. */
export function describeLate(world: FakeWorld, lagMs: number, failsNow: () => boolean): void {
  const { mock } = world.sagemaker;
  const behaviour = mock.on(DescribeTrainingJobCommand);
  behaviour.callsFake(({ TrainingJobName }) => {
    const job = world.sagemaker.jobs.get(TrainingJobName);
    if (!job || job.createdAt + lagMs > world.now())
      throw serviceError('ValidationException', 'Requested resource not found.', 400);
    if (failsNow()) throw serviceError('InternalFailure', 'x', 500);
    return describedJob(TrainingJobName, job);
  });
}
