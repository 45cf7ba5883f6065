import type { CallsPerRunTick } from './control-load';

/** Ticks of a month of 30 days. */
const TICKS = 8640;
const MILLION = 1_000_000;

/** USD, us-east-1, on demand, before free tiers. Sources and dates: docs/control-plane.md. */
export const PRICES = {
  s3Get: 0.4 / MILLION,
  s3List: 5 / MILLION,
  dynamoRead: 0.125 / MILLION,
  dynamoWrite: 0.625 / MILLION,
  sqsFifo: 0.5 / MILLION,
  lambdaRequest: 0.2 / MILLION,
  lambdaGbSecond: 0.0000166667,
  logsGb: 0.5,
  alarm: 0.1,
};
/** What an observation takes of the function, seconds at 512 MB: three calls one after the other. */
const FUNCTION_SECONDS = 0.15;
const FUNCTION_GB = 0.5;
/** START, END and REPORT of an invocation. */
const LOG_GB_PER_OBSERVATION = 350 / 1e9;
/** A write of a run is one transaction: RUN (2 KB), ATTEMPT (2 KB) and a line (1 KB) at twice the units, and 2 KB in each of two indexes. */
const WRITE_UNITS = 14;
/** The list of active runs, 2 KB of each, is read three times in a tick, eventually consistent. */
const LIST_UNITS_PER_RUN = (3 * 2) / 4 / 2;
const ALARMS = 6;

export interface BillLine {
  what: string;
  usd: number;
}

/** What AWS bills for the control plane in a month, from the calls of a run in a tick. Calls of SageMaker and SSM cost nothing. */
export function monthlyBill(runs: number, calls: CallsPerRunTick, observationsPerRunTick: number): BillLine[] {
  const times = runs * TICKS;
  const of = (call: string) => calls[call] ?? 0;
  const observations = observationsPerRunTick;
  const sends = of('sqs:SendMessage') + of('sqs:SendMessageBatch');
  const lines = [
    { what: 'heartbeats and markers (S3 GET)', usd: times * of('s3:GetObject') * PRICES.s3Get },
    { what: 'checkpoints (S3 LIST)', usd: times * of('s3:ListObjectsV2') * PRICES.s3List },
    {
      what: 'the run table, reads',
      usd: times * (of('dynamodb:GetItem') + LIST_UNITS_PER_RUN) * PRICES.dynamoRead,
    },
    {
      what: 'the run table, writes',
      usd: times * of('dynamodb:TransactWriteItems') * WRITE_UNITS * PRICES.dynamoWrite,
    },
    { what: 'the queue: send, receive and delete', usd: times * (sends + 2 * observations) * PRICES.sqsFifo },
    {
      what: 'the function',
      usd: times * observations * (PRICES.lambdaRequest + FUNCTION_SECONDS * FUNCTION_GB * PRICES.lambdaGbSecond),
    },
    { what: 'its log', usd: times * observations * LOG_GB_PER_OBSERVATION * PRICES.logsGb },
    { what: `${ALARMS} alarms`, usd: ALARMS * PRICES.alarm },
  ];
  return [...lines, { what: 'all of it', usd: lines.reduce((sum, { usd }) => sum + usd, 0) }];
}
