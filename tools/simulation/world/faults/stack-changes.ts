import { accepted, onEvent } from '../../../../lib/control/guards/index';
import { GUARD_TYPE } from '../../../../lib/core/contracts/custom-resources';
import type { SimMs, VirtualClock } from '../../core/clock';
import { isStackCall, type StackCall } from '../../scenario/load';
import type { CallEntry } from '../../scenario/schema';
import type { Functions } from '../functions';

/** Time of the rest of an update. */
const UPDATE_MS = 10 * 60_000;

type CdkCustomResourceEvent = Parameters<typeof onEvent>[1];

/** What a change of the stack needs from the world. */
export interface StackHooks {
  /** The guard accepted the change, or rejected it with a reason. */
  onChange(what: StackCall, refusal: string | undefined): void;
}

/** Changes of the stack by people: CloudFormation sends the guards the deletion, or an update that replaces the key. */
export class StackChanges {
  /** CloudFormation has deleted the stack: none of its functions is invoked any more. */
  isDeleted = false;
  /** Answers of the guards. */
  readonly answers: { at: SimMs; what: StackCall; refusal?: string }[] = [];
  /** Number of keys that the stack has had so far. */
  private keys = 1;

  constructor(
    private readonly clock: VirtualClock,
    private readonly functions: Functions,
    private readonly environment: string,
    private readonly hooks: StackHooks,
  ) {}

  plan(calls: readonly CallEntry[]): void {
    for (const { at = 0, do: what } of calls) {
      if (isStackCall(what)) this.clock.schedule(at * 1000, () => this.ask(what));
    }
  }

  private ask(what: StackCall): void {
    if (this.isDeleted) return;
    const isUpdate = what === 'replace-key';
    const event = isUpdate ? this.keyChange(this.keys, this.keys + 1) : this.callOfDeleteGuard('Delete');
    this.functions.guards.invoke(
      (deps) => onEvent(deps, event),
      (ending) => {
        // If a guard was killed the change fails, because CloudFormation gets no answer.
        const isDead = ending.kind === 'died';
        const refusal = ending.kind === 'error' ? (ending.error as Error).message : undefined;
        const isDone = !isDead && refusal === undefined;
        if (isDone && isUpdate) this.keys += 1;
        else if (isDone) this.isDeleted = true;
        if (isUpdate) this.finish(isDone ? this.callOfDeleteGuard('Update') : this.keyChange(this.keys + 1, this.keys));
        if (isDead) return;
        this.answers.push({ at: this.clock.now, what, ...(refusal !== undefined && { refusal }) });
        this.hooks.onChange(what, refusal);
      },
    );
  }

  /** The last event of an update, or of its rollback, which CloudFormation repeats until it succeeds. */
  private finish(event: CdkCustomResourceEvent): void {
    this.clock.schedule(this.clock.now + UPDATE_MS, () =>
      this.functions.guards.invoke(
        (deps) => onEvent(deps, event),
        ({ kind }) => kind === 'answer' || this.finish(event),
      ),
    );
  }

  /** The delete guard is called at a deletion, and last of an update. */
  private callOfDeleteGuard(RequestType: 'Delete' | 'Update'): CdkCustomResourceEvent {
    const PhysicalResourceId = `delete-guard-${this.environment}`;
    return this.event({ RequestType, PhysicalResourceId }, { guards: 'delete' });
  }

  private keyChange(from: number, to: number): CdkCustomResourceEvent {
    const properties = (key: number) => ({
      guards: 'replace',
      environment: this.environment,
      fingerprint: `key-${key}`,
      storage: 'retained',
    });
    const { PhysicalResourceId } = accepted(this.event({}, properties(this.keys)));
    const OldResourceProperties = properties(from);
    return this.event({ RequestType: 'Update', PhysicalResourceId, OldResourceProperties }, properties(to));
  }

  private event(request: object, properties: object): CdkCustomResourceEvent {
    return {
      ResourceType: GUARD_TYPE,
      LogicalResourceId: 'Guard',
      ...request,
      ResourceProperties: { ServiceToken: 'guards', environment: this.environment, ...properties },
    } as unknown as CdkCustomResourceEvent;
  }
}
