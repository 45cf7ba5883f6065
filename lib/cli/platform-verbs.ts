import type { Command } from 'commander';
import type { InitOptions } from './init/answers';
import type { CommonOptions } from './inputs';
import type { CostOptions } from './platform/costs';
import type { MatrixOptions } from './platform/region-matrix';
import type { Terminal } from './terminal';

/** Makes a verb with the options that all verbs take. */
export type Verb = (name: string, description: string, example: string) => Command;

/** The verb that makes a project. */
export function initVerb(verb: Verb, terminal: Terminal, done: (code: number) => void): void {
  verb(
    'init [directory]',
    'make a CDK app of your own: environment file, run file, test, pipeline',
    'slipway init my-training\n  slipway init my-training --region us-east-1 --team nlp --instance-type ml.p5en.48xlarge --ci github --yes',
  )
    .option('--team <name>', 'first team of the environment (default: research)')
    .option(
      '--instance-type <type>',
      'type of the first run and of the quota that is asked for (default: ml.p5.48xlarge)',
    )
    .option('--ci <github|gitlab>', 'also write a pipeline that signs in through OIDC')
    .option('--run', 'write a run file only')
    .option(
      '--package <file|version>',
      'where npm finds slipway; default: the version, or the tarball that it was installed from',
    )
    .option('--yes', 'ask nothing')
    .action(async (directory = '.', options: InitOptions) =>
      done(await (await import('./init/init.js')).init(directory, options, terminal)),
    );
}

/** Verbs of a platform team, on environments. */
export function platformVerbs(verb: Verb, terminal: Terminal, done: (code: number) => void): void {
  verb(
    'matrix <file|environment>',
    'what each region has of what a run or an environment needs: quotas, zones, images, prices, endpoint services; ranked',
    'slipway matrix runs/llama3-8b-fsdp.yaml --regions us-east-1,us-east-2,us-west-2\n  slipway matrix research --json',
  )
    .option('--regions <a,b>', "regions; default: the environment's, or those with a known price of the run's types")
    .action(async (file: string, options: MatrixOptions) =>
      done(await (await import('./platform/region-matrix.js')).regionMatrix(file, options, terminal)),
    );
  verb(
    'drift <environment>',
    'what differs from the deployed templates, and what CloudFormation does not see; exit 1 when anything does',
    'slipway drift research --region us-west-2\n  slipway drift research --json',
  ).action(async (environment: string, options: CommonOptions) =>
    done(await (await import('./platform/drift.js')).drift(environment, options, terminal)),
  );
  verb(
    'costs <environment>',
    'what runs have spent by their ledger, beside Cost Explorer, by team',
    'slipway costs research --region us-west-2\n  slipway costs research --region us-west-2 --team nlp --month 2026-10',
  )
    .option('--team <name>', 'one team; default: all that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: this one')
    .action(async (environment: string, options: CostOptions) =>
      done(await (await import('./platform/costs.js')).costs(environment, options, terminal)),
    );
  verb(
    'deployer-policy <file|environment>',
    'policies for who deploys and for CloudFormation, and the bootstrap command that uses them; offline',
    'slipway deployer-policy environments/research.yaml\n  slipway deployer-policy research --json',
  ).action(async (file: string, options: CommonOptions) =>
    done((await import('./platform/deployer-policy.js')).deployerPolicy(file, options, terminal)),
  );
}
