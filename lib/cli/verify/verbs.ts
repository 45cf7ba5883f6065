import type { CommandLine } from '../command-line';

export function verifyVerbs(cli: CommandLine): void {
  cli
    .verb(
      'verify <environment>',
      'test in an account whether the assumptions about AWS hold',
      'slipway verify research --region us-west-2\n  slipway verify research --region us-west-2 --level train --yes',
    )
    .option('--level <read|deploy|train|efa>', 'level of the checks; each level includes the previous levels', 'read')
    .option('--yes', 'skip confirmation prompts')
    .option('--resume <file>', 'continue from an earlier record')
    .option('--cpu-type <type>', 'instance type of the jobs at level train', 'ml.m5.large')
    .option('--efa-type <type>', 'instance type of the jobs at level efa')
    .option('--image <uri>', 'image of the jobs; default: the image of the environment')
    .action(cli.action(() => import('./verify.js'), 'verify'));
}
