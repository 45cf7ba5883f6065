// Whatever a job or a colleague wrote into a field: no verb prints it as more than visible text in the place where it belongs.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import pc from 'picocolors';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { plainTerminal } from '../../lib/cli/terminal';
import { ANSWERS } from '../../lib/core/contracts/answers';
import { HOSTILE_TEXT, hiddenIn } from '../support/hostile-text';
import { labEnvironment } from '../support/lab-environment';
import { mockClient } from '../support/mocked-clients';
import { runCli, VERBS } from '../support/run-cli';

type Schema = Record<string, unknown> & { properties?: Record<string, Schema>; anyOf?: Schema[]; items?: Schema };

/** A document of a schema in which every text that is neither a time nor one of a few words is `text`: also in fields that are added later. */
function sampleOf(schema: Schema, text: string): unknown {
  if (schema.anyOf) return sampleOf(schema.anyOf[0] ?? {}, text);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum.at(-1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'string':
      return String(schema.description).startsWith('ISO 8601') ? '2026-11-21T12:05:00.000Z' : text;
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return 2;
    case 'array': {
      const items = (schema.prefixItems as Schema[] | undefined) ?? [schema.items ?? {}];
      return items.map((item) => sampleOf(item, text));
    }
    case 'object': {
      const named = Object.entries(schema.properties ?? {}).map(([key, value]) => [key, sampleOf(value, text)]);
      const others = schema.additionalProperties;
      const more = typeof others === 'object' && others !== null ? [[text, sampleOf(others as Schema, text)]] : [];
      return Object.fromEntries([...named, ...more]);
    }
    default:
      return text;
  }
}
const sample = (name: keyof typeof ANSWERS, text: string) =>
  sampleOf(z.toJSONSchema(ANSWERS[name]) as Schema, text) as Record<string, unknown>;

/** What control answers when every text in its tables, and in the log of the job, is `text`. */
const answersOf = (text: string): Record<string, (request: Record<string, unknown>) => object> => {
  const { state: _, ...run } = sample('status', text);
  const status = { ...run, state: 'failed', runId: 'a-261121120000' };
  const step = (n: number) =>
    `slipway ${JSON.stringify({ event: 'step', step: n, loss: n, tokensPerSecondPerGpu: 8 })}`;
  const gpus = { [text]: { utilizationPercent: 5, memoryGiB: 1, totalGiB: 2 } };
  const messages = [step(1), step(2), `slipway ${JSON.stringify({ event: 'gpus', hosts: gpus })}`, text];
  const line = sample('logLine', text);
  return {
    status: () => status,
    list: () => ({ runs: [status] }),
    logs: () => ({ events: messages.map((message, i) => ({ ...line, id: String(i), message })) }),
    events: () => ({ events: [{ ...sample('event', text), cursor: 'c' }], next: null }),
    note: ({ text: note }) => ({ runId: 'a-261121120000', note }),
    stop: () => ({ runId: 'a-261121120000', desiredState: 'stop', state: 'failed', changed: true }),
    resume: () => ({ runId: 'a-261121120000', desiredState: 'run', state: 'queued', changed: true }),
    delete: () => ({
      runId: text,
      places: [{ uri: text, objects: 0, bytes: 0 }],
      isWhole: true,
      usdPerMonth: 0,
      kept: [text],
    }),
    release: () => ({ runId: text, trainingJobName: text, released: false, warmPoolStatus: text, reusedBy: text }),
  };
};

const lambda = mockClient(LambdaClient);
const denied = Object.assign(new Error(HOSTILE_TEXT), { name: 'AccessDeniedException' });
mockClient(S3Client).onAnyCommand().rejects(denied);
mockClient(SageMakerClient).onAnyCommand().rejects(denied);
const { environment, folder } = labEnvironment();

function answering(text: string, refuses = false): void {
  lambda.reset();
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    const request = JSON.parse(Buffer.from(Payload).toString());
    const issues = [{ rule: text, level: 'error', path: text, message: text }];
    const answer = refuses ? { ok: false, issues } : { ok: true, ...answersOf(text)[request.action]?.(request) };
    return { Payload: Buffer.from(JSON.stringify(answer)) as never };
  });
}

const RUN = 'a-261121120000';
/** What prints what control answers, as it is typed: verbs, and options that select what a verb prints. */
const PRINTED: readonly string[][] = [
  ['status', RUN],
  ['status', RUN, '--chart'],
  ['status', RUN, '--events'],
  ['status', RUN, '--lineage'],
  ['status', RUN, '--note', HOSTILE_TEXT],
  ['list'],
  ['list', '--active'],
  ['list', '--events'],
  ['logs', RUN],
  ['report', RUN],
  ['report', RUN, 'b-261121120000', '--diff'],
  ['stop', RUN],
  ['stop', RUN, '--release-pool'],
  ['resume', RUN],
  ['delete', RUN, '--yes'],
];
/** Those of them that print one document a line with `--json`. */
const STREAMS = /^logs|--events|--chart/;
/** Those of them that print no text of people: words of a few, times and numbers; `list --active` finds no run that is not over. */
const WITHOUT_TEXT = new Set([`stop ${RUN}`, `resume ${RUN}`, 'list --active']);
/** The others, and whose text they print. */
const OTHERS: Readonly<Record<string, string>> = {
  init: 'of who types it',
  validate: 'of the run file: its messages are one line each (test/core/config)',
  plan: 'of the run file',
  launch: 'of the run file, and what status prints',
  fetch: 'of the hub, whose texts are bounded (test/containers/test_fetch.py)',
  finetune: 'of the rows and the hub, as validate --data prints them',
  shell: 'of the session, whose terminal it is',
  publish: 'what report prints',
  preflight: 'of the account, the environment file and the registry',
  quota: 'of the account',
  drift: 'of the account',
  'deployer-policy': 'of the environment file',
  verify: 'of the account',
  sandbox: 'of the sandbox',
  import: 'of the job that is named',
  'tools schema': 'of the package',
  'tools mcp': 'what the other verbs print',
  'tools completion': 'of the package',
  team: 'numbers, and in JSON what list prints',
};

const ownColours = (text: string) => (pc.isColorSupported ? stripVTControlCharacters(text) : text);
const hidden = (text: string) => hiddenIn(ownColours(text).replaceAll('\n', ''));
const run = (words: readonly string[], ...more: string[]) => runCli(...words, '--environment', environment, ...more);
const lines = (text: string) => text.split('\n').length;

test('every verb is tried here, or prints no text of a job or a colleague', () => {
  const known = new Set([...PRINTED.map(([verb]) => verb), ...Object.keys(OTHERS)]);
  expect([...known].sort()).toEqual(VERBS.map(({ name }) => name).sort());
});

describe.each(PRINTED.map((words) => ({ words, name: words.join(' ') })))('$name', ({ words, name }) => {
  beforeEach(() => answering(HOSTILE_TEXT));

  test('prints visible text, in as many lines as for harmless text', async () => {
    const { stdout, stderr, code } = await run(words);
    expect(`${stdout}${stderr}`).not.toBe('');
    expect(hidden(`${stdout}\n${stderr}`)).toEqual([]);
    expect(`${stdout}\n${stderr}`).not.toMatch(/^fake-run/m);
    answering('harmless');
    const harmless = await run(words);
    expect([code, lines(stdout), lines(stderr)]).toEqual([
      harmless.code,
      lines(harmless.stdout),
      lines(harmless.stderr),
    ]);
  });

  test('prints JSON of visible characters, with the text as it was written', async () => {
    const { stdout } = await run(words, '--json');
    expect(hidden(stdout)).toEqual([]);
    const documents = STREAMS.test(name) ? stdout.split('\n') : [stdout];
    const values = documents.map((document) => JSON.stringify(JSON.parse(document)));
    if (!WITHOUT_TEXT.has(name)) expect(values.join()).toContain(JSON.stringify(HOSTILE_TEXT).slice(1, -1));
  });

  test('prints a refusal as visible text', async () => {
    answering(HOSTILE_TEXT, true);
    const { stdout, stderr } = await run(words);
    expect(hidden(`${stdout}\n${stderr}`)).toEqual([]);
  });
});

test('a megabyte in each field is cut', async () => {
  answering('x'.repeat(1_000_000));
  for (const words of [['status', RUN], ['list'], ['report', RUN], ['status', RUN, '--lineage']]) {
    const { stdout } = await run(words);
    expect(stdout.length, words.join(' ')).toBeLessThan(60_000);
  }
});

test('the page of a report has no hidden character and no line of its own from any text', async () => {
  answering(HOSTILE_TEXT);
  const file = path.join(folder, 'page.html');
  await run(['report', RUN], '--html', file);
  const page = readFileSync(file, 'utf8');
  expect(page).toContain('job-');
  expect(hiddenIn(page.replace(/[\n\t]/g, ''))).toEqual([]);
});

test('an imported run file keeps the values of the job, written in visible characters', async () => {
  const request = path.join(folder, 'request.json');
  const job = {
    TrainingJobName: 'a',
    AlgorithmSpecification: {
      TrainingImage: '111122223333.dkr.ecr.us-west-2.amazonaws.com/a:1',
      TrainingInputMode: 'File',
    },
    ResourceConfig: { InstanceType: 'ml.m5.xlarge', InstanceCount: 1, VolumeSizeInGB: 30 },
    Environment: { EMOJI: '👩\u200d🚀', HOSTILE: HOSTILE_TEXT.replace('\ud800', '') },
    StoppingCondition: { MaxRuntimeInSeconds: 60 },
  };
  writeFileSync(request, JSON.stringify(job));
  const { stdout } = await runCli('import', request);
  expect(hidden(stdout)).toEqual([]);
  expect(parse(stdout).environmentVariables).toEqual(job.Environment);
});

test('our own colours reach a terminal that shows them, and no other sequence does', () => {
  const printed: string[] = [];
  const terminal = plainTerminal({ out: (text) => printed.push(text), err: (text) => printed.push(text) });
  const colours = pc.createColors(true);
  terminal.out(`${colours.red('a')}${colours.bold(colours.dim('b'))}\u001b[2J\u001b[38;5;1mc\u001b]0;t\u0007\n\td`);
  expect(printed).toEqual([
    pc.isColorSupported ? `${colours.red('a')}${colours.bold(colours.dim('b'))}c\n\td` : 'abc\n\td',
  ]);
});
