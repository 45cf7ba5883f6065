import { createHash } from 'node:crypto';
import { onRequest } from '../../../lib/control/control/control';
import { onEvent } from '../../../lib/control/registered-run/index';
import type { ControlAnswer, ControlPayload, IntentAnswer } from '../../../lib/core/contracts/control';
import { REGISTERED_RUN_TYPE } from '../../../lib/core/contracts/custom-resources';
import type { VirtualClock } from '../core/clock';
import { isStackCall } from '../scenario/load';
import type { CallEntry } from '../scenario/schema';
import { CODE_BYTES, codeOf, startRequest, submittedText } from '../scenario/submission';
import type { SimS3 } from '../services/s3';
import type { Deployed } from './descriptors';
import type { Functions } from './functions';
import type { SimRun } from './sim-run';

/** A call that failed or was killed is repeated after this delay, this many times: the command line tells people to do so. */
const AGAIN_MS = 30_000;
const MAX_REPETITIONS = 3;

/** What the calls of people need from the world. */
export interface PeopleHooks {
  runs(): readonly SimRun[];
  /** Whether the stack, and with it its functions, has been deleted. */
  isDeleted(): boolean;
  /** Control accepted the start of a run under this id. */
  onTaken(run: SimRun, runId: string): void;
  /** Control accepted a stop or a resume. */
  onGranted(run: SimRun, action: 'stop' | 'resume'): void;
  /** Control refused a stop or a resume. */
  onDenied(run: SimRun, action: 'stop' | 'resume', reason: string): void;
  /** A call was made through the alias of another team; undefined when every repetition failed. */
  onStranger(run: SimRun, action: string, answer: ControlAnswer | undefined): void;
  /** Every repetition of a call failed. */
  onGivenUp(run: SimRun, action: string): void;
}

/** What happens after a call. */
interface Outcome {
  onAnswer(answer: ControlAnswer): void;
  onGivenUp(): void;
}

/** The actions of people: they start, stop and resume runs through the control function, and deploy registered runs. */
export class People {
  /** Runs by the hash that a deploy sends as the request id of their start. */
  private readonly byHash = new Map<string, SimRun>();
  /** Number of deploys that CloudFormation has sent, by run: the first is a Create, the others are Updates. */
  private readonly deploys = new Map<string, number>();

  constructor(
    private readonly clock: VirtualClock,
    private readonly functions: Functions,
    private readonly account: { readonly names: Deployed; readonly s3: SimS3 },
    private readonly hooks: PeopleHooks,
  ) {}

  /** Schedules the starts and calls of a scenario. A run that is deployed does not start at its own `at`. */
  plan(calls: readonly CallEntry[]): void {
    const deployed = new Set(calls.filter((call) => call.do === 'deploy').map((call) => call.run));
    for (const run of this.hooks.runs()) {
      if (!deployed.has(run.id)) this.clock.schedule((run.entry.at ?? 0) * 1000, () => this.start(run));
    }
    for (const call of calls) {
      const run = this.hooks.runs().find(({ id }) => id === call.run);
      if (run) this.clock.schedule((call.at ?? 0) * 1000, () => this.act(run, call));
    }
  }

  /** Lambda's answer when another function invokes this one. */
  invoke(aliasArn: string, payload: string): Promise<{ payload: string; isError: boolean }> {
    const requested = JSON.parse(payload) as ControlPayload;
    return new Promise((resolve) => {
      this.functions.control.invoke(
        (deps) => onRequest(deps, requested, aliasArn),
        (ending) => {
          this.clock.wake();
          if (ending.kind === 'answer') this.noteStart(requested, ending.value as ControlAnswer);
          if (ending.kind === 'answer') resolve({ payload: JSON.stringify(ending.value), isError: false });
          else resolve({ payload: JSON.stringify({ errorMessage: String(ending.kind) }), isError: true });
        },
      );
    });
  }

  private noteStart(requested: ControlPayload, answer: ControlAnswer): void {
    if (requested.action !== 'start' || requested.confirm || !answer.ok || !('runId' in answer)) return;
    const run = this.byHash.get(requested.clientRequestId);
    if (run) this.hooks.onTaken(run, answer.runId);
  }

  private act(run: SimRun, { do: what, team = run.team }: CallEntry): void {
    if (isStackCall(what)) return;
    if (what === 'deploy') {
      this.deploy(run);
      return;
    }
    const { runId } = run;
    if (runId === undefined) return;
    const payload: ControlPayload =
      what === 'confirm' ? { action: 'start', runId, confirm: true } : { action: what, runId };
    if (team !== run.team) {
      const onAnswer = (answer?: ControlAnswer) => this.hooks.onStranger(run, what, answer);
      this.call(team, payload, { onAnswer, onGivenUp: () => onAnswer() });
      return;
    }
    this.ask(run, payload, (answer) => {
      if (what === 'confirm' || what === 'release') return;
      if (answer.ok) this.hooks.onGranted(run, what);
      else this.hooks.onDenied(run, what, answer.issues.map(({ message }) => message).join('; '));
    });
  }

  private start(run: SimRun): void {
    this.ask(run, startRequest(run.entry, run.plannedId, this.textOf(run)), (answer) => {
      if (!answer.ok) return this.refuse(run, answer.issues);
      const intent = answer as IntentAnswer;
      this.hooks.onTaken(run, intent.runId);
      for (const { key } of intent.uploads) this.account.s3.put(run.descriptor.artifactBucket, key, '', CODE_BYTES);
      this.ask(run, { action: 'start', runId: intent.runId, confirm: true }, () => {});
    });
  }

  private refuse(run: SimRun, issues: readonly { level: string; message: string }[]): void {
    run.refusal ??= issues
      .filter(({ level }) => level === 'error')
      .map(({ message }) => message)
      .join('; ');
  }

  private ask(run: SimRun, payload: ControlPayload, onAnswer: (answer: ControlAnswer) => void): void {
    this.call(run.team, payload, { onAnswer, onGivenUp: () => this.hooks.onGivenUp(run, payload.action) });
  }

  /** One call of a team's alias, repeated when it failed. */
  private call(team: string, payload: ControlPayload, on: Outcome, tries = 0): void {
    if (this.hooks.isDeleted()) return;
    this.functions.control.invoke(
      (deps) => onRequest(deps, payload, this.account.names.aliasArn(team)),
      (ending) => {
        if (ending.kind === 'answer') return on.onAnswer(ending.value as ControlAnswer);
        if (tries < MAX_REPETITIONS) this.clock.after(AGAIN_MS, () => this.call(team, payload, on, tries + 1));
        else on.onGivenUp();
      },
    );
  }

  /** CloudFormation sends the resource of a registered run, created from its run file. */
  private deploy(run: SimRun, tries = 0): void {
    if (this.hooks.isDeleted()) return;
    const count = this.deploys.get(run.id) ?? 0;
    if (tries === 0) this.deploys.set(run.id, count + 1);
    const text = this.textOf(run);
    const { code } = codeOf(run.entry.text);
    const hash = createHash('sha256')
      .update(`${text}\n${code?.sha256 ?? ''}`)
      .digest('hex');
    this.byHash.set(hash, run);
    const runFileKey = `${hash}.yaml`;
    const codeKey = `${hash}.tar.gz`;
    this.account.s3.put(this.account.names.assetBucket, runFileKey, text);
    if (code) this.account.s3.put(this.account.names.assetBucket, codeKey, 'x'.repeat(CODE_BYTES));
    const properties = {
      ServiceToken: 'registered-run',
      controlAliasArn: this.account.names.aliasArn(run.team),
      hash,
      assetBucket: this.account.names.assetBucket,
      runFileKey,
      ...(code && { codeKey, codeSha256: code.sha256 }),
    };
    const isFirst = count === 0;
    const event = {
      RequestType: isFirst ? 'Create' : 'Update',
      ResourceType: REGISTERED_RUN_TYPE,
      LogicalResourceId: run.id,
      ResourceProperties: properties,
      ...(!isFirst && { PhysicalResourceId: `run-${run.id}`, OldResourceProperties: properties }),
    };
    this.functions.registeredRun.invoke(
      (deps) => onEvent(deps, event as unknown as Parameters<typeof onEvent>[1]),
      (ending) => {
        if (ending.kind === 'answer') return;
        if (ending.kind === 'error') run.refusal = (ending.error as Error).message;
        if (tries < MAX_REPETITIONS) this.clock.after(AGAIN_MS, () => this.deploy(run, tries + 1));
      },
    );
  }

  private textOf(run: SimRun): string {
    return submittedText(run.entry.text, (named) => {
      const other = this.hooks.runs().find(({ id }) => id === named);
      return other?.runId ?? other?.plannedId ?? named;
    });
  }
}
