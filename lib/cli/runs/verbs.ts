import { type CommandLine, collect } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { DeleteOptions } from './delete';
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
      'show state, attempts, step, last committed checkpoint and spend of a run',
      'slipway status llama2-13b-261101090000\n  slipway status llama2-13b-261101090000 --wait --json',
    )
    .option('--wait', 'follow the run until it ends')
    .action(async (run: string, options: StatusOptions) =>
      cli.done(await (await import('./status.js')).status(run, options, cli.terminal)),
    );
  cli
    .verb(
      'list',
      'list the runs of the team',
      'slipway list --environment research\n  slipway list --environment research/nlp --state running,queued --tag project=llama',
    )
    .option('--state <a,b>', 'only runs in one of these states')
    .option('--tag <key=value>', 'only runs with this tag, or with any value of this tag key (repeatable)', collect)
    .option(
      '--search <text>',
      'only runs whose ID, name, note, reason or tags contain this text; searches the newest 1,000 runs',
    )
    .action(async (options: ListOptions) => cli.done(await (await import('./list.js')).list(options, cli.terminal)));
  cli
    .verb(
      'top',
      'show progress, expected end and spend of every active run of the team',
      'slipway top --environment research\n  slipway top --environment research/nlp --json',
    )
    .action(async (options: CommonOptions) => cli.done(await (await import('./top.js')).top(options, cli.terminal)));
}

/** Verbs for the output and the events of a run, in chronological order. */
function streamVerbs(cli: CommandLine): void {
  cli
    .verb(
      'metrics <run>',
      'chart step, loss, tokens/s, MFU and GPU utilization of a run in the terminal',
      'slipway metrics llama2-13b-261101090000 --watch\n  slipway metrics llama2-13b-261101090000 --json > steps.jsonl',
    )
    .option('--watch', 'continue until the run ends')
    .action(async (run: string, options: MetricOptions) =>
      cli.done(await (await import('./metrics.js')).metrics(run, options, cli.terminal)),
    );
  cli
    .verb(
      'logs <run>',
      'print the log lines of all attempts and hosts in chronological order',
      'slipway logs llama2-13b-261101090000 --errors\n  slipway logs llama2-13b-261101090000 --follow --node 3',
    )
    .option('--follow', 'begin with the last minute, and continue until the run ends')
    .option('--node <n>', 'only the log of this host')
    .option('--errors', 'only the first error of all hosts, with the lines around it')
    .option('--since <time>', 'start of the period: 30m, 2h, 1d, or an ISO 8601 time')
    .action(async (run: string, options: LogOptions) =>
      cli.done(await (await import('./logs/logs.js')).logs(run, options, cli.terminal)),
    );
  cli
    .verb(
      'events [run|environment]',
      'print decisions, attempts, committed checkpoints and notices of a run, or of all runs of the team, in chronological order',
      'slipway events llama2-13b-261101090000 --follow\n  slipway events research --since 6h --json | head',
    )
    .option('--follow', 'continue until the run ends; for an environment, until interrupted')
    .option(
      '--since <time>',
      'start of the period: 30m, 2h, 1d, or an ISO 8601 time; default: all events of a run, 1d for an environment',
    )
    .action(async (target: string | undefined, options: EventOptions) =>
      cli.done(await (await import('./logs/events.js')).events(target, options, cli.terminal)),
    );
}

function reportVerbs(cli: CommandLine): void {
  cli
    .verb(
      'report <run...>',
      'report timeline, loss, throughput, goodput, checkpoints, spend and EFA verdict of a run; with several runs, compare their results',
      'slipway report llama2-13b-261101090000 --html report.html\n  slipway report llama2-13b-261101090000 llama2-13b-261102090000',
    )
    .option('--html <out>', 'also write the report as one HTML page that opens offline')
    .action(async (runs: string[], options: ReportOptions) =>
      cli.done(await (await import('./reports/report.js')).report(runs, options, cli.terminal)),
    );
  cli
    .verb(
      'diff <run> <other>',
      'compare two runs: options, code, driver, image and results',
      'slipway diff llama2-13b-261101090000 llama2-13b-261102090000\n  slipway diff llama2-13b-261101090000 llama2-13b-261102090000 --json > diff.json',
    )
    .action(async (run: string, other: string, options: CommonOptions) =>
      cli.done(await (await import('./reports/diff.js')).diff([run, other], options, cli.terminal)),
    );
}

/** Verbs on the origin of a run. */
function originVerbs(cli: CommandLine): void {
  cli
    .verb(
      'lineage <run>',
      'trace a run, a checkpoint or published weights back to data, code, image and earlier runs',
      'slipway lineage llama2-13b-261101090000\n  slipway lineage s3://my-checkpoints/runs/nlp/llama2-13b-261101090000/step-1000/ --json',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./origin/lineage.js')).lineage(run, options, cli.terminal)),
    );
  cli
    .verb(
      'publish <run>',
      'copy the final weights of a run to a separate S3 prefix, with a model card; optionally register them in the SageMaker Model Registry',
      'slipway publish llama2-13b-261101090000\n  slipway publish llama2-13b-261101090000 --registry research-nlp-llama --inference-image 763104351884.dkr.ecr.us-west-2.amazonaws.com/djl-inference:0.33.0-lmi15.0.0-cu128',
    )
    .option(
      '--to <s3://bucket/prefix/>',
      'target prefix; default: teams/<team>/models/<run>/ in the data bucket of the environment',
    )
    .option('--registry <group>', 'also register a version in this model package group, pending manual approval')
    .option('--inference-image <uri>', 'with --registry: image that serves the model')
    .option('--overwrite', 'replace the weights of another run at the same prefix')
    .action(async (run: string, options: PublishOptions) =>
      cli.done(await (await import('./publish/publish.js')).publish(run, options, cli.terminal)),
    );
}

/** Verbs for manual actions on one run. */
function personVerbs(cli: CommandLine): void {
  cli
    .verb(
      'note <run> <text...>',
      'set the note of a run, which list --search also searches; replaces the previous note',
      'slipway note llama2-13b-261101090000 first run with the new tokens\n  slipway note llama2-13b-261101090000 "diverged, see #42" --environment research/nlp',
    )
    .action(async (run: string, text: string[], options: CommonOptions) =>
      cli.done(await (await import('./note.js')).note(run, text, options, cli.terminal)),
    );
  cli
    .verb(
      'shell <run> [command...]',
      'open a shell in a container of a live run through Session Manager',
      'slipway shell llama2-13b-261101090000\n  slipway shell llama2-13b-261101090000 --node 3 -- nvidia-smi',
    )
    .option('--node <n>', 'number of the host, such as 3 for algo-3; default: 1')
    .action(async (run: string, command: string[], options: ShellOptions) =>
      cli.done(await (await import('./shell.js')).shell(run, command, options, cli.terminal)),
    );
}

function desiredVerbs(cli: CommandLine): void {
  cli
    .verb(
      'stop <run>',
      'save a checkpoint and stop a run',
      'slipway stop llama2-13b-261101090000\n  slipway stop llama2-13b-261101090000 --environment research/nlp',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./desired.js')).stop(run, options, cli.terminal)),
    );
  cli
    .verb(
      'resume <run>',
      'continue a run from its newest committed checkpoint',
      'slipway resume llama2-13b-261101090000\n  slipway resume llama2-13b-261101090000 --environment research/nlp',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./desired.js')).resume(run, options, cli.terminal)),
    );
  cli
    .verb(
      'release <run>',
      'terminate the warm pool of the last job of a run (compute.keepAliveSeconds)',
      'slipway release llama2-13b-261101090000\n  slipway release llama2-13b-261101090000 --environment research/nlp --json',
    )
    .action(async (run: string, options: CommonOptions) =>
      cli.done(await (await import('./release.js')).release(run, options, cli.terminal)),
    );
  cli
    .verb(
      'delete <run>',
      'delete the checkpoints, output, code and job files of a run that is over',
      'slipway delete llama2-13b-261101090000\n  slipway delete llama2-13b-261101090000 --environment research/nlp --yes --json',
    )
    .option('--yes', 'do not ask')
    .action(async (run: string, options: DeleteOptions) =>
      cli.done(await (await import('./delete.js')).deleteFiles(run, options, cli.terminal)),
    );
}
