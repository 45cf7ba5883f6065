import { type CommandLine, collect } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { ListOptions } from './list';
import type { EventOptions } from './logs/events';
import type { LogOptions } from './logs/logs';
import type { MetricOptions } from './metrics';
import type { PublishOptions } from './publish/publish';
import type { ReportOptions } from './reports/report';
import type { ShellOptions } from './shell';
import type { StatusOptions } from './status';

/** Verbs on runs that were launched. */
export function runVerbs(cli: CommandLine): void {
  overviewVerbs(cli);
  streamVerbs(cli);
  reportVerbs(cli);
  originVerbs(cli);
  personVerbs(cli);
  desiredVerbs(cli);
}

function overviewVerbs(cli: CommandLine): void {
  cli
    .verb(
      'status <run>',
      'state, attempts, step, last committed checkpoint, spend',
      'slipway status llama2-13b-261101090000\n  slipway status llama2-13b-261101090000 --wait --json',
    )
    .option('--wait', 'follow the run until it ends')
    .action(async (run: string, options: StatusOptions) =>
      cli.done(await (await import('./status.js')).status(run, options, cli.terminal)),
    );
  cli
    .verb(
      'list',
      'the runs of the team',
      'slipway list --environment research\n  slipway list --environment research/nlp --state running,queued --tag project=llama',
    )
    .option('--state <a,b>', 'only runs in one of these states')
    .option('--tag <key=value>', 'only runs with this tag, or with a tag of this name (repeatable)', collect)
    .option(
      '--search <text>',
      'only runs whose id, name, note, reason or tags have this text; looks at the newest 1,000',
    )
    .action(async (options: ListOptions) => cli.done(await (await import('./list.js')).list(options, cli.terminal)));
  cli
    .verb(
      'top',
      'every run of the team that is not over: how far it is, when it will be done, what it has spent',
      'slipway top --environment research\n  slipway top --environment research/nlp --json',
    )
    .action(async (options: CommonOptions) => cli.done(await (await import('./top.js')).top(options, cli.terminal)));
}

/** What a run prints and what happens to it, in the order of time. */
function streamVerbs(cli: CommandLine): void {
  cli
    .verb(
      'metrics <run>',
      'step, loss, tokens/s and MFU from the progress lines of a run, and how busy its GPUs are, drawn in the terminal',
      'slipway metrics llama2-13b-261101090000 --watch\n  slipway metrics llama2-13b-261101090000 --json > steps.jsonl',
    )
    .option('--watch', 'go on until the run ends')
    .action(async (run: string, options: MetricOptions) =>
      cli.done(await (await import('./metrics.js')).metrics(run, options, cli.terminal)),
    );
  cli
    .verb(
      'logs <run>',
      'lines of all attempts and hosts in the order of time',
      'slipway logs llama2-13b-261101090000 --errors\n  slipway logs llama2-13b-261101090000 --follow --node 3',
    )
    .option('--follow', 'go on until the run ends')
    .option('--node <n>', 'one host only')
    .option('--errors', 'the first error over all hosts')
    .option('--since <time>', '30m, 2h, 1d, or an ISO time')
    .action(async (run: string, options: LogOptions) =>
      cli.done(await (await import('./logs/logs.js')).logs(run, options, cli.terminal)),
    );
  cli
    .verb(
      'events [run|environment]',
      'decisions, attempts, commits and notices of a run, or of all runs of the team, in the order of time',
      'slipway events llama2-13b-261101090000 --follow\n  slipway events research --since 6h --json | head',
    )
    .option('--follow', 'go on until the run ends; of a whole environment until interrupted')
    .option('--since <time>', '30m, 2h, 1d, or an ISO time; default: everything of a run, 1d of an environment')
    .action(async (target: string | undefined, options: EventOptions) =>
      cli.done(await (await import('./logs/events.js')).events(target, options, cli.terminal)),
    );
}

function reportVerbs(cli: CommandLine): void {
  cli
    .verb(
      'report <run...>',
      'timeline, loss, throughput, goodput, checkpoints, spend and EFA verdict of a run; of several runs the results side by side',
      'slipway report llama2-13b-261101090000 --html report.html\n  slipway report llama2-13b-261101090000 llama2-13b-261102090000',
    )
    .option('--html <out>', 'also write the report as one page that opens offline')
    .action(async (runs: string[], options: ReportOptions) =>
      cli.done(await (await import('./reports/report.js')).report(runs, options, cli.terminal)),
    );
  cli
    .verb(
      'diff <run> <other>',
      'what two runs were launched with (options, code, driver, image), and what came of it',
      'slipway diff llama2-13b-261101090000 llama2-13b-261102090000\n  slipway diff llama2-13b-261101090000 llama2-13b-261102090000 --json > diff.json',
    )
    .action(async (run: string, other: string, options: CommonOptions) =>
      cli.done(await (await import('./reports/diff.js')).diff([run, other], options, cli.terminal)),
    );
}

/** Where a run came from. */
function originVerbs(cli: CommandLine): void {
  cli
    .verb(
      'lineage <run>',
      'from a run, a checkpoint or published weights to data, code, image and the runs before it',
      'slipway lineage llama2-13b-261101090000\n  slipway lineage s3://my-checkpoints/runs/nlp/llama2-13b-261101090000/step-1000/ --json',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./origin/lineage.js')).lineage(run, options, cli.terminal)),
    );
  cli
    .verb(
      'publish <run>',
      'copy the final weights of a run to a place of their own, with a model card; also into the SageMaker model registry',
      'slipway publish llama2-13b-261101090000\n  slipway publish llama2-13b-261101090000 --registry research-nlp-llama --inference-image 763104351884.dkr.ecr.us-west-2.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128',
    )
    .option(
      '--to <s3://bucket/prefix/>',
      "where to; default: teams/<team>/models/<run>/ of the environment's data bucket",
    )
    .option('--registry <group>', 'also register a version in this model package group; it waits for its approval')
    .option('--inference-image <uri>', 'image that serves the model, for --registry')
    .option('--overwrite', 'replace weights of another run at the same place')
    .action(async (run: string, options: PublishOptions) =>
      cli.done(await (await import('./publish/publish.js')).publish(run, options, cli.terminal)),
    );
}

/** What a person does with one run by hand. */
function personVerbs(cli: CommandLine): void {
  cli
    .verb(
      'note <run> <text...>',
      'write down what to find a run by, in place of its note before',
      'slipway note llama2-13b-261101090000 first run with the new tokens\n  slipway note llama2-13b-261101090000 "diverged, see #42" --environment research/nlp',
    )
    .action(async (run: string, text: string[], options: CommonOptions) =>
      cli.done(await (await import('./note.js')).note(run, text, options, cli.terminal)),
    );
  cli
    .verb(
      'shell <run> [command...]',
      'a shell in a container of a live run, through Session Manager',
      'slipway shell llama2-13b-261101090000\n  slipway shell llama2-13b-261101090000 --node 3 -- nvidia-smi',
    )
    .option('--node <n>', 'host: 3 is algo-3; default: 1')
    .action(async (run: string, command: string[], options: ShellOptions) =>
      cli.done(await (await import('./shell.js')).shell(run, command, options, cli.terminal)),
    );
}

function desiredVerbs(cli: CommandLine): void {
  cli
    .verb(
      'stop <run>',
      'save a checkpoint and stop',
      'slipway stop llama2-13b-261101090000\n  slipway stop llama2-13b-261101090000 --environment research/nlp',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./desired.js')).stop(run, options, cli.terminal)),
    );
  cli
    .verb(
      'resume <run>',
      'continue from the newest committed checkpoint',
      'slipway resume llama2-13b-261101090000\n  slipway resume llama2-13b-261101090000 --environment research/nlp',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./desired.js')).resume(run, options, cli.terminal)),
    );
  cli
    .verb(
      'release <run>',
      'end the warm pool that the last job of a run left (compute.keepAliveSeconds)',
      'slipway release llama2-13b-261101090000\n  slipway release llama2-13b-261101090000 --environment research/nlp --json',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./release.js')).release(run, options, cli.terminal)),
    );
}
