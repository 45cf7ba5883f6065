import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLI, runCli, VERBS } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

let folder: string;
const at = (name: string) => path.join(folder, name);
const write = (name: string, text: string) => {
  writeFileSync(at(name), text);
  return at(name);
};

const STARTER = 'runs/builtin/starter.yaml';
const RUN =
  'name: a\ncode: { source: builtin }\nmodel: { preset: llama3-8b }\ntraining: { sequenceLength: 128, globalBatchSize: 16, steps: 2 }\ncompute: { instanceType: ml.p5.48xlarge, instanceCount: 2 }\ndata: [{ channel: train, s3: "s3://{dataBucket}/t/" }]\n';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-cli-'));
  write('run.yaml', RUN);
  write('environment.json', JSON.stringify(DESCRIPTOR));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the verbs and their options are what scripts rely on', () => {
  const options = Object.fromEntries(
    VERBS.map(({ name, command }) => [name, command.options.map((o) => o.long).join(' ')]),
  );
  const common = '--environment --region --set --json';
  expect(options).toEqual({
    init: `${common} --team --instance-type --ci --pipeline --run --package --no-lockfile --yes`,
    validate: `${common} --data --tokenizer --html --python`,
    plan: `${common} --search --search-libraries --html --by`,
    report: `${common} --html --diff`,
    publish: `${common} --to --registry --inference-image --overwrite`,
    launch: `${common} --dry-run --out --matrix --stop-when --smoke --fetch --python --run-id --at --after --preemptible --note --client-request-id --yes --wait --no-logs`,
    import: common,
    'tools schema': '--json',
    'tools completion': '',
    'tools mcp': '--allow',
    preflight: `${common} --regions --lock --base`,
    quota: `${common} --request --yes`,
    status: `${common} --wait --chart --watch --events --follow --since --lineage --note`,
    list: `${common} --state --tag --search --active --events --follow --since`,
    drift: common,
    team: `${common} --team --month --html --link --costs`,
    verify: `${common} --level --yes --resume --cpu-type --efa-type --image`,
    sandbox: '--state-dir --python --auth --region --unset --raise-quotas --json',
    delete: `${common} --yes`,
    fetch: `${common} --to --include --local --wait --yes --python`,
    finetune: `${common} --model --data --method --lora --qlora --epochs --instance-type --out --dry-run --yes --python`,
    'deployer-policy': common,
    logs: `${common} --follow --node --errors --since`,
    shell: `${common} --node`,
    stop: `${common} --release-pool`,
    resume: common,
  });
});

test('--help shows at most 24 verbs, in four groups', async () => {
  const { stdout } = await runCli('--help');
  expect(CLI.commands.length).toBeLessThanOrEqual(24);
  expect(stdout.match(/^\w+:$/gm)).toEqual(['Options:', 'Run:', 'Environment:', 'Weights:', 'Tools:']);
});

test.each([['preflight', '--lock'], ['deployer-policy']])(
  'fails: %s %s of a run file says so once',
  async (verb, ...more) => {
    const { code, stderr } = await runCli(verb, at('run.yaml'), ...more);
    expect([code, stderr.trim()]).toEqual([
      2,
      `slipway: ${at('run.yaml')}: must be an environment file, got a run file; name one such as environments/research.yaml`,
    ]);
  },
);

test('fails: launch of an environment file says so once', async () => {
  const file = write('lab.yaml', 'name: lab\nregions: { us-west-2: {} }\nteams: { nlp: {} }\n');
  const { code, stderr } = await runCli('launch', file, '--dry-run', '--environment', at('environment.json'));
  expect([code, stderr.trim()]).toEqual([
    2,
    `slipway: ${file}: must be a run file, got an environment file; name one such as runs/builtin/starter.yaml`,
  ]);
});

test('fails: quota says what is wrong with a file before it asks for a region', async () => {
  const region = { ...process.env };
  delete process.env.AWS_REGION;
  delete process.env.AWS_DEFAULT_REGION;
  process.env.AWS_CONFIG_FILE = at('no-config');
  try {
    expect((await runCli('quota', write('broken.yaml', 'name: [\n'))).code).toBe(1);
    expect((await runCli('quota', at('run.yaml'))).stderr).toContain('--region: must be given');
  } finally {
    delete process.env.AWS_CONFIG_FILE;
    Object.assign(process.env, region);
  }
});

describe('validate', () => {
  test('says that rules about an environment are left out when it has only a name', async () => {
    const named = await runCli('validate', at('run.yaml'), '--environment', 'research');
    expect(named.stderr).toContain('rules about the environment are left out');
    expect((await runCli('validate', at('run.yaml'))).stderr).not.toContain('left out');
  });

  test('a valid file is exit 0 and says so on stderr', async () => {
    const { code, stdout, stderr } = await runCli('validate', at('run.yaml'));
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toContain('valid');
  });

  test('fails: every mistake with its line and column, exit 1', async () => {
    const file = write('bad.yaml', RUN.replace('ml.p5.48xlarge', 'ml.p5.48xlarg').replace('steps: 2', 'steps: 0'));
    const { code, stderr } = await runCli('validate', file);
    expect(code).toBe(1);
    expect(stderr).toContain(`${file}:4:62: `);
    expect(stderr).toContain('training.steps: must be at least 1, got 0');
    expect(stderr).toContain('compute.instanceType: must be a SageMaker training instance type');
    expect(stderr).not.toContain(
      'training: must set the length of training: totalTokens or steps; add totalTokens or steps',
    );
  });

  test('an environment file is told by its content', async () => {
    const file = write('env.yaml', 'name: research\nregions: { us-west-2: {} }\nteams: { TOO-BIG: {} }\n');
    const { code, stdout } = await runCli('validate', file, '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout).issues[0].path).toContain('teams');
  });

  test('--set is applied before validation', async () => {
    expect((await runCli('validate', at('run.yaml'), '--set', 'compute.instanceCount=0')).code).toBe(1);
  });
});

describe('wrong usage is exit 2, one line, no stack trace', () => {
  test.each([
    [['validate', '/no/such/file.yaml'], /must be a readable file, got no such file/],
    [['frobnicate'], /^slipway: frobnicate: must be a verb of slipway, got an unknown one; see slipway --help/],
    [['statsu', 'x'], /^slipway: statsu: must be a verb of slipway, got an unknown one; did you mean status\?$/],
    [['validate'], /^slipway: validate: must be given <file>, got nothing; see slipway validate --help/],
    [
      ['validate', 'x', '--nope'],
      /^slipway: --nope: must be an option of slipway validate, got an unknown one; see slipway/,
    ],
    [
      ['validate', 'x', '--jsom'],
      /^slipway: --jsom: must be an option of slipway validate, .*; did you mean --json\?$/,
    ],
    [
      ['validate', 'x', '--set'],
      /^slipway: --set <path=value>: must have a value, got nothing; see slipway validate --help/,
    ],
    [['validate', 'x', 'y'], /^slipway: validate: must have at most 1 argument, got more; see slipway validate --/],
    [['validate', __dirname], /must be a readable file, got a folder; check the path$/],
    [
      ['plan', 'runs/builtin/llama3-8b-fsdp.yaml', '--search-libraries', 'fsdp,nonsense'],
      /^slipway: --search-libraries: must be of .*, got nonsense;/,
    ],
    [
      ['plan', 'runs/builtin/llama3-8b-fsdp.yaml', '--search-libraries', ''],
      /^slipway: --search-libraries: must be of .*, got nothing;/,
    ],
    [
      ['plan', 'runs/builtin/llama3-8b-fsdp.yaml', '--by', '2099-01-01', '--html', 'x.html'],
      /^slipway: --html: must not be used with --by, got both; leave one/,
    ],
    [
      ['plan', 'environments/research.yaml', '--region', 'eu-west-9'],
      /--region: must be a region of .*, got eu-west-9; use us-west-2/,
    ],
    [['plan', 'environments/research.yaml', '--search'], /--search: must be used with a run file, got /],
    ...(['--smoke', '--wait', '--matrix'] as const).map((option): [string[], RegExp] => [
      ['launch', STARTER, '--dry-run', option, ...(option === '--matrix' ? ['training.seed=1,2'] : [])],
      new RegExp(`^slipway: ${option}: must not be used with --dry-run, got both; leave one of them out$`),
    ]),
    [['validate', '/dev/zero'], /must be a readable file, got a device; check the path$/],
    [['validate', ''], /'': must be a readable file, got no such file; check the path$/],
    [
      ['validate', 'docs/images/report.png'],
      /report\.png: must be text in UTF-8, got other bytes; save it in that encoding$/,
    ],
    [
      ['init', '/dev/null/x', '--yes'],
      /^slipway: init: must be a folder that can be written, got \/dev\/null\/x \(ENOTDIR\)/,
    ],
    [['tools', 'schema', 'job'], /^slipway: tools schema: must be run, environment or answers, got job/],
    [
      ['tools', 'dance'],
      /^slipway: dance: must be a verb of slipway tools, got an unknown one; see slipway tools --help/,
    ],
    [['tools', 'mcp', '--nope'], /^slipway: --nope: must be an option of slipway tools mcp, got an unknown one/],
    [['status', 'x', '--chart', '--events'], /^slipway: --events: must not be used with --chart, got both; leave one/],
    [['status', 'x', '--watch'], /^slipway: --watch: must be used with --chart, got --watch alone; add --chart$/],
    [['status', 'x', '--note', 'y', '--follow'], /^slipway: --follow: must not be used with --note, got both; leave/],
    [['list', '--events', '--state', 'running'], /^slipway: --state: must not be used with --events, got both; leave/],
    [['list', '--active', '--since', '1d'], /^slipway: --since: must not be used with --active, got both; leave/],
    [['preflight', '--lock'], /^slipway: preflight: must be given <file> with --lock, got nothing; see slipway pref/],
    [['preflight', 'x', '--base', 'y'], /^slipway: --base: must be used with --lock, got --base alone; add --lock$/],
    [['report', 'x', 'y', '--diff', '--html', 'z'], /^slipway: --html: must not be used with --diff, got both; leave/],
    [['team', 'x', '--costs', '--html', 'z'], /^slipway: --html: must not be used with --costs, got both; leave one/],
    [['sandbox', 'dance'], /must be start, env, deploy, status or stop, got dance/],
    [['logs', 'x', '--since', 'soon'], /--since: must be a time or a span/],
    [['launch', 'x', '--at', 'soon'], /^slipway: --at: must be a time of the next 90 days.*got soon/],
    [['launch', 'x', '--client-request-id', 'a b'], /--client-request-id: must be 1-64 letters/],
    [
      ['launch', 'x', '--out', 'folder'],
      /^slipway: --out: must be used with --dry-run, got --out alone; add --dry-run/,
    ],
    [['sandbox', 'start', '--python', '/no/python'], /--python: must be the path of an interpreter, got \/no\/python;/],
    [['launch', 'x', '--stop-when', 'loss > 3'], /--stop-when: must be used with --matrix, got --stop-when alone/],
    [['launch', 'x', '--no-logs'], /^slipway: --no-logs: must be used with --wait, got --no-logs alone; add --wait$/],
    [['launch', 'x', '--smoke', '--fetch'], /^slipway: --fetch: must not be used with --smoke, got both; leave one/],
    [['launch', 'x', '--smoke', '--at', '6h'], /^slipway: --at: must not be used with --smoke, got both; leave one/],
    [
      ['launch', 'x', '--matrix', 'a=1', '--run-id', 'r'],
      /^slipway: --run-id: must not be used with --matrix, got both/,
    ],
    [
      ['validate', 'x', '--region', 'mars-1'],
      /^slipway: --region: must be a region such as us-west-2, got mars-1; correct/,
    ],
    [['plan', 'x', '--region='], /^slipway: --region: must be a region such as us-west-2, got nothing;/],
    [['resume', 'x', '--set', 'training.steps=3'], /--set checkpoints.startFrom=x/],
  ])('fails: %j', async (args, message) => {
    const { code, stdout, stderr } = await runCli(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});

describe('launch --dry-run', () => {
  const launch = (...more: string[]) =>
    runCli('launch', at('run.yaml'), '--environment', at('environment.json'), '--run-id', 'r1', '--dry-run', ...more);

  test('prints the request and nothing else on stdout', async () => {
    const { code, stdout } = await launch();
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      TrainingJobName: 'research-r1-a001',
      AlgorithmSpecification: { ContainerEntrypoint: ['/bin/bash'] },
    });
    expect((await launch('--json')).stdout).toBe(stdout);
  });

  test('--out writes every object of the channels', async () => {
    await launch('--out', at('out'));
    const job = JSON.parse(readFileSync(at('out/s3/artifact-bucket/runs/nlp/r1/job/1/job.json'), 'utf8'));
    expect(job).toMatchObject({
      schema: 1,
      runId: 'r1',
      attempt: 1,
      team: 'nlp',
      launcher: 'torchrun',
      entryPoint: 'builtin',
      processesPerHost: 8,
    });
    expect(readFileSync(at('out/s3/artifact-bucket/drivers/0f3a9c/launch.sh'), 'utf8')).toContain('bash');
  });

  test('fails: a refusal prints {ok: false, issues} with --json, exit 1', async () => {
    const { code, stdout } = await launch('--json', '--set', 'compute.instanceType=ml.nope');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, issues: [{ rule: 'compute/instance-type' }] });
  });

  test('fails: a descriptor that is none', async () => {
    const { code, stderr } = await runCli(
      'launch',
      at('run.yaml'),
      '--environment',
      write('broken.json', '{"schemaVersion":1}'),
      '--dry-run',
    );
    expect(code).toBe(1);
    expect(stderr).toContain('executionRoleArn');
  });
});

test('the same code gives the same archive, whatever its dates', async () => {
  const { archiveFolder } = await import('../../lib/shared/archive/archive.js');
  const source = path.join(__dirname, '../fixtures/conformance/sdk-v2/src');
  const [first, second] = [await archiveFolder(source), await archiveFolder(source)];
  expect(first.sha256).toBe(second.sha256);
  expect(first.bytes.length).toBeGreaterThan(100);
});
