import type { ControlAnswer } from '../../../lib/core/contracts/control';
import type { SimMs } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { SimJob } from '../job/job';
import type { StackCall } from '../scenario/load';
import type { Item } from '../services/expression';
import type { Message } from '../services/queue';
import type { SimRun } from './sim-run';

/** Callbacks for events of a running world `W`. Each method is called at the moment of its event. */
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
  /** Control accepted a stop or a resume. */
  onGranted(_run: SimRun, _action: 'stop' | 'resume'): void {}
  /** Control refused a stop or a resume. */
  onDenied(_run: SimRun, _action: 'stop' | 'resume', _reason: string): void {}
  /** Control answered a call for a run through the alias of another team; undefined: it never answered. */
  onStranger(_run: SimRun, _action: string, _answer: ControlAnswer | undefined): void {}
  /** A guard of the stack accepted a change, or rejected it with a reason. */
  onStackChange(_what: StackCall, _refusal: string | undefined): void {}
  /** Every repetition of a call failed. */
  onGivenUp(_run: SimRun, _action: string): void {}
  /** A function wrote or tagged an object. */
  onObjectWritten(_bucket: string, _key: string, _isTag: boolean): void {}
  /** A call failed and is retried, or was delayed. */
  onTrouble(_operation: string, _at: SimMs, _isOverRate: boolean): void {}
  /** A function was killed between two of its calls. */
  onDeath(_at: SimMs, _why: string): void {}
  /** A function threw an error, or logged one: its name and its message. */
  onError(_error: string): void {}
  /** Free capacity may have changed: limits, instances, jobs. */
  onCapacity(): void {}
}
