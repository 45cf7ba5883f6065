import { type CommandLine, modeOf } from '../command-line';
import type { Terminal } from '../terminal';
import type { TeamOptions } from './team';

export function platformVerbs(cli: CommandLine): void {
  cli
    .verb(
      'drift <environment>',
      'show differences from the deployed templates, including those that CloudFormation does not detect; exits with 1 if there are any',
      'slipway drift research --region us-west-2\n  slipway drift research --json',
    )
    .action(cli.action(() => import('./drift.js'), 'drift'));
  cli
    .verb(
      'deployer-policy <file|environment>',
      'print the IAM policies for the deploying user and for CloudFormation, and the bootstrap command that uses them; offline',
      'slipway deployer-policy environments/research.yaml\n  slipway deployer-policy research --json',
    )
    .action(cli.action(() => import('./deployer-policy.js'), 'deployerPolicy'));
  teamVerb(cli);
}

function teamVerb(cli: CommandLine): void {
  cli
    .verb(
      'team <environment>',
      'show runs, queue, spend and goodput of a month, by team; or compare the spend with Cost Explorer',
      'slipway team research --region us-west-2 --html teams.html',
      'slipway team research --region us-west-2 --team nlp --month 2026-10',
      'slipway team research --region us-west-2 --team nlp --link',
      'slipway team research --region us-west-2 --costs',
    )
    .option('--team <name>', 'only this team; default: all teams that the caller may read')
    .option('--month <yyyy-mm>', 'month; default: the current month')
    .option('--html <file>', 'also write an HTML page')
    .option('--link', 'print a link to the page that the control plane publishes every five minutes')
    .option('--costs', 'compare the recorded spend of runs with Cost Explorer')
    .action(async (environment: string, options: TeamOptions) =>
      cli.done(await runTeam(environment, options, cli.terminal)),
    );
}

async function runTeam(environment: string, options: TeamOptions, terminal: Terminal): Promise<number> {
  const mode = modeOf(options, { '': ['html', 'month'], link: [], costs: ['month'] });
  if (mode === 'costs') return (await import('./costs.js')).costs(environment, options, terminal);
  if (mode === 'link') return (await import('./team.js')).pageLink(environment, options, terminal);
  return (await import('./team.js')).team(environment, options, terminal);
}
