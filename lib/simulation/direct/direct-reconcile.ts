import type { RunMessage } from '../../contracts/launcher';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import type { Handling } from '../core/functions';
import type { Slot } from '../core/invocation';
import type { Message } from '../services/queue';
import { DirectLooks } from './live-looks';
import { DirectPasses } from './passes';
import { DirectQueuedLooks } from './queued-looks';
import { QuietLooks } from './quiet-looks';
import { DirectTicks } from './ticks';
import type { WorldOfLooks } from './world-of-looks';

/**
 * Plays invocations of `reconcile` that need only a few decisions: the calls are made one by one with the product's own decision functions,
 * without running the handler, which would have the same result. Most invocations of a scenario are of this kind.
 */
export class DirectReconcile {
  readonly looks: DirectLooks;
  readonly passes: DirectPasses;
  readonly quiet: QuietLooks;
  readonly queued: DirectQueuedLooks;
  private readonly ticks: DirectTicks;
  private readonly messages = new Map<string, RunMessage>();

  /** @param isOn false = every invocation runs the function */
  constructor(
    private readonly world: WorldOfLooks,
    private readonly isOn: boolean,
  ) {
    this.looks = new DirectLooks(world);
    this.passes = new DirectPasses(world);
    this.quiet = new QuietLooks(world);
    this.queued = new DirectQueuedLooks(world);
    this.ticks = new DirectTicks(world);
  }

  /** Handles a tick of the schedule. */
  tick(deps: ReconcileDeps, slot: Slot, real: () => Promise<unknown>): Handling {
    const { invocation } = slot;
    if (!this.isOn || !invocation || deps.metrics) return real();
    return (settle) => this.ticks.play({ deps, slot, invocation, real, settle });
  }

  /** Handles a message. */
  handle(received: Message, deps: ReconcileDeps, slot: Slot, real: () => Promise<unknown>): Handling {
    const message = this.parse(received.body);
    const { invocation } = slot;
    const run = message.kind === 'run' ? this.world.findRun(message.runId) : undefined;
    if (!this.isOn || !invocation) return real();
    const workOf = (settle: (outcome: unknown) => void) => ({
      deps,
      slot,
      invocation,
      message: received,
      real,
      settle,
    });
    if (message.kind === 'admit')
      return message.runId === undefined ? (settle) => this.passes.play(workOf(settle)) : real();
    if (!run) return real();
    return (settle) => {
      const work = workOf(settle);
      if (this.quiet.play(run, work)) return;
      if (this.looks.mayPlay(run)) {
        this.looks.play(run, work);
        return;
      }
      if (this.queued.mayPlay(run)) this.queued.play(run, work);
      else settle(real());
    };
  }

  /** The same texts occur repeatedly, so parsed messages are cached. */
  private parse(body: string): RunMessage {
    let message = this.messages.get(body);
    if (!message) {
      message = JSON.parse(body) as RunMessage;
      this.messages.set(body, message);
    }
    return message;
  }
}
