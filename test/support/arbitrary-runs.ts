import fc from 'fast-check';

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}[a-z0-9]$/);
const option = <T>(arb: fc.Arbitrary<T>) => fc.option(arb, { nil: undefined });
const scalar = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,20}$/),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const variables = fc.dictionary(
  fc.stringMatching(/^[A-Z][A-Z0-9_]{0,20}$/),
  fc.stringMatching(/^[A-Za-z0-9_ .:/-]{0,40}$/),
  { maxKeys: 5 },
);

const distributions = fc.oneof(
  fc.record({ library: fc.constantFrom('fsdp', 'ddp', 'custom'), launcher: fc.constant('torchrun') }),
  fc.record({
    library: fc.constant('custom'),
    launcher: fc.constantFrom('mpi', 'script'),
    contract: fc.constantFrom('entrypoint', 'toolkit'),
  }),
  fc.record({
    library: fc.constant('deepspeed'),
    parameters: fc.record({ zero_optimization: fc.record({ stage: fc.integer({ min: 0, max: 3 }) }) }),
  }),
  fc.record({
    library: fc.constant('megatron'),
    parameters: fc.record({ 'tensor-model-parallel-size': fc.constantFrom(1, 2, 4, 8) }),
  }),
);

const channels = fc.uniqueArray(
  fc.record({
    channel: fc.constantFrom('train', 'validation', 'extra', 'more'),
    s3: fc.constantFrom('s3://{dataBucket}/a/', 's3://{dataBucket}/{team}/{runId}/'),
    inputMode: fc.constantFrom('File', 'FastFile', 'Pipe'),
    s3DataDistribution: fc.constantFrom('FullyReplicated', 'ShardedByS3Key'),
  }),
  { selector: (c) => c.channel, maxLength: 4 },
);

const compute = fc
  .record({
    instanceType: fc.constantFrom('ml.p4d.24xlarge', 'ml.p5.48xlarge', 'ml.g5.48xlarge', 'ml.p5en.48xlarge'),
    instanceCount: fc.integer({ min: 1, max: 64 }),
    capacity: fc.constantFrom('on-demand', 'spot'),
    keepAliveSeconds: fc.integer({ min: 0, max: 3600 }),
    infraCheck: fc.boolean(),
  })
  .map((c) => (c.capacity === 'spot' ? { ...c, keepAliveSeconds: 0 } : c));

/** Run files that every rule accepts. */
export const validRunFiles = fc.record({
  name,
  kind: option(fc.constant('training')),
  priority: option(fc.integer({ min: -5, max: 5 })),
  tags: option(
    fc.dictionary(fc.stringMatching(/^[a-z]{1,10}$/), fc.stringMatching(/^[a-z0-9 ]{0,20}$/), { maxKeys: 5 }),
  ),
  code: fc.record({
    source: fc.constant('./src'),
    arguments: fc.dictionary(fc.stringMatching(/^a[a-z-]{0,10}$/), scalar, { maxKeys: 5 }),
  }),
  compute,
  distribution: option(distributions),
  data: channels,
  checkpoints: fc.record({ mode: fc.constantFrom('managed', 'direct'), keep: fc.integer({ min: 2, max: 9 }) }),
  limits: option(
    fc.record({
      maxRuntimeSeconds: fc.integer({ min: 1, max: 2_419_200 }),
      retryInternalErrors: fc.integer({ min: 1, max: 30 }),
    }),
  ),
  hyperparameters: option(
    fc.dictionary(fc.stringMatching(/^h[a-z_]{0,10}$/), fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })), {
      maxKeys: 5,
    }),
  ),
  environmentVariables: option(variables),
  observability: option(
    fc.record({ tensorBoard: fc.boolean(), metrics: fc.constantFrom([], [{ name: 'loss', regex: 'loss=([0-9.]+)' }]) }),
  ),
});

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Every path of a value, parents before children. */
function pathsOf(value: Json, at: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [at];
  const entries: [string | number, Json][] = Array.isArray(value) ? value.map((v, i) => [i, v]) : Object.entries(value);
  return [at, ...entries.flatMap(([key, item]) => pathsOf(item, [...at, key]))];
}

function replaceAt(value: Json, at: readonly (string | number)[], put: Json | undefined): Json | undefined {
  const [key, ...rest] = at;
  if (key === undefined) return put;
  if (Array.isArray(value)) return value.map((v, i) => (i === key ? (replaceAt(v, rest, put) ?? null) : v));
  const object = { ...(value as { [key: string]: Json }) };
  const next = replaceAt(object[key] ?? null, rest, put);
  if (next === undefined) delete object[key];
  else object[key] = next;
  return object;
}

const junk = fc.oneof(
  fc.constantFrom<Json | undefined>(
    undefined,
    null,
    '',
    -1,
    0,
    1.5,
    1e300,
    [],
    {},
    true,
    '{',
    's3://',
    'ml.p9.48xlarge',
  ),
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
);

/** Valid run files with one to three values replaced by anything. */
export const mutatedRunFiles = fc
  .tuple(validRunFiles, fc.array(fc.tuple(fc.nat(), junk), { minLength: 1, maxLength: 3 }))
  .map(([file, changes]) =>
    changes.reduce<Json>(
      (value, [index, put]) => {
        const paths = pathsOf(value);
        return replaceAt(value, paths[index % paths.length] ?? [], put) ?? {};
      },
      JSON.parse(JSON.stringify(file)) as Json,
    ),
  );
