import type { Mutant } from './mutants';

/** Lines whose change nobody could notice by what a run does, each with the reason. */
const EQUIVALENT: readonly { file: string; line: RegExp; why: string }[] = [
  {
    file: 'lib/lifecycle/budgets.ts',
    line: /^ {2}budgets\.capacitySince === undefined && budgets\.capacityTries === 0$/,
    why: 'a shortcut: the other branch gives equal budgets',
  },
  {
    file: 'lib/queue/preempt.ts',
    line: /a\.run\.runId < b\.run\.runId/,
    why: 'decides only between two jobs of one priority that began to train in the same millisecond',
  },
  {
    file: 'lib/handlers/shared/run-store.ts',
    line: /^ {4}if \(!item\) return undefined;$/,
    why: 'an intent is written in the transaction of its record and expires after it: where the record is, it is too',
  },
  {
    file: 'lib/handlers/reconcile/observe/rungs.ts',
    line: /^ {2}if \(known\) return known;$/,
    why: 'a cache: neither an intent nor the rungs that fit it change',
  },
  {
    file: 'lib/lifecycle/phases/launch.ts',
    line: /^const THROTTLED_PAUSE_MS/,
    why: 'after a throttled create the invocation itself waits 8 s and longer, and the next tick comes after minutes',
  },
  {
    file: 'lib/lifecycle/phases/watch.ts',
    line: /^const ALIVE_AGAIN_MS/,
    why: 'tells rounds of one look, which are seconds apart, from ticks, which are minutes apart',
  },
  {
    file: 'lib/lifecycle/health/step-times.ts',
    line: /^const CLOCK_TOLERANCE_MS/,
    why: 'tells the clocks of two hosts apart by seconds; a container that starts again takes minutes to its first step',
  },
  {
    file: 'lib/lifecycle/phases/hand-over.ts',
    line: /^const ASK_AGAIN_MS/,
    why: 'tells rounds of one look, which are seconds apart, from ticks, which are minutes apart',
  },
  {
    file: 'lib/handlers/reconcile/reconcile-run.ts',
    line: /^const MOST_PAUSES/,
    why: 'the time limit of the function leaves no room for a fourth pause',
  },
  {
    file: 'lib/handlers/reconcile/queue/run-needs.ts',
    line: /^ {2}if \(policy\.pendingSeconds === undefined\) return \[rungId\];$/,
    why: 'a shortcut: what other rungs need is computed and used only for elastic runs',
  },
  {
    file: 'lib/lifecycle/accounting/spend.ts',
    line: /^ {2}if \(pool\.usdPerHour === null\) return null;$/,
    why: 'the spend is unknown already: the attempt that left the pool has no price either',
  },
  {
    file: 'lib/handlers/shared/queue-runs.ts',
    line: /^ {2}return \{ kind, status: 'InProgress', spot: usage === 'spot', instances \};$/,
    why: 'the queue asks only about jobs with alternatives, which may not be spot; otherwise a metric counts it',
  },
  {
    file: 'lib/handlers/reconcile/queue/others-usage.ts',
    line: /^ {2}return unknownJobs\(live, cache, ours\)\.length > 0 \? undefined : usageOf\(live, cache, ours\);$/,
    why: 'tells the simulation whether it may play a pass without the function',
  },
  {
    file: 'lib/queue/preempt.ts',
    line: /^ {2}if \(open\.length === 0\) return \[\];$/,
    why: 'a shortcut: without a job that may be asked to exit, none is chosen',
  },
  {
    file: 'lib/lifecycle/phases/finish.ts',
    line: /exitCode: verdict\.exitCode/,
    why: 'evidence in the timeline: nothing is decided by it',
  },
  {
    file: 'lib/lifecycle/accounting/lost-steps.ts',
    line: /^ {4}if \(attempt === undefined \|\| start === undefined \|\| step === undefined\) continue;$/,
    why: 'skips lines of older versions; the two kinds of lines that matter have all three numbers',
  },
  {
    file: 'lib/lifecycle/accounting/month-spend.ts',
    line: /^ {4}if \(from === undefined \|\| usd === null\) return sum;$/,
    why: 'for the type checker: without it, an attempt without a start or a price counts as 0 as well',
  },
  {
    file: 'lib/lifecycle/phases/settle-pool.ts',
    line: /^ {2}if \(!isPoolDue\(record, now\)\) return NO_MOVE;$/,
    why: 'the service is not asked before, and without its answer nothing follows',
  },
  {
    file: 'lib/handlers/reconcile/queue/run-needs.ts',
    line: /^ {4}if \(known\?\.byRung === byRung && known\?\.rungId === rungId\) return known\.pools;$/,
    why: 'a cache: what a run needs on a rung does not change',
  },
  {
    file: 'lib/handlers/shared/limit-reader.ts',
    line: /^const RETRY_MS/,
    why: 'tells calls of one pass, which are seconds apart, from passes, which are minutes apart',
  },
  {
    file: 'lib/handlers/shared/run-writes.ts',
    line: /^const MOST_EVENTS/,
    why: 'the limit of a transaction: no decision of a scenario has ten lines',
  },
  {
    file: 'lib/lifecycle/classify.ts',
    line: /^ {2}if \(start < 0\) return \{\};$/,
    why: 'a shortcut: a text without the line of the driver is no JSON, and holds none of its fields',
  },
  {
    file: 'lib/lifecycle/intent.ts',
    line: /'run-admitted', why, rungId === record\.rungId/,
    why: 'evidence in the timeline: nothing is decided by it',
  },
  {
    file: 'lib/handlers/shared/team-budget.ts',
    line: /^const MOST_RUNS/,
    why: 'the size of a query: no team of a scenario launches a hundred runs in a month',
  },
  {
    file: 'lib/handlers/reconcile/effects/chat-message.ts',
    line: /^const MOST_TITLE/,
    why: 'the length of a text in chat: nothing is decided by it',
  },
  {
    file: 'lib/handlers/reconcile/reconcile.ts',
    line: /^ {2}if \(!jobName\.startsWith\(prefix\)\) return undefined;$/,
    why: 'the rule of the bus passes only jobs of this prefix on (lib/constructs); tests of the handler hold it',
  },
  {
    file: 'lib/handlers/control/start/start.ts',
    line: /^const MOST_ID_TRIES/,
    why: 'the ids that a start tries when its own are taken: each start of a scenario names its id',
  },
  {
    file: 'lib/handlers/control/change-run.ts',
    line: /^ {2}for \(let tries = 0; tries < MOST_TRIES; tries\+\+\) \{$/,
    why: 'how often a write that lost against another is made again at once; the caller repeats the call',
  },
  {
    file: 'lib/lifecycle/phases/launch.ts',
    line: /^ {4}what === 'job-created'$/,
    why: 'chooses between two texts of the timeline: what follows depends on its kind alone',
  },
  { file: 'lib/handlers/shared/run-store.ts', line: /MOST_INTENTS/, why: 'the size of a cache: intents never change' },
  {
    file: 'lib/handlers/shared/remember.ts',
    line: /./,
    why: 'a cache of parsed text: the same text gives the same value',
  },
  {
    file: 'lib/lifecycle/is-equal.ts',
    line: /if \(a === b\) return true/,
    why: 'a shortcut: the comparison by parts gives the same',
  },
  {
    file: 'lib/handlers/reconcile/queue/others-usage.ts',
    line: /^const (MOST_DESCRIBES|AT_ONCE|LEAST_MS|PAGE_PAUSE_MS)/,
    why: 'how fast others are asked for, not what is decided',
  },
  {
    file: 'lib/handlers/reconcile/observe/folders.ts',
    line: /^ {2}let newestWriteAt = 0;/,
    why: 'no object was written in the first millisecond of 1970',
  },
  {
    file: 'lib/handlers/reconcile/queue/ask-to-leave.ts',
    line: /^const MOST_TRIES/,
    why: "a pass would have to lose three races against the run's worker, which writes once a tick",
  },
  {
    file: 'lib/handlers/reconcile/queue/read-again.ts',
    line: /^ {6}if \(tries > 0\) await deps\.sleep|^const FIRST_PAUSE_MS/,
    why: 'how fast a throttled table is asked again, not what is decided',
  },
  {
    file: 'lib/lifecycle/health/hang.ts',
    line: /^ {2}if \(!moved && before\.beatAt === beat\.writtenAt\) return before;$/,
    why: 'a shortcut: the same heartbeat gives an equal progress',
  },
  {
    file: 'lib/lifecycle/accounting/lost-steps.ts',
    line: /^ {2}if \(step < first\) return firstAt;$/,
    why: 'before the first step of this start lie steps of earlier ones, which the same later start repeats: they are lost as well',
  },
  {
    file: 'lib/handlers/reconcile/observe/observe.ts',
    line: /^ {2}attempt === undefined && record\.admitted && record\.desired === 'run';$/,
    why: 'a run that is to stop reads what its next attempt would need, and has none',
  },
  {
    file: 'lib/handlers/reconcile/queue/queue-pools.ts',
    line: /^ {2}if \(team === undefined\) return null;$/,
    why: 'without an active run there is nothing that a guardrail could hold back',
  },
  {
    file: 'lib/handlers/shared/items.ts',
    line: /^export const ITEM_SCHEMA/,
    why: 'nothing compares the number yet: fields are only added (the tests of migrate.ts hold what 0.1.0 can read)',
  },
  {
    file: 'lib/handlers/shared/queue.ts',
    line: /^export const AGAIN_SECONDS/,
    why: 'how soon a message comes again, not what is decided',
  },
  {
    file: 'lib/lifecycle/accounting/month-spend.ts',
    line: /^ {4}const share = until > from/,
    why: 'decides only in which month an attempt counts that ended when it started, and cost nothing',
  },
  {
    file: 'lib/queue/preempt.ts',
    line: /^ {2}if \(!lets\(from\)\) return \[\];$/,
    why: 'a shortcut: without a beginning that suffices, none is needed',
  },
  {
    file: 'lib/handlers/reconcile/observe/observe.ts',
    line: /^ {2}if \(!attempt\) return \{\};$/,
    why: 'before its first attempt, a run has no pools',
  },
];

/**
 * Whether a mutant changes one of those lines.
 * @throws Error when an entry fits no line of its file any more
 */
export function requireEquivalents(files: ReadonlyMap<string, string>): (mutant: Mutant) => boolean {
  for (const { file, line } of EQUIVALENT) {
    const isThere =
      files
        .get(file)
        ?.split('\n')
        .some((text) => line.test(text)) ?? false;
    if (!isThere) throw new Error(`scripts/mutate/equivalent.ts: no line of ${file} fits ${line}; change the entry`);
  }
  return ({ file, before }) => EQUIVALENT.some((one) => one.file === file && one.line.test(before));
}
