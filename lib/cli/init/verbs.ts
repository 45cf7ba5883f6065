import type { CommandLine } from '../command-line';
import type { InitOptions } from './answers';

/** The verb that creates a project. */
export function initVerbs(cli: CommandLine): void {
  cli
    .verb(
      'init [directory]',
      'create a CDK app: environment file, run file, test, pipeline',
      'slipway init my-training\n  slipway init my-training --region us-east-1 --team nlp --instance-type ml.p5en.48xlarge --ci github --yes',
    )
    .option('--team <name>', 'first team of the environment (default: research)')
    .option(
      '--instance-type <type>',
      'instance type of the first run and of the requested quota (default: ml.p5.48xlarge)',
    )
    .option('--ci <github|gitlab>', 'also write a CI pipeline that authenticates with OIDC')
    .option('--pipeline', 'create a CDK Pipelines app with one stage each for the accounts dev and prod')
    .option('--run', 'write only a run file')
    .option(
      '--package <file|version>',
      'slipway dependency for npm; default: the installed version, or the tarball that it was installed from',
    )
    .option('--yes', 'skip all prompts')
    .action(async (directory = '.', options: InitOptions) =>
      cli.done(await (await import('./init.js')).init(directory, options, cli.terminal)),
    );
}
