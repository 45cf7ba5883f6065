import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { memoryIssues } from '../../core/admission';
import { zoneIdPrefix } from '../../core/catalog/subnet-plan';
import { hasErrors } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { checkRun } from '../../core/rules';
import { makeFolder } from '../../shared/local/make-folder';
import { ownPackage, packageRoot } from '../../shared/local/own-package';
import { UsageError } from '../exit';
import { json } from '../terminal';
import type { Answers, CiSystem } from './init';

export interface NewFile {
  to: string;
  text: string;
}

/** Name of the environment of a new project; none of the samples has it. */
const ENVIRONMENT = 'training';
const ENVIRONMENT_FILE = `environments/${ENVIRONMENT}.yaml`;
/** Template files; `{{words}}` are filled in. */
const COPIED = ['tsconfig.json', 'test/environment.test.ts', 'README.md'];
const PIPELINES: Readonly<Record<CiSystem, [from: string, to: string]>> = {
  github: ['ci/github.yaml', '.github/workflows/slipway.yaml'],
  gitlab: ['ci/gitlab.yaml', '.gitlab-ci.yml'],
};
/** The file that names what the project depends on. */
export const PACKAGE_FILE = 'package.json';
const FIRST_RUN = 'runs/first-run.yaml';
/** The runs of the first hour that need no GPU. */
const FIRST_RUNS = ['smoke/run.yaml', 'smoke/hello.py', 'text/run.yaml', 'text/write_text.py', 'tokenize.yaml'];
/** Models for the first run; the largest one that fits is used. */
const FIRST_MODELS = ['llama3-8b', 'llama3.2-3b', 'llama3.2-1b', 'gpt-tiny'];

/** All files of a new CDK app but its package.json. */
export function projectFiles(name: string, answers: Answers): NewFile[] {
  const words = { name, ...answers };
  const copied: (readonly [from: string, to: string])[] = [
    ...COPIED.map((name) => [name, name] as const),
    // npm does not pack files named .gitignore.
    ['gitignore', '.gitignore'],
    [answers.pipeline ? 'bin/pipeline.ts' : 'bin/app.ts', 'bin/app.ts'],
    ...(answers.ci ? [PIPELINES[answers.ci]] : []),
  ];
  return [
    { to: 'cdk.json', text: `${json(cdkJson())}\n` },
    ...copied.map(([from, to]) => ({
      to,
      text: `${installed(filled(readPackaged(`templates/project/${from}`), words), answers)}${to === 'README.md' && answers.pipeline ? PIPELINE_README : ''}`,
    })),
    { to: ENVIRONMENT_FILE, text: environmentFile(answers) },
    ...runFiles(answers),
  ];
}

/** Without a lockfile, `npm ci` and the cache of setup-node fail. */
const installed = (text: string, { lockfile }: Answers): string =>
  lockfile === false ? text.replaceAll('npm ci', 'npm install').replaceAll(', cache: npm', '') : text;

/** Only the run files, in the order in which a new environment can launch them. */
export const runFiles = ({ instanceType, region }: Pick<Answers, 'instanceType' | 'region'>): NewFile[] => [
  { to: FIRST_RUN, text: firstRun(instanceType, region) },
  ...FIRST_RUNS.map((name) => ({
    to: `runs/${name}`,
    text: starter(`templates/project/runs/${name}`, `runs/${name}`),
  })),
];

const readPackaged = (file: string): string => readFileSync(path.join(packageRoot(), file), 'utf8');

/** Words that templates contain in double braces. CI files have braces of their own. */
const WORDS = /\{\{(name|region|team)\}\}/g;
type Word = 'name' | 'region' | 'team';

/** A template with its words filled in, whose imports name the package as it is called here. */
const filled = (text: string, words: Record<Word, string>): string =>
  text.replace(WORDS, (_, word: Word) => words[word]).replaceAll(/(?<=\bfrom .)slipway\b/g, ownPackage().name);

/**
 * package.json of a new CDK app, with the exact versions with which this package is tested; aws-cdk-lib and constructs are its peer
 * dependencies. vite is that of vitest: a newer one may need a package that a registry does not have.
 * @param slipway where npm gets this package from
 */
export function packageFile(name: string, slipway: string): NewFile {
  const { name: own, peerDependencies, devDependencies } = ownPackage();
  const pinned = (names: readonly string[]) => Object.fromEntries(names.map((each) => [each, devDependencies[each]]));
  const content = {
    name,
    private: true,
    scripts: { test: 'vitest run', types: 'tsc', synth: 'cdk synth', diff: 'cdk diff', deploy: 'cdk deploy --all' },
    dependencies: { ...pinned(Object.keys(peerDependencies)), [own]: slipway },
    devDependencies: pinned(['@types/node', 'aws-cdk', 'tsx', 'typescript', 'vite', 'vitest']),
  };
  return { to: PACKAGE_FILE, text: `${json(content)}\n` };
}

/** The feature flags of this package's own app, with which its templates are tested. */
function cdkJson(): object {
  const { context } = JSON.parse(readPackaged('cdk.json')) as { context: Record<string, unknown> };
  const { environment: _own, ...flags } = context;
  // A question that nobody answers, or with n, would leave a protected stack behind: cdk diff shows the changes.
  return { app: 'npx tsx bin/app.ts', requireApproval: 'never', output: 'cdk.out', context: flags };
}

/** A starter file, with the schema of the installed package on its first line. @param to its path in the project */
function starter(file: string, to: string): string {
  const up = '../'.repeat(to.split('/').length - 1);
  return readPackaged(file).replace(
    /\$schema=(?:\.\.\/)+schema\//,
    `$schema=${up}node_modules/${ownPackage().name}/schema/`,
  );
}

/** Additional part of the README of a project with a pipeline. */
const PIPELINE_README = `
## The pipeline

\`bin/app.ts\` is an app of CDK Pipelines. Write your accounts and zones into \`environments/training.yaml\`, repository and connection into \`bin/app.ts\`, then once:

- in every account: \`npx cdk bootstrap --trust ACCOUNT_OF_THE_PIPELINE --cloudformation-execution-policies POLICY\` (\`npx slipway deployer-policy environments/training.yaml\` prints a policy)
- in the account of the pipeline (the first of \`accounts\`): \`npx cdk deploy SlipwayPipeline\` in place of \`npx cdk deploy --all\`

From then on a push deploys: first the pipeline itself, then every stage; the last one waits for an approval. The build of the pipeline looks nothing up in other accounts: \`network.availabilityZoneIds\` names the zones.
`;

/** Placeholder accounts of a new pipeline, which its owner replaces. */
const ACCOUNTS =
  'accounts: { dev: "111122223333", prod: "444455556666" } # yours: a stage of the pipeline each, in this order';

/** Zones by id, which mean the same in all accounts: the build of a pipeline has no credentials with which to look them up. */
function zonesOf(region: string): string {
  const prefix = zoneIdPrefix(region);
  const option = '  availabilityZoneIds: ';
  return `${option}[${prefix}-az1, ${prefix}-az2] # yours: those with capacity for your instance types`;
}

function environmentFile({ region, team, instanceType, pipeline }: Answers): string {
  const allowed = `allowedInstanceTypes: ["${instanceType}", "ml.g5.*", "ml.m5.*", "ml.c5.*"]`;
  return starter('environments/starter.yaml', ENVIRONMENT_FILE)
    .replace(/^name: starter\b */m, (found) => `name: ${ENVIRONMENT}`.padEnd(found.length))
    .replace(/^(name: .*)$/m, (line) => (pipeline ? `${line}\n${ACCOUNTS}` : line))
    .replace(/^( {2}mode: .*)$/m, (line) => (pipeline ? `${line}\n${zonesOf(region)}` : line))
    .replace(/^ {2}us-west-2: \{\} */m, (found) => `  ${region}: {}`.padEnd(found.length))
    .replace(/^ {2}nlp: \{/m, `  ${team}: {`)
    .replace(/allowedInstanceTypes: .*$/m, allowed)
    .replace(/instanceType: ml\.p5\.48xlarge/, `instanceType: ${instanceType}`);
}

/** The largest of several models that can be trained on two instances of a type. */
function firstRun(instanceType: string, region: string): string {
  const text = starter('runs/builtin/starter.yaml', FIRST_RUN).replace(
    /instanceType: .*$/m,
    `instanceType: ${instanceType}`,
  );
  const texts = FIRST_MODELS.map((preset) => text.replace('preset: llama3-8b', `preset: ${preset}`));
  const fitting = texts.find((found) => fits(found, region));
  if (fitting) return fitting;
  throw new UsageError(
    `--instance-type: must be one that the built-in trainer supports, got ${instanceType}; use ml.g5.12xlarge or ml.p5.48xlarge`,
  );
}

function fits(text: string, region: string): boolean {
  const { value } = loadRun(text);
  return value !== undefined && !hasErrors([...checkRun(value, { region }), ...memoryIssues(value, region)]);
}

/** Folder of a project that holds the packed product: nobody needs a registry or the clone to install it. */
const VENDOR = 'vendor';
/** The script of a clone that packs the product and the Python client. */
const PACK = 'scripts/pack.mjs';
const WHEEL = /^slipway_client-.*\.whl$/;

/** What a new project depends on. */
export interface Vendored {
  /** Value for `dependencies` of package.json: a path below the project, or a version of a registry. */
  specifier: string;
  /** Paths from the project's folder. */
  files: string[];
}

/**
 * Puts the packed product and the wheel of the Python client into `vendor/` of a project: packed from the clone that this command runs in,
 * or copied from where this package was installed from.
 * @param given the option `--package`: a packed tarball, or a version of a registry
 */
export function vendored(project: string, given: string | undefined): Vendored {
  if (given !== undefined) return existsSync(given) ? copied(project, given) : { specifier: given, files: [] };
  const script = path.join(packageRoot(), PACK);
  if (existsSync(script)) return packed(project, script);
  const { name, version } = ownPackage();
  const source = installedFrom(name);
  return source ? copied(project, source) : { specifier: version, files: [] };
}

/** What is wrong with the option `--package`, if anything. */
export function packageProblem(given: string): string | undefined {
  const must = '--package: must be a packed tarball or a version, got';
  if (!existsSync(given))
    return /^[~^]?\d+\.\d+\.\d+/.test(given)
      ? undefined
      : `${must} ${given}, which is no file here; npm run pack makes a tarball`;
  if (statSync(given).isFile()) return undefined;
  return `${must} the folder ${given}; run npm run pack in it, and name the .tgz file`;
}

function packed(project: string, script: string): Vendored {
  const folder = path.resolve(project, VENDOR);
  const { status, stdout } = spawnSync(process.execPath, [script, folder], {
    stdio: ['ignore', 'pipe', 2],
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new UsageError(
      'init: must be able to pack this clone, which failed (see above); it needs npm, and Python 3.10 or newer with pip as python3',
    );
  const made = JSON.parse(stdout) as Record<'package' | 'wheel', string>;
  return belowVendor(path.basename(made.package), path.basename(made.wheel));
}

/** Copies a tarball, with the wheel that lies beside it. */
function copied(project: string, file: string): Vendored {
  const folder = path.join(project, VENDOR);
  const beside = path.dirname(file);
  const names = [path.basename(file), ...readdirSync(beside).filter((name) => WHEEL.test(name))];
  makeFolder(folder);
  for (const name of names) copyFileSync(path.join(beside, name), path.join(folder, name));
  return belowVendor(...names);
}

const belowVendor = (...names: string[]): Vendored => ({
  specifier: `file:${VENDOR}/${names[0]}`,
  files: names.map((name) => `${VENDOR}/${name}`),
});

/**
 * The tarball that this package was installed from, if npm recorded one that is still there.
 * https://docs.npmjs.com/cli/v10/configuring-npm/package-lock-json
 */
function installedFrom(name: string): string | undefined {
  const folder = path.join('node_modules', name);
  const root = packageRoot();
  const home = root.endsWith(path.sep + folder) ? root.slice(0, -folder.length) : undefined;
  const lock = home && path.join(home, 'node_modules', '.package-lock.json');
  if (!home || !lock || !existsSync(lock)) return undefined;
  const { packages = {} } = JSON.parse(readFileSync(lock, 'utf8')) as {
    packages?: Record<string, { resolved?: string }>;
  };
  const resolved = packages[`node_modules/${name}`]?.resolved ?? '';
  // npm writes the path relative to the folder that contains node_modules.
  const file = path.resolve(home, resolved.replace(/^file:/, ''));
  return resolved.startsWith('file:') && existsSync(file) ? file : undefined;
}
