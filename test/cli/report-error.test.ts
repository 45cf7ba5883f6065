// How each kind of error ends: its exit code, and with --json exactly one document.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { SSMClient } from '@aws-sdk/client-ssm';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { EXIT, Interrupted, Refusal, ServiceError, UsageError } from '../../lib/cli/exit';
import { main } from '../../lib/cli/main';
import { reportError } from '../../lib/cli/report-error';
import { ANSWERS } from '../../lib/core/contracts/answers';
import { mockClient } from '../support/mocked-clients';
import { CLI, runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const reported = (error: unknown, asJson: boolean, hasPrinted = false) => {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) };
  const code = reportError(error, { asJson, hasPrinted, file: 'run.yaml' }, terminal);
  return { code, out, err: err.join('\n') };
};

const errorOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};
const rejectionOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
const sdkError = (name: string, more: object) => Object.assign(new Error('Rate exceeded'), { name, ...more });
const issues = [{ rule: 'r', level: 'error' as const, path: 'a', message: 'a: must b, got c; d' }];

afterEach(() => vi.unstubAllEnvs());

test('a full disk behind standard output is named', () => {
  const full = sdkError('Error', { code: 'ENOSPC', syscall: 'write', errno: -28 });
  expect(reported(full, false).err).toMatch(/^slipway: standard output: must be a file that can be read and written/);
});

describe('the exit code of each kind of error', () => {
  test.each<[string, unknown, number, string]>([
    ['a refusal', new Refusal(issues), EXIT.refused, 'r'],
    ['wrong usage', new UsageError('--at: must be a time'), EXIT.usage, 'command/usage'],
    ['a file that does not exist', errorOf(() => readFileSync('/no/such/file')), EXIT.usage, 'command/file'],
    ['a folder in the place of a file', errorOf(() => readFileSync('/')), EXIT.usage, 'command/file'],
    ['a full disk', sdkError('Error', { code: 'ENOSPC', syscall: 'write', errno: -28 }), EXIT.usage, 'command/file'],
    ['a failed call', new ServiceError('reading x: failed'), EXIT.service, 'command/service'],
    ['a command that was interrupted', new Interrupted('r: stopped'), EXIT.interrupted, 'command/interrupted'],
    [
      'an error of an SDK client',
      sdkError('ThrottlingException', { $fault: 'client', $metadata: {} }),
      EXIT.service,
      'command/service',
    ],
    ['a waiter that ended', sdkError('TimeoutError', {}), EXIT.service, 'command/service'],
    ['missing credentials', sdkError('CredentialsProviderError', {}), EXIT.service, 'command/service'],
    [
      'a download that broke off',
      sdkError('Error', { code: 'ECONNRESET', syscall: 'read' }),
      EXIT.service,
      'command/service',
    ],
    [
      'a mistake in the program',
      errorOf(() => (undefined as unknown as Date).getTime()),
      EXIT.internal,
      'command/internal',
    ],
    ['any other error', new Error('no transition'), EXIT.internal, 'command/internal'],
    ['text', 'text', EXIT.internal, 'command/internal'],
    ['nothing', undefined, EXIT.internal, 'command/internal'],
    ['null', null, EXIT.internal, 'command/internal'],
  ])('%s', (_, error, code, rule) => {
    const asText = reported(error, false);
    expect([asText.code, asText.out]).toEqual([code, []]);
    expect(asText.err).not.toBe('');
    const asJson = reported(error, true);
    expect([asJson.code, asJson.err, asJson.out]).toEqual([code, '', [expect.any(String)]]);
    const document: unknown = JSON.parse(asJson.out[0] ?? '');
    expect(ANSWERS.refusal.parse(document)).toEqual(document);
    expect(document).toMatchObject({ ok: false, issues: [{ rule, level: 'error' }] });
  });

  test('a network that is not there is an error of the service, as SDK clients report it', async () => {
    const s3 = new S3Client({
      region: 'us-west-2',
      endpoint: 'http://127.0.0.1:9',
      maxAttempts: 1,
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    });
    const error = await rejectionOf(s3.send(new HeadBucketCommand({ Bucket: 'b' })));
    expect(reported(error, false)).toMatchObject({
      code: EXIT.service,
      err: expect.stringContaining('must reach the service, got ECONNREFUSED'),
    });
  });

  test('an internal error apologises, says how to report it, and has its stack only with SLIPWAY_DEBUG=1', () => {
    const { err } = reported(new TypeError('x is not a function'), false);
    expect(err).toBe(
      'slipway: internal error, got TypeError: x is not a function; sorry, this is a bug of Slipway: please report it with the output of this command under SLIPWAY_DEBUG=1',
    );
    vi.stubEnv('SLIPWAY_DEBUG', '1');
    expect(reported(new TypeError('x is not a function'), false).err).toMatch(/\n\s+at /);
  });

  test('stdout keeps the document that a verb printed before it failed', () => {
    expect(reported(new ServiceError('waiting for r: failed'), true, true)).toEqual({
      code: EXIT.service,
      out: [],
      err: 'slipway: waiting for r: failed',
    });
  });
});

describe('--json', () => {
  test.each([
    ['no environment', ['status', 'x', '--json'], EXIT.usage, /^--environment: must be given/],
    ['an unknown verb', ['statsu', '--json'], EXIT.usage, /^statsu: must be a verb of slipway/],
    ['no verb', ['--json'], EXIT.usage, /^--json: must be an option of slipway/],
    ['an unknown option', ['status', 'x', '--nope', '--json'], EXIT.usage, /^--nope: must be an option/],
    ['a file that does not exist', ['validate', '/no/such/file', '--json'], EXIT.usage, /must be a readable file/],
  ])('fails: %s is one document on stdout', async (_, args, code, message) => {
    vi.stubEnv('SLIPWAY_ENVIRONMENT', '');
    const result = await runCli(...args);
    expect(result.code).toBe(code);
    expect(JSON.parse(result.stdout)).toEqual({
      ok: false,
      issues: [{ rule: 'command/usage', level: 'error', path: '', message: expect.stringMatching(message) }],
    });
  });

  test('a call that is denied is one document on stdout, exit 3', async () => {
    mockClient(SSMClient)
      .onAnyCommand()
      .rejects(sdkError('AccessDeniedException', { $metadata: {} }));
    const { code, stdout } = await runCli('status', 'x', '--environment', 'lab/nlp', '--region', 'us-west-2', '--json');
    expect([code, JSON.parse(stdout).issues[0].rule]).toEqual([EXIT.service, 'command/service']);
  });
});

describe('no verb ends with an internal error', () => {
  // Verbs that run until they are ended or start processes.
  const OTHERS = ['mcp', 'sandbox', 'verify', 'help'];
  const VERBS = CLI.commands.filter((command) => !OTHERS.includes(command.name()));
  const ENDLESS = ['--environment', '--region', '--json', '--wait', '--follow', '--watch'];
  const FILES = ['run.yaml', 'lab.yaml', 'environment.json', 'broken.yaml', 'list.json'];
  const word = fc.oneof(
    fc.constantFrom(
      ...FILES,
      '',
      '.',
      '{}',
      's3://',
      's3://b/k',
      'arn:aws:',
      '/dev/null',
      'x/y',
      'latest:x',
      '__proto__',
      '1e999',
      '\0',
    ),
    fc.string({ unit: 'binary' }).map((text) => text.replaceAll('/', '')),
  );
  const call = fc.constantFrom(...VERBS).chain((verb) => {
    const options = verb.options.filter(({ long = '' }) => !ENDLESS.includes(long));
    const written = ({ long = '', required, optional }: (typeof options)[number]) =>
      required || optional ? word.map((value) => `${long}=${value}`) : fc.constant(long);
    const given =
      options.length === 0 ? fc.constant([]) : fc.array(fc.constantFrom(...options).chain(written), { maxLength: 2 });
    return fc.record({
      verb: fc.constant(verb.name()),
      options: given,
      places: fc.tuple(...verb.registeredArguments.map(() => word)),
    });
  });
  const home = process.cwd();
  let folder = '';

  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'slipway-errors-'));
    const texts = [
      readFileSync('runs/builtin/starter.yaml'),
      'name: lab\nregions: { us-west-2: {} }\nteams: { nlp: {} }\n',
      JSON.stringify(DESCRIPTOR),
      'a: [',
      '[]',
    ];
    for (const [i, name] of FILES.entries()) writeFileSync(path.join(folder, name), texts[i] ?? '');
    process.chdir(folder);
    // The class from which all clients of the SDK inherit.
    const throttled = async () => Promise.reject(sdkError('ThrottlingException', { $fault: 'client', $metadata: {} }));
    vi.spyOn(Object.getPrototypeOf(SSMClient.prototype) as SSMClient, 'send').mockImplementation(throttled);
  });
  afterAll(() => {
    process.chdir(home);
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });

  test('whatever it is given, and with --json an error is one document', async () => {
    await fc.assert(
      fc.asyncProperty(
        call,
        fc.constantFrom('lab/nlp', 'environment.json'),
        async ({ verb, places, options }, environment) => {
          const out: string[] = [];
          const err: string[] = [];
          const words = [
            verb,
            // Packing this tree takes as long as everything else.
            ...(verb === 'init' ? ['--package=1.2.3', '--no-lockfile'] : []),
            ...options,
            '--json',
            `--environment=${environment}`,
            '--region=us-west-2',
            '--',
            ...places,
          ];
          const code = await main(['node', 'slipway', ...words], {
            out: (text) => out.push(text),
            err: (text) => err.push(text),
          });
          expect([code, err.join('\n'), out.join('\n')]).not.toEqual([
            EXIT.internal,
            expect.anything(),
            expect.anything(),
          ]);
          if (code !== EXIT.done) JSON.parse(out.join('\n'));
        },
      ),
    );
  });
});
