import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { readScenario, type Scenario } from '../../../tools/simulation/scenario/load';

const SCENARIOS = path.join(__dirname, '../../scenarios');

/** A scenario of test/scenarios that both worlds play. */
export interface AgreementCase {
  scenario: string;
  /** Runs that neither world plays, by id, with what the sandbox lacks for them. */
  withoutRuns?: Readonly<Record<string, string>>;
  /** Faults that neither world plays, by the key that says what they are, with what the sandbox lacks for them. */
  withoutFaults?: Readonly<Record<string, string>>;
  /** When the play ends, where the rest of the scenario is more of the same. */
  until?: string;
}

const LIMITS_OF_TIME = 'limits of time run on the real clock of the sandbox';
const OTHERS_READ_TOO = 'the sandbox cannot tell the calls of the functions from those of the test';

const HELD_BY_OTHERS = 'the sandbox gives instances that jobs of others hold in the simulation';

const STEPS_ADD_UP =
  'each attempt trains for some minutes more in the sandbox, whose jobs begin at once: over many attempts too many steps';

const OWN_CLOCK = 'clocks that differ: the functions have the clock of the test';
const OWN_BUDGETS = 'budgets of teams, which the environment of the test does not have';

/** What both worlds play. */
export const CASES: readonly AgreementCase[] = [
  { scenario: 'interrupted-on-demand' },
  { scenario: 'interrupted-spot' },
  { scenario: 'first-start-unlisted' },
  { scenario: 'resume-unlisted' },
  { scenario: 'doubtful-create-unlisted' },
  { scenario: 'internal-error' },
  {
    scenario: 'causes',
    withoutRuns: {
      client: 'inputs of a scripted job are always there',
      capacity: 'CapacityError strikes a job of the sandbox before it trains',
      unknown: 'the sandbox knows the four families of FailureReason only',
      'code-alone': 'the sandbox ends a failed job with its exit code, as the service does',
      checkpoint:
        'its second attempt fails between its start and its first step, which the two worlds place differently',
    },
  },
  { scenario: 'hangs' },
  { scenario: 'stops' },
  { scenario: 'spares' },
  { scenario: 'restarts' },
  { scenario: 'loss-again' },
  { scenario: 'same-name' },
  { scenario: 'elastic-resumed' },
  { scenario: 'kinds', withoutRuns: { toolkit: 'a job without ContainerEntrypoint has no script that could be told' } },
  { scenario: 'untold' },
  { scenario: 'preempted' },
  { scenario: 'after' },
  { scenario: 'alternatives' },
  {
    scenario: 'spending',
    withoutRuns: {
      spot: 'its last commit before the cap is seen at one tick in one world and at the next in the other, and only the later one crosses the cap',
      enough: 'it ends within the minutes after the decision to stop it, in which the two worlds differ',
    },
  },
  { scenario: 'shares' },
  { scenario: 'quota-used', withoutFaults: { 'sagemaker:ListTrainingJobs': OTHERS_READ_TOO } },
  {
    scenario: 'checkpoints',
    withoutRuns: {
      moved: LIMITS_OF_TIME,
      marked: LIMITS_OF_TIME,
      none: LIMITS_OF_TIME,
      many: 'a thousand objects each half hour, for the same decisions',
    },
  },
  {
    scenario: 'capacity',
    withoutRuns: { 'gives-up': LIMITS_OF_TIME, chooses: 'a held job of the sandbox takes its first choice' },
  },
  {
    scenario: 'no-progress',
    withoutRuns: {
      'goes-on': STEPS_ADD_UP,
      saves: STEPS_ADD_UP,
    },
  },
  { scenario: 'failure-step' },
  { scenario: 'silent-again' },
];

/**
 * Cases that the sandbox could play and that do not agree yet: it gives `elastic` and `queued` instances that jobs of others hold in the
 * simulation, refuses the start of `processing`, and does not get through `doubtful-creates`.
 */
export const NOT_COMPARED: readonly AgreementCase[] = [
  {
    scenario: 'doubtful-creates',
    withoutRuns: {
      untagged: OTHERS_READ_TOO,
      unseen: 'no read of the sandbox lags behind a write',
      blind: OTHERS_READ_TOO,
      full: OTHERS_READ_TOO,
    },
    withoutFaults: {
      'sagemaker:ListTags': OTHERS_READ_TOO,
      'sagemaker:DescribeTrainingJob': OTHERS_READ_TOO,
      describeLagSeconds: 'no read of the sandbox lags behind a write',
      takesSeconds: 'waits of calls run on the real clock of the sandbox',
    },
  },
  { scenario: 'elastic', withoutRuns: { shrinks: LIMITS_OF_TIME } },
  { scenario: 'queued' },
  { scenario: 'processing' },
];

/** The other scenarios, and what the sandbox lacks for them. */
export const OTHERS: Readonly<Record<string, string>> = {
  'describe-denied':
    'a job of the sandbox is described to the test too, which cannot tell its own calls from those of the functions',
  'descriptor-denied': 'a read of Parameter Store cannot be denied in the middle of a run',
  'restarts-in-place':
    'what a driver does with its own ranks is played by its tests on real processes, and no job sees it',
  'hostile-runs': 'the jobs of the sandbox have a driver of their own, and its table is not edited',
  'answers-empty': 'no list of the sandbox is empty by mistake, and no read lags behind a write',
  'ends-not-judged':
    'the jobs of the sandbox have a driver of their own, which nothing overwrites, and Describe is denied to the test too',
  'described-late': 'no read of the sandbox lags behind a write',
  aging: 'a job of the sandbox trains some minutes longer, and the next run starts at another tick',
  crowded: 'hundreds of jobs of others, each a process of the sandbox',
  'hang-then-lost': 'a job of the sandbox that is being stopped ends stopped, whatever its hosts do',
  'unknown-price': 'us-west-2 has no ml.trn2.48xlarge, so the sandbox refuses it',
  'waited-before': 'the sandbox looks less often at a run that waits, so it asks for quota less often',
  'budget-month-end': OWN_BUDGETS,
  'budget-pool': OWN_BUDGETS,
  'budget-spent': OWN_BUDGETS,
  'capacity-came-stopped': 'the sandbox has no CapacityError for a job that trains',
  'capacity-unlisted': 'the sandbox has no CapacityError for a job that trains',
  'clock-ahead': OWN_CLOCK,
  clocks: OWN_CLOCK,
  deaths: 'functions that die between two calls',
  deleted: 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'deleted-first-minute': 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'deleted-unanswered': 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'deleted-unread': 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'deleted-while-silent': 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'deleted-young': 'DeleteTrainingJob refuses a live job in the sandbox, as on AWS',
  'doubtful-limit': 'no read of the sandbox lags behind a write',
  'elastic-doubtful': OTHERS_READ_TOO,
  'elastic-memory': HELD_BY_OTHERS,
  'elastic-spot': LIMITS_OF_TIME,
  'elastic-two': HELD_BY_OTHERS,
  'end-read-late': 'waits of calls run on the real clock of the sandbox',
  'end-unread': 'waits of calls run on the real clock of the sandbox',
  'grow-unread-quota': 'functions that die between two calls',
  guards: 'changes of the stack, which test/long/adoption.test.ts and test/long/always/life-cycle.test.ts make',
  'index-late': 'no read of the sandbox lags behind a write',
  'interrupted-hang': 'what `hangs` plays of an interrupted job, at a time at which one tick decides',
  'interrupted-unread': OTHERS_READ_TOO,
  'older-driver': 'the driver of the sandbox is that of the package',
  'older-version': 'functions that die between two calls',
  'many-ask': HELD_BY_OTHERS,
  people: 'other teams, which test/e2e/roles has, and uploads that are never confirmed',
  refused: 'guardrails of an environment of its own, which test/e2e/environment.test.ts has',
  registered: 'CloudFormation, which test/e2e/environment.test.ts deploys',
  'spot-lost': LIMITS_OF_TIME,
  'stopped-while-leaving': LIMITS_OF_TIME,
  'spot-price': 'the sandbox bills spot in full',
  'pool-quota': LIMITS_OF_TIME,
  'pool-without-job': LIMITS_OF_TIME,
  'preempted-late': LIMITS_OF_TIME,
  'plan-price': 'the sandbox has no training plans of which a price could be known',
  'pool-of-another': LIMITS_OF_TIME,
  'pools-taken': LIMITS_OF_TIME,
  'released-pool': LIMITS_OF_TIME,
  unheard: OTHERS_READ_TOO,
  'warm-pools': LIMITS_OF_TIME,
};

/** The scenario of a case, in the environment that is deployed, without what only one world has. */
export function scenarioOf(
  { scenario, withoutRuns = {}, withoutFaults = {}, until }: AgreementCase,
  environment: string,
): Scenario {
  const data = parse(readFileSync(path.join(SCENARIOS, `${scenario}.yaml`), 'utf8')) as Written;
  const isPlayed = (id: string) => withoutRuns[id] === undefined;
  const target = (fault: Fault) => (fault.job ?? fault.taken ?? '').split('#')[0] ?? '';
  const isStruck = (fault: Fault) =>
    [fault.call, ...Object.keys(fault)].every((key) => withoutFaults[key ?? ''] === undefined);
  const both = {
    ...data,
    environment: parse(environment),
    runs: data.runs.filter(({ id }) => isPlayed(id)),
    calls: (data.calls ?? []).filter(({ run }) => isPlayed(run)),
    faults: (data.faults ?? []).filter((fault) => isPlayed(target(fault)) && isStruck(fault)),
    ...(until !== undefined && { until }),
  };
  const { value, issues } = readScenario(both, (file) => readFileSync(path.join(SCENARIOS, file), 'utf8'));
  if (!value) throw new Error(`${scenario}: ${issues.map(({ message }) => message).join('\n')}`);
  return value;
}

type Fault = Record<string, unknown> & { job?: string; taken?: string; call?: string };

interface Written {
  runs: { id: string }[];
  calls?: { run: string }[];
  faults?: Fault[];
}
