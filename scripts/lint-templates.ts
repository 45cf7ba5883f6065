// `npm run lint:templates`: cfn-lint and checkov over the template of every example and variant, parliament over every policy in them.
// Nothing may be found but what IGNORED and lib/cdk/acknowledged-checks.ts name.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { policiesOf } from '../test/templates/laws/authorization';
import { specs, templateOf } from '../test/templates/support/templates';

const ROOT = path.resolve(__dirname, '..');
const FOLDER = path.join(ROOT, '.slipway', 'templates');

/** W3005: the CDK writes dependencies that a reference implies. W3010: zones are looked up for the account, and written as names. */
const IGNORED = ['W3005', 'W3010'];

/** parliament reads policies of identities: resource-based ones and trust policies have a Principal. */
const PARLIAMENT = `
import json, sys
from parliament import analyze_policy_string
# Newer than parliament's edition of the reference; test/templates holds them against the newer one.
NEWER = ("ecr:UpdateImageStorageClass", "sagemaker-mlflow:LogOutputs", "sagemaker:CallMlflowAppApi", "sagemaker:CreateTrainingJob")
# These two functions write bucket policies: one closes buckets that are about to go, the other restores what a deletion took.
POLICIES = ("StorageEmptyFunctionRole", "StorageAdoptFunctionRole")
found = 0
for policy, document in json.load(open(sys.argv[1])):
    for finding in analyze_policy_string(json.dumps(document)).findings:
        if finding.issue in ("UNKNOWN_ACTION", "RESOURCE_MISMATCH") and any(name in str(finding.detail) for name in NEWER):
            continue
        if finding.issue == "RESOURCE_POLICY_PRIVILEGE_ESCALATION" and any(role in policy for role in POLICIES):
            continue
        found += 1
        print(policy, finding.issue, finding.detail, finding.location)
sys.exit(1 if found else 0)
`;

interface Linter {
  readonly name: string;
  readonly words: string[];
}

function main(): number {
  const python = lintPython();
  const bin = path.dirname(python);
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const files = writeTemplates();
  const linters: Linter[] = [
    { name: 'cfn-lint', words: [path.join(bin, 'cfn-lint'), '--ignore-checks', ...IGNORED, '--', ...files] },
    {
      name: 'checkov',
      words: [
        path.join(bin, 'checkov'),
        '--quiet',
        '--compact',
        '--skip-download',
        '--framework',
        'cloudformation',
        '--file',
        ...files,
      ],
    },
    { name: 'parliament', words: [python, '-c', PARLIAMENT, path.join(FOLDER, 'policies.json')] },
  ];
  const failed = linters.filter((linter) => !passes(linter));
  for (const { name } of failed) console.error(`${name}: must find nothing; see above`);
  return failed.length > 0 ? 1 : 0;
}

/** The linters' Python, made by scripts/python-env.mjs, which is a module and this script is not. */
function lintPython(): string {
  const make =
    "import { pythonEnvironment as make } from './scripts/python-env.mjs'; process.stdout.write(make('requirements-lint.txt', 'python-lint'))";
  return execFileSync(process.execPath, ['--input-type=module', '-e', make], { cwd: ROOT, encoding: 'utf8' });
}

/** Templates into one file each, and the policies of identities with all references filled in into one more. */
function writeTemplates(): string[] {
  const policies: [string, unknown][] = [];
  const files = Object.entries(specs()).map(([name, spec]) => {
    const template = templateOf(spec);
    const resources = template.Resources;
    for (const [id, Statement] of policiesOf(resources)) {
      if (resources[id]?.Type !== 'AWS::IAM::Policy') continue;
      policies.push([`${name} ${id}`, { Version: '2012-10-17', Statement }]);
    }
    const file = path.join(FOLDER, `${name}.template.json`);
    writeFileSync(file, JSON.stringify(template, null, 1));
    return file;
  });
  writeFileSync(path.join(FOLDER, 'policies.json'), JSON.stringify(policies));
  return files;
}

function passes({ name, words: [command = '', ...rest] }: Linter): boolean {
  const started = Date.now();
  const { status } = spawnSync(command, rest, { stdio: 'inherit' });
  console.error(
    `${name}: ${status === 0 ? 'nothing found' : `exit ${status}`}, ${Math.round((Date.now() - started) / 1000)} s`,
  );
  return status === 0;
}

process.exitCode = main();
