import type { ListTrainingJobsCommandOutput } from '@aws-sdk/client-sagemaker';
import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { isListed, keepLiveJobs, knownUsage, LIVE_JOBS } from '../../handlers/reconcile/queue/others-usage';
import { changesNothing, type PassFacts, planPass } from '../../handlers/reconcile/queue/plan-pass';
import { ownJobs, poolLimits } from '../../handlers/reconcile/queue/queue-pools';
import { newTeams } from '../../handlers/reconcile/queue/team-holds';
import { keptDescriptor } from '../../handlers/shared/descriptors';
import { type Item, runKey } from '../../handlers/shared/items';
import type { RunRecord } from '../../lifecycle/record';
import type { Limits } from '../../quota';
import { recordOfItem } from '../services/kept-document';
import type { DirectCalls } from './direct-work';
import { hasRecent, READ_DESCRIPTOR, readDescriptor, staysAsRecent } from './kept-descriptors';
import { REST_MS, readLimits } from './kept-limits';
import type { WorldOfLooks } from './world-of-looks';

/** What has been read before the pools: runs, their needs and the queue's own item. */
type ReadFacts = Pick<PassFacts, 'waiting' | 'holding' | 'needs' | 'usage'> & { active: readonly RunRecord[] };

const READ = 'dynamodb:GetItem';
const LIST = 'sagemaker:ListTrainingJobs';

/** The rest of a pass in which runs wait, or may grow: pools, runs that others wait for, budgets, and the product's own plan. */
export class WaitingPass {
  private readonly awaited = new Map<string, RunRecord | undefined>();
  private limits: Limits | undefined;

  /** @param end the pass decides nothing */
  constructor(
    private readonly world: Pick<WorldOfLooks, 'clock' | 'gateway' | 'names'>,
    private readonly calls: DirectCalls<ReconcileDeps>,
    private readonly facts: ReadFacts,
    private readonly end: () => void,
  ) {}

  /** Reads what is missing; the function takes over where that is more than single calls. */
  play(): void {
    const { waiting, needs } = this.facts;
    const asksByName = waiting.some((run) => run.after.some((wanted) => wanted.startsWith('latest:')));
    const mayStall = this.world.gateway.mayComeLate([READ, READ_DESCRIPTOR, LIST]);
    if (asksByName || mayStall || !this.teams().every((team) => this.hasNoBudget(team))) {
      this.calls.goOn();
      return;
    }
    readLimits(this.world, this.calls, needs.all, (limits) => {
      this.limits = limits;
      this.listJobs();
    });
  }

  /** A budget would be compared with what the team has spent, in many reads. */
  private hasNoBudget(team: string): boolean {
    const kept = keptDescriptor(this.calls.work.deps, team);
    return kept !== undefined && !kept.descriptor.budget;
  }

  /** The descriptor of every team has the guardrails of the environment. */
  private guardrailTeam(): string[] {
    return this.facts.active.slice(0, 1).map((run) => run.team);
  }

  /** Teams whose descriptors the pass reads. */
  private teams(): string[] {
    return [...this.guardrailTeam(), ...newTeams(this.facts.active)];
  }

  private listJobs(): void {
    const { deps } = this.calls.work;
    const { active } = this.facts;
    const at = deps.now().getTime();
    if (!this.isSteady(at)) {
      this.calls.goOn();
      return;
    }
    if (isListed(deps, at)) {
      if (knownUsage(deps, ownJobs(active))) this.readGuardrails();
      else this.calls.goOn();
      return;
    }
    const keep = (answer: object) => {
      const { TrainingJobSummaries = [], NextToken } = answer as ListTrainingJobsCommandOutput;
      const names = TrainingJobSummaries.flatMap(({ TrainingJobName }) => TrainingJobName ?? []);
      if (NextToken || !knownUsage(deps, ownJobs(active), names)) return false;
      keepLiveJobs(deps, names, at);
      return true;
    };
    this.calls.keptCall({ name: LIST, input: LIVE_JOBS, keep, next: () => this.readGuardrails() });
  }

  /** What the process keeps does not become too old while the pass reads: a function that took over would read it again. */
  private isSteady(now: number): boolean {
    const { deps } = this.calls.work;
    const isSteadyList = isListed(deps, now) === isListed(deps, now + REST_MS);
    return isSteadyList && this.teams().every((team) => staysAsRecent(deps, team));
  }

  private readGuardrails(): void {
    const awaited = [...new Set(this.facts.waiting.flatMap((run) => run.after))];
    this.readDescriptors(this.guardrailTeam(), () => this.readAwaited(awaited));
  }

  private readAwaited([runId, ...others]: readonly string[]): void {
    if (runId === undefined) {
      this.readDescriptors(newTeams(this.facts.active), () => this.decide());
      return;
    }
    const input = { TableName: this.world.names.tableName, Key: runKey(runId), ConsistentRead: true };
    this.calls.call(READ, input, ({ Item: item }: { Item?: Item }) => {
      this.awaited.set(runId, item && recordOfItem(item));
      this.readAwaited(others);
    });
  }

  private readDescriptors(teams: readonly string[], then: () => void): void {
    const [team, ...others] = teams.filter((one) => !hasRecent(this.calls.work.deps, one));
    // The function reads those of several teams at once.
    if (others.length > 0) this.calls.goOn();
    else if (team === undefined) then();
    else readDescriptor(this.calls, team, then, ({ budget }) => !budget);
  }

  private decide(): void {
    const { deps } = this.calls.work;
    const { active, needs } = this.facts;
    const [team] = this.guardrailTeam();
    const descriptor = team === undefined ? undefined : keptDescriptor(deps, team)?.descriptor;
    if (!this.limits || !descriptor) {
      this.calls.goOn();
      return;
    }
    const others = knownUsage(deps, ownJobs(active));
    const mostInstances = descriptor.guardrails?.maxConcurrentInstances ?? null;
    const pools = poolLimits({ needs: needs.all, limits: this.limits, others, mostInstances });
    const now = deps.now().getTime();
    const facts: PassFacts = { ...this.facts, pools, awaited: this.awaited, holds: new Map(), now };
    if (changesNothing(deps, facts, planPass(deps, facts))) this.end();
    else this.calls.goOn();
  }
}
