import type { CommandLine } from '../command-line';
import type { InitOptions } from './answers';

/** The verb that makes a project. */
export function initVerbs(cli: CommandLine): void {
  cli
    .verb(
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
    .option('--pipeline', 'an app of CDK Pipelines, with a stage for each of the accounts dev and prod')
    .option('--run', 'write a run file only')
    .option(
      '--package <file|version>',
      'where npm finds slipway; default: the version, or the tarball that it was installed from',
    )
    .option('--yes', 'ask nothing')
    .action(async (directory = '.', options: InitOptions) =>
      cli.done(await (await import('./init.js')).init(directory, options, cli.terminal)),
    );
}
