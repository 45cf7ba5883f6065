import type { CommandLine } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { CostOptions } from './costs';
import type { MatrixOptions } from './region-matrix';
import type { TeamOptions } from './team';

/** Verbs of a platform team, on environments. */
export function platformVerbs(cli: CommandLine): void {
  stateVerbs(cli);
  spendVerbs(cli);
  cli
    .verb(
      'deployer-policy <file|environment>',
      'policies for who deploys and for CloudFormation, and the bootstrap command that uses them; offline',
      'slipway deployer-policy environments/research.yaml\n  slipway deployer-policy research --json',
    )
    .action(async (file: string, options: CommonOptions) =>
      cli.done((await import('./deployer-policy.js')).deployerPolicy(file, options, cli.terminal)),
    );
}

/** What regions have, and what a deployed stack has become. */
function stateVerbs(cli: CommandLine): void {
  cli
    .verb(
      'matrix <file|environment>',
      'what each region has of what a run or an environment needs: quotas, zones, images, prices, endpoint services; ranked',
      'slipway matrix runs/llama3-8b-fsdp.yaml --regions us-east-1,us-east-2,us-west-2\n  slipway matrix research --json',
    )
    .option('--regions <a,b>', "regions; default: the environment's, or those with a known price of the run's types")
    .action(async (file: string, options: MatrixOptions) =>
      cli.done(await (await import('./region-matrix.js')).regionMatrix(file, options, cli.terminal)),
    );
  cli
    .verb(
      'drift <environment>',
      'what differs from the deployed templates, and what CloudFormation does not see; exit 1 when anything does',
      'slipway drift research --region us-west-2\n  slipway drift research --json',
    )
    .action(async (environment: string, options: CommonOptions) =>
      cli.done(await (await import('./drift.js')).drift(environment, options, cli.terminal)),
    );
}

/** What runs have spent. */
function spendVerbs(cli: CommandLine): void {
  cli
    .verb(
      'costs <environment>',
      'what runs have spent by their ledger, beside Cost Explorer, by team',
      'slipway costs research --region us-west-2\n  slipway costs research --region us-west-2 --team nlp --month 2026-10',
    )
    .option('--team <name>', 'one team; default: all that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: this one')
    .action(async (environment: string, options: CostOptions) =>
      cli.done(await (await import('./costs.js')).costs(environment, options, cli.terminal)),
    );
  cli
    .verb(
      'team <environment>',
      'runs, queue, spend and goodput of the month, by team',
      'slipway team research --region us-west-2 --html teams.html\n  slipway team research --region us-west-2 --team nlp --month 2026-10',
    )
    .option('--team <name>', 'one team; default: all that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: this one')
    .option('--html <file>', 'also write one page')
    .action(async (environment: string, options: TeamOptions) =>
      cli.done(await (await import('./team.js')).team(environment, options, cli.terminal)),
    );
}
