import { Option } from 'commander';
import { type CommandLine, collect } from '../command-line';

export function launchVerbs(cli: CommandLine): void {
  cli
    .verb(
      'launch <file>',
      'validate and plan a run, check quotas, upload its code and submit it',
      'slipway launch runs/sagemaker/llama2-13b.yaml --environment research/nlp --wait\n  slipway launch runs/sagemaker/llama2-13b.yaml --environment research/nlp --dry-run',
    )
    .option('--dry-run', 'print the exact request without any service call')
    .option('--out <dir>', 'with --dry-run: also write the request and the contents of its channels')
    .option(
      '--matrix <path=a,b,c>',
      'launch one run per value; with --wait, compare the results at the end (repeatable)',
      collect,
    )
    .option(
      '--stop-when <rule>',
      'with --matrix and --wait: stop runs that fall behind, such as "loss > best * 1.1 after 500 steps"',
    )
    .option('--smoke [place]', 'launch a small smoke run instead: in the account (default), or on CPUs in the sandbox')
    .option('--fetch', 'first fetch the models and data sets of a hub that the run names and the team lacks')
    .option('--python <file>', 'with --fetch: Python 3.10 or later on this machine, with huggingface_hub', 'python3')
    .option('--run-id <id>', 'run ID; default: <name>-<yymmddhhmmss>')
    .option('--at <time>', 'earliest start: a time, or a duration from now such as 6h')
    .option('--after <run>', 'start after this run has completed: a run ID, or latest:<name> (repeatable)', collect)
    .option(
      '--preemptible',
      'allow runs of higher priority to preempt this run; it saves a checkpoint and resumes later',
    )
    .option('--note <text>', 'note of the run, which slipway list --search also searches')
    .option(
      '--client-request-id <id>',
      'idempotency token: a second launch with the same ID returns the run of the first launch',
    )
    .addOption(new Option('--yes', 'skip confirmation prompts'))
    .addOption(new Option('--wait', 'follow the run until it ends; prints the output of the first host on stdout'))
    .option('--no-logs', 'with --wait: print only the states of the run')
    .action(cli.action(() => import('./launch.js'), 'launch'));
}
