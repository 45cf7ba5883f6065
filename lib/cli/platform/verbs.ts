import type { CommandLine } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { CostOptions } from './costs';
import type { MatrixOptions } from './region-matrix';
import type { TeamOptions } from './team';

/** Verbs for a platform team, on environments. */
export function platformVerbs(cli: CommandLine): void {
  stateVerbs(cli);
  spendVerbs(cli);
  cli
    .verb(
      'deployer-policy <file|environment>',
      'print the IAM policies for the deploying user and for CloudFormation, and the bootstrap command that uses them; offline',
      'slipway deployer-policy environments/research.yaml\n  slipway deployer-policy research --json',
    )
    .action(async (file: string, options: CommonOptions) =>
      cli.done((await import('./deployer-policy.js')).deployerPolicy(file, options, cli.terminal)),
    );
}

/** Verbs on what regions offer, and on the state of a deployed stack. */
function stateVerbs(cli: CommandLine): void {
  cli
    .verb(
      'matrix <file|environment>',
      'rank regions by availability of the quotas, zones, images, prices and endpoint services that a run or an environment needs',
      'slipway matrix runs/llama3-8b-fsdp.yaml --regions us-east-1,us-east-2,us-west-2\n  slipway matrix research --json',
    )
    .option(
      '--regions <a,b>',
      "regions; default: those of the environment, or those with a known price for the run's instance types",
    )
    .action(async (file: string, options: MatrixOptions) =>
      cli.done(await (await import('./region-matrix.js')).regionMatrix(file, options, cli.terminal)),
    );
  cli
    .verb(
      'drift <environment>',
      'show differences from the deployed templates, including those that CloudFormation does not detect; exits with 1 if there are any',
      'slipway drift research --region us-west-2\n  slipway drift research --json',
    )
    .action(async (environment: string, options: CommonOptions) =>
      cli.done(await (await import('./drift.js')).drift(environment, options, cli.terminal)),
    );
}

/** Verbs on the spend of runs. */
function spendVerbs(cli: CommandLine): void {
  cli
    .verb(
      'costs <environment>',
      'compare the recorded spend of runs with Cost Explorer, by team',
      'slipway costs research --region us-west-2\n  slipway costs research --region us-west-2 --team nlp --month 2026-10',
    )
    .option('--team <name>', 'only this team; default: all teams that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: the current month')
    .action(async (environment: string, options: CostOptions) =>
      cli.done(await (await import('./costs.js')).costs(environment, options, cli.terminal)),
    );
  cli
    .verb(
      'team <environment>',
      'show runs, queue, spend and goodput of a month, by team',
      'slipway team research --region us-west-2 --html teams.html\n  slipway team research --region us-west-2 --team nlp --month 2026-10',
    )
    .option('--team <name>', 'only this team; default: all teams that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: the current month')
    .option('--html <file>', 'also write an HTML page')
    .action(async (environment: string, options: TeamOptions) =>
      cli.done(await (await import('./team.js')).team(environment, options, cli.terminal)),
    );
}
