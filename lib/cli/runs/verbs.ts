import { type CommandLine, collect, modeOf } from '../command-line';
import type { Terminal } from '../terminal';
import type { ListOptions } from './list';
import type { StatusOptions } from './status';

export function runVerbs(cli: CommandLine): void {
  statusVerb(cli);
  listVerb(cli);
  outputVerbs(cli);
  changeVerbs(cli);
}

const SINCE = 'start of the period: 30m, 2h, 1d, or an ISO 8601 time';

function statusVerb(cli: CommandLine): void {
  cli
    .verb(
      'status <run>',
      'show state, attempts, step, last committed checkpoint and spend of a run; or its metrics, events or origin',
      'slipway status llama2-13b-261101090000',
      'slipway status llama2-13b-261101090000 --wait --json',
      'slipway status llama2-13b-261101090000 --chart --watch',
      'slipway status llama2-13b-261101090000 --events --follow',
      'slipway status s3://my-checkpoints/runs/nlp/llama2-13b-261101090000/step-1000/ --lineage --json',
      'slipway status llama2-13b-261101090000 --note "diverged, see #42"',
    )
    .option('--wait', 'follow the run until it ends')
    .option(
      '--chart',
      'chart step, loss, tokens/s, MFU and GPU utilization in the terminal; with --json, one line per step',
    )
    .option('--watch', 'with --chart: continue until the run ends')
    .option('--events', 'print decisions, attempts, committed checkpoints and notices in chronological order')
    .option('--follow', 'with --events: continue until the run ends')
    .option('--since <time>', `with --events: ${SINCE}; default: all events`)
    .option(
      '--lineage',
      'trace the run back to data, code, image and earlier runs; also a checkpoint or published weights, as s3://... in place of the run',
    )
    .option('--note <text>', 'set the note of the run, which list --search also searches; replaces the previous note')
    .action(async (run: string, options: StatusOptions) => cli.done(await runStatus(run, options, cli.terminal)));
}

function listVerb(cli: CommandLine): void {
  cli
    .verb(
      'list',
      'list the runs of the team, or their events',
      'slipway list --environment research/nlp',
      'slipway list --environment research/nlp --state running,queued --tag project=llama',
      'slipway list --environment research/nlp --active',
      'slipway list --environment research/nlp --events --since 6h --json | head',
    )
    .option('--state <a,b>', 'only runs in one of these states')
    .option('--tag <key=value>', 'only runs with this tag, or with any value of this tag key (repeatable)', collect)
    .option(
      '--search <text>',
      'only runs whose ID, name, note, reason or tags contain this text; searches the live and the newest 1,000 runs',
    )
    .option('--active', 'only runs that are not over, with progress, expected end and spend')
    .option(
      '--events',
      'print decisions, attempts, committed checkpoints and notices of the runs that are live or ended after --since in chronological order',
    )
    .option('--follow', 'with --events: continue until interrupted')
    .option('--since <time>', `with --events: ${SINCE}; default: 1d`)
    .action(async (options: ListOptions) => cli.done(await runList(options, cli.terminal)));
}

function outputVerbs(cli: CommandLine): void {
  cli
    .verb(
      'logs <run>',
      'print the log lines of all attempts and hosts in chronological order',
      'slipway logs llama2-13b-261101090000 --errors\n  slipway logs llama2-13b-261101090000 --follow --node 3',
    )
    .option('--follow', 'begin with the newest line, or with --since, and continue until the run ends')
    .option('--node <n>', 'only the log of this host')
    .option('--errors', 'only the first error of all hosts, with the lines around it')
    .option('--since <time>', SINCE)
    .action(cli.action(() => import('./logs/logs.js'), 'logs'));
  cli
    .verb(
      'report <run...>',
      'report timeline, loss, throughput, goodput, checkpoints, spend and EFA verdict of a run; with several runs, compare their results',
      'slipway report llama2-13b-261101090000 --html report.html\n  slipway report llama2-13b-261101090000 llama2-13b-261102090000 --html comparison.html\n  slipway report llama2-13b-261101090000 llama2-13b-261102090000 --diff',
    )
    .option('--html <out>', 'also write the report as one HTML page that opens offline')
    .option('--diff', 'with two runs: also compare options, code, driver, image and the loss at equal steps')
    .action(cli.action(() => import('./reports/report.js'), 'report'));
}

function changeVerbs(cli: CommandLine): void {
  cli
    .verb(
      'stop <run>',
      'save a checkpoint and stop a run',
      'slipway stop llama2-13b-261101090000 --environment research/nlp\n  slipway stop llama2-13b-261101090000 --release-pool --json',
    )
    .option(
      '--release-pool',
      'instead, terminate the warm pool of the last job of a run that is over (compute.keepAliveSeconds)',
    )
    .action(cli.action(() => import('./change.js'), 'stop'));
  cli
    .verb(
      'resume <run>',
      'continue a run from its newest committed checkpoint',
      'slipway resume llama2-13b-261101090000\n  slipway resume llama2-13b-261101090000 --environment research/nlp',
    )
    .action(cli.action(() => import('./change.js'), 'resume'));
  cli
    .verb(
      'shell <run> [command...]',
      'open a shell in a container of a live run through Session Manager',
      'slipway shell llama2-13b-261101090000\n  slipway shell llama2-13b-261101090000 --node 3 -- nvidia-smi',
    )
    .option('--node <n>', 'number of the host, such as 3 for algo-3; default: 1')
    .action(cli.action(() => import('./shell.js'), 'shell'));
  cli
    .verb(
      'delete <run>',
      'delete the checkpoints, output, code and job files of a run that is over',
      'slipway delete llama2-13b-261101090000\n  slipway delete llama2-13b-261101090000 --environment research/nlp --yes --json',
    )
    .option('--yes', 'do not ask')
    .action(cli.action(() => import('./change.js'), 'deleteFiles'));
}

async function runStatus(run: string, options: StatusOptions, terminal: Terminal): Promise<number> {
  const modes = { '': [], wait: [], chart: ['watch'], events: ['follow', 'since'], lineage: [], note: [] };
  switch (modeOf(options, modes)) {
    case 'chart':
      return (await import('./chart.js')).chart(run, options, terminal);
    case 'events':
      return (await import('./logs/logs.js')).events(run, options, terminal);
    case 'lineage':
      return (await import('./lineage.js')).lineage(run, options, terminal);
    case 'note':
      return (await import('./change.js')).note(run, options.note ?? '', options, terminal);
    default:
      return (await import('./status.js')).status(run, options, terminal);
  }
}

async function runList(options: ListOptions, terminal: Terminal): Promise<number> {
  const filters = ['state', 'tag', 'search'];
  const mode = modeOf(options, { '': filters, active: filters, events: ['follow', 'since'] });
  if (mode === 'events') return (await import('./logs/logs.js')).events(undefined, options, terminal);
  return (await import('./list.js')).list(options, terminal);
}

export function publishVerbs(cli: CommandLine): void {
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
    .action(cli.action(() => import('./publish/publish.js'), 'publish'));
}
