import { Option } from 'commander';
import { type CommandLine, collect } from '../command-line';
import type { LaunchOptions } from './launch';

/** The verb that starts runs. */
export function launchVerbs(cli: CommandLine): void {
  cli
    .verb(
      'launch <file>',
      'validate, plan, preflight, upload and submit a run',
      'slipway launch runs/llama2-13b.yaml --environment research --wait\n  slipway launch runs/llama2-13b.yaml --environment research --dry-run',
    )
    .option('--dry-run', 'print the exact request and call nothing')
    .option('--out <dir>', 'with --dry-run: also write the request and everything its channels would hold')
    .option('--matrix <path=a,b,c>', 'one run per value, compared at the end with --wait (repeatable)', collect)
    .option(
      '--stop-when <rule>',
      'with --matrix and --wait: stop runs that fall behind, such as "loss > best * 1.1 after 500 steps"',
    )
    .option('--smoke [place]', 'run it small first: in the account (default), or in the sandbox on CPUs')
    .option('--run-id <id>', 'run id; default: <name>-<yymmddhhmmss>')
    .option('--at <time>', 'start at this time or after this span (6h) at the earliest, when there is room')
    .option('--after <run>', 'start when this run is completed: a run id, or latest:<name> (repeatable)', collect)
    .option('--preemptible', 'runs of higher priority may ask it to save and leave; it goes on later')
    .option('--note <text>', 'what to find the run by: slipway list --search')
    .option('--client-request-id <id>', 'launching again with the same id finds the run of the first launch')
    .addOption(new Option('--yes', 'do not ask'))
    .addOption(new Option('--wait', 'follow the run until it ends'))
    .action(async (file: string, options: LaunchOptions) =>
      cli.done(await (await import('./launch.js')).launch(file, options, cli.terminal)),
    );
}
