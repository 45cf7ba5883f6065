import type { CommandLine } from '../command-line';

export function initVerbs(cli: CommandLine): void {
  cli
    .verb(
      'init [directory]',
      'create a CDK app: environment file, run files, test, pipeline',
      'slipway init ../my-training\n  slipway init ../my-training --region us-east-1 --team nlp --instance-type ml.p5en.48xlarge --ci github --yes',
    )
    .option('--team <name>', 'first team of the environment (default: nlp)')
    .option(
      '--instance-type <type>',
      'instance type of the first run and of the requested quota (default: ml.p5.48xlarge)',
    )
    .option('--ci <github|gitlab>', 'also write a CI pipeline that authenticates with OIDC')
    .option('--pipeline', 'create a CDK Pipelines app with one stage each for the accounts dev and prod')
    .option('--run', 'write only run files')
    .option(
      '--package <file|version>',
      'tarball of npm run pack that is copied into vendor/, or a version in your registry; default: this installation',
    )
    .option('--no-lockfile', 'write no package-lock.json, for pnpm and Yarn')
    .option('--yes', 'skip all prompts')
    .action(cli.action(() => import('./init.js'), 'init'));
}
