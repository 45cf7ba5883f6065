import type { ControlAnswer } from '../../contracts/control';
import type { SimMs } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { SimJob } from '../job/job';
import type { StackCall } from '../scenario/load';
import type { Item } from '../services/expression';
import type { Message } from '../services/queue';
import type { SimRun } from './sim-run';

/** What may be seen of a world `W` while it runs. Each method is called at the moment when the thing happens. */
export class Watch<W = unknown> {
  join(_world: W): void {}
  onRunWritten(_run: SimRun, _before: Item | undefined, _item: Item, _by: Invocation | undefined): void {}
  onCreate(_run: SimRun | undefined, _job: SimJob, _by: Invocation): void {}
  onRefused(_jobName: string): void {}
  onStop(_run: SimRun | undefined, _job: SimJob, _by: Invocation): void {}
  onJobChange(_run: SimRun | undefined, _job: SimJob): void {}
  onResume(_job: SimJob, _step: number): void {}
  onNotice(_run: SimRun): void {}
  onMessageOver(_message: Message, _isDead: boolean): void {}
  /** Control answered a stop or a resume with yes. */
  onGranted(_run: SimRun, _action: 'stop' | 'resume'): void {}
  /** Control answered a stop or a resume with no. */
  onDenied(_run: SimRun, _action: 'stop' | 'resume', _reason: string): void {}
  /** Control answered a call about a run through the alias of another team; undefined: it never answered. */
  onStranger(_run: SimRun, _action: string, _answer: ControlAnswer | undefined): void {}
  /** A guard of the stack let a change pass, or refused it with a reason. */
  onStackChange(_what: StackCall, _refusal: string | undefined): void {}
  /** Every repetition of somebody's call died or failed. */
  onGivenUp(_run: SimRun, _action: string): void {}
  /** A call failed in a way that is repeated, or came late. */
  onTrouble(_operation: string, _at: SimMs, _isOverRate: boolean): void {}
  /** A function died between two of its calls. */
  onDeath(_at: SimMs, _why: string): void {}
  /** Room may have changed: limits, capacity, jobs. */
  onRoom(): void {}
}
