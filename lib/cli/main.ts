import { Command, CommanderError, Option } from 'commander';
import { completionVerb } from './completion-verb';
import type { EventOptions } from './events';
import type { CommonOptions } from './inputs';
import type { LaunchOptions } from './launch';
import type { LockOptions } from './lock';
import type { LogOptions } from './logs';
import type { McpOptions } from './mcp';
import type { MetricOptions } from './metrics';
import type { PlanOptions } from './plan';
import { initVerb, platformVerbs, type Verb } from './platform-verbs';
import type { QuotaOptions } from './quota';
import type { ReportOptions } from './report';
import { reportError } from './report-error';
import type { SandboxOptions } from './sandbox';
import type { SimulateOptions } from './simulate';
import type { StatusOptions } from './status';
import { processTerminal, type Terminal } from './terminal';
import type { VerifyOptions } from './verify/verify';
import { VERSION } from './version';

const collect = (value: string, previous: string[] = []) => [...previous, value];

/** Options that every verb takes (docs/reference/command-line.md). */
function common(command: Command): Command {
  return command
    .option('--environment <name|file>', 'environment, environment/team, or a descriptor file (.json)')
    .option('--region <region>', "region; default: the environment's")
    .option('--set <path=value>', 'overrides an option of the file before validation (repeatable)', collect)
    .option('--json', 'print one JSON document on stdout');
}

/** The command line; every verb's code is loaded when it is called, so that `--help` stays fast. */
export function program(terminal: Terminal, done: (code: number) => void): Command {
  const root = new Command('slipway')
    .description(
      'LLM training on Amazon SageMaker training jobs: checked before it spends, kept going until it is done',
    )
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeErr: (text) => terminal.err(text.trimEnd()),
      writeOut: (text) => terminal.out(text.trimEnd()),
    });
  const verb = (name: string, description: string, example: string) =>
    common(root.command(name).description(description).addHelpText('after', `\nExamples:\n  ${example}`));

  initVerb(verb, terminal, done);
  completionVerb(root, terminal, done);
  verb(
    'schema <run|environment|answers>',
    'print the JSON Schema of a file, for editors, or of what --json prints, for scripts',
    'slipway schema run > run.schema.json\n  slipway schema answers > answers.schema.json',
  ).action(async (kind: string) => done((await import('./schema.js')).schema(kind, terminal)));
  verb(
    'validate <file>',
    'check a run file or an environment file against every rule, offline',
    'slipway validate runs/llama2-13b.yaml\n  slipway validate environments/research.yaml --json',
  ).action(async (file: string, options: CommonOptions) =>
    done(await (await import('./validate.js')).validate(file, options, terminal)),
  );
  verb(
    'plan [file]',
    'memory fit, step time, hours and dollars before launch',
    'slipway plan runs/llama3-8b-fsdp.yaml --set compute.instanceCount=8\n  slipway plan runs/llama3-8b-fsdp.yaml --search --html plan.html',
  )
    .option('--search', "find faster and cheaper layouts inside the run's library")
    .option('--search-libraries <a,b>', 'search in these libraries too')
    .option('--html <file>', 'draw memory, step time, scaling and Pareto front')
    .option(
      '--calibrate <run...>',
      'measured runs (ids, or files of report --json): later plans of the environment use them',
    )
    .action(async (file: string | undefined, options: PlanOptions) =>
      done(await (await import('./plan.js')).plan(file, options, terminal)),
    );
  verb(
    'launch <file>',
    'validate, plan, preflight, upload and submit a run',
    'slipway launch runs/llama2-13b.yaml --environment research --wait\n  slipway launch runs/llama2-13b.yaml --environment research --dry-run',
  )
    .option('--dry-run', 'print the exact request and call nothing')
    .option('--out <dir>', 'with --dry-run: also write the request and everything its channels would hold')
    .option('--matrix <path=a,b,c>', 'one run per value, compared at the end with --wait (repeatable)', collect)
    .option('--smoke [place]', 'run it small first: in the account (default), or in the sandbox on CPUs')
    .option('--run-id <id>', 'run id; default: <name>-<yymmddhhmmss>')
    .option('--at <time>', 'start at this time or after this span (6h) at the earliest, when there is room')
    .option('--client-request-id <id>', 'launching again with the same id finds the run of the first launch')
    .addOption(new Option('--yes', 'do not ask'))
    .addOption(new Option('--wait', 'follow the run until it ends'))
    .action(async (file: string, options: LaunchOptions) =>
      done(await (await import('./launch.js')).launch(file, options, terminal)),
    );
  verb(
    'import <job|arn|file>',
    'make a run file of a training job, a captured request, a HyperPod recipe or a torchrun command line',
    'slipway import llama-pretrain-2026-11-20-10-11-12-345 --region us-west-2 > run.yaml\n  slipway import request.json --json',
  ).action(async (from: string, options: CommonOptions) =>
    done(await (await import('./import.js')).importJob(from, options, terminal)),
  );
  verb(
    'preflight <file>',
    'check quotas and what the account must hold',
    'slipway preflight runs/llama2-13b.yaml --environment research\n  slipway preflight environments/research.yaml --region us-west-2',
  ).action(async (file: string, options: CommonOptions) =>
    done(await (await import('./preflight.js')).preflight(file, options, terminal)),
  );
  verb(
    'quota <file|environment>',
    'every quota that a run or an environment touches',
    'slipway quota research --region us-west-2 --request\n  slipway quota runs/llama2-13b.yaml --environment research',
  )
    .option('--request', 'file the increases that are needed, once')
    .action(async (file: string, options: QuotaOptions) =>
      done(await (await import('./quota.js')).quota(file, options, terminal)),
    );
  verb(
    'lock <file>',
    "digests of the image's base in every region, from ECR, into <environment>.lock.yaml",
    'slipway lock environments/research.yaml\n  slipway lock environments/cuda.yaml --base 111122223333.dkr.ecr.{region}.amazonaws.com/nvidia/cuda:12.9',
  )
    .option('--base <image>', 'ECR image with its tag to build base cuda on; {region} stands for each region')
    .action(async (file: string, options: LockOptions) =>
      done(await (await import('./lock.js')).lock(file, options, terminal)),
    );
  platformVerbs(verb, terminal, done);
  mcpVerb(root, terminal, done);
  simulateVerb(root, terminal, done);
  verifyVerb(verb, terminal, done);
  runVerbs(verb, terminal, done);
  sandboxVerb(root, terminal, done);
  return root;
}

/** Its tools are the other verbs, called as the command line calls them. */
function mcpVerb(root: Command, terminal: Terminal, done: (code: number) => void): void {
  root
    .command('mcp')
    .description('the verbs that read, plan and dry-run as tools of an MCP server on stdio')
    .option('--allow <launch,stop>', 'tools that start and stop runs too')
    .addHelpText('after', '\nExamples:\n  slipway mcp\n  slipway mcp --allow launch,stop')
    .action(async (options: McpOptions) => {
      const runVerb = (args: readonly string[], into: Terminal) => main(['node', 'slipway', ...args], into);
      done(await (await import('./mcp.js')).mcp(options, runVerb, terminal));
    });
}

/** It reads nothing but the scenario: none of the options of the other verbs means anything to it. */
function simulateVerb(root: Command, terminal: Terminal, done: (code: number) => void): void {
  root
    .command('simulate <scenario>')
    .description("play the control plane's own functions against an AWS in memory, on a virtual clock")
    .option('--seed <n>', 'what the scenario draws and how long calls take follows from it (default: 1)')
    .option('--histories <n>', 'play n seeds; the first that fails is shrunk to the shortest scenario')
    .option('--html <file>', 'draw queue, runs, attempts and decisions over time')
    .option('--json', 'print one JSON document on stdout')
    .addHelpText(
      'after',
      '\nExamples:\n  slipway simulate scenarios/spot-lost.yaml --seed 7\n  slipway simulate scenarios/spot-lost.yaml --histories 100 --html histories.html',
    )
    .action(async (file: string, options: SimulateOptions) =>
      done(await (await import('./simulate.js')).simulate(file, options, terminal)),
    );
}

function verifyVerb(verb: Verb, terminal: Terminal, done: (code: number) => void): void {
  verb(
    'verify <environment>',
    'ask the account whether what Slipway takes for granted about AWS holds there',
    'slipway verify research --region us-west-2\n  slipway verify research --region us-west-2 --level train --yes',
  )
    .option('--level <read|deploy|train|efa>', 'how far to go; each level includes the ones before it', 'read')
    .option('--yes', 'do not ask')
    .option('--resume <file>', 'go on from an earlier record')
    .option('--cpu-type <type>', 'instance type of the jobs of level train', 'ml.m5.large')
    .option('--efa-type <type>', 'instance type of level efa')
    .option('--image <uri>', "image of the jobs; default: the environment's own")
    .action(async (environment: string, options: VerifyOptions) =>
      done(await (await import('./verify/verify.js')).verify(environment, options, terminal)),
    );
}

/** Verbs on runs that were launched. */
function runVerbs(verb: Verb, terminal: Terminal, done: (code: number) => void): void {
  verb(
    'status <run>',
    'state, attempts, step, last committed checkpoint, spend',
    'slipway status llama2-13b-261101090000\n  slipway status llama2-13b-261101090000 --wait --json',
  )
    .option('--wait', 'follow the run until it ends')
    .action(async (run: string, options: StatusOptions) =>
      done(await (await import('./status.js')).status(run, options, terminal)),
    );
  verb(
    'list',
    'the runs of the team',
    'slipway list --environment research\n  slipway list --environment research/nlp --json',
  ).action(async (options: CommonOptions) => done(await (await import('./list.js')).list(options, terminal)));
  verb(
    'top',
    'every run of the team that is not over: how far it is, when it will be done, what it has spent',
    'slipway top --environment research\n  slipway top --environment research/nlp --json',
  ).action(async (options: CommonOptions) => done(await (await import('./top.js')).top(options, terminal)));
  verb(
    'metrics <run>',
    'step, loss, tokens/s and MFU from the progress lines of a run, drawn in the terminal',
    'slipway metrics llama2-13b-261101090000 --watch\n  slipway metrics llama2-13b-261101090000 --json > steps.jsonl',
  )
    .option('--watch', 'go on until the run ends')
    .action(async (run: string, options: MetricOptions) =>
      done(await (await import('./metrics.js')).metrics(run, options, terminal)),
    );
  verb(
    'logs <run>',
    'lines of all attempts and hosts in the order of time',
    'slipway logs llama2-13b-261101090000 --errors\n  slipway logs llama2-13b-261101090000 --follow --node 3',
  )
    .option('--follow', 'go on until the run ends')
    .option('--node <n>', 'one host only')
    .option('--errors', 'the first error over all hosts')
    .option('--since <time>', '30m, 2h, 1d, or an ISO time')
    .action(async (run: string, options: LogOptions) =>
      done(await (await import('./logs.js')).logs(run, options, terminal)),
    );
  verb(
    'events [run|environment]',
    'decisions, attempts, commits and notices of a run, or of all runs of the team, in the order of time',
    'slipway events llama2-13b-261101090000 --follow\n  slipway events research --since 6h --json | head',
  )
    .option('--follow', 'go on until the run ends; of a whole environment until interrupted')
    .option('--since <time>', '30m, 2h, 1d, or an ISO time; default: everything of a run, 1d of an environment')
    .action(async (target: string | undefined, options: EventOptions) =>
      done(await (await import('./events.js')).events(target, options, terminal)),
    );
  verb(
    'report <run>',
    'timeline, loss, throughput, goodput, checkpoints, spend and EFA verdict of a run',
    'slipway report llama2-13b-261101090000 --html report.html\n  slipway report llama2-13b-261101090000 --json > report.json',
  )
    .option('--html <out>', 'also write the report as one page that opens offline')
    .action(async (run: string, options: ReportOptions) =>
      done(await (await import('./report.js')).report(run, options, terminal)),
    );
  verb(
    'stop <run>',
    'save a checkpoint and stop',
    'slipway stop llama2-13b-261101090000\n  slipway stop llama2-13b-261101090000 --environment research/nlp',
  ).action(async (run: string, options: CommonOptions) =>
    done(await (await import('./desired.js')).stop(run, options, terminal)),
  );
  verb(
    'resume <run>',
    'continue from the newest committed checkpoint',
    'slipway resume llama2-13b-261101090000\n  slipway resume llama2-13b-261101090000 --environment research/nlp',
  ).action(async (run: string, options: CommonOptions) =>
    done(await (await import('./desired.js')).resume(run, options, terminal)),
  );
}

function sandboxVerb(root: Command, terminal: Terminal, done: (code: number) => void): void {
  root
    .command('sandbox <action> [file]')
    .description(
      'start, env, deploy FILE, status or stop: the embedded AWS, which is MiniStack with our SageMaker and Service Quotas',
    )
    .addHelpText(
      'after',
      `
Examples:
  eval "$(slipway sandbox start)"                     # starts it and points this shell at it
  eval "$(slipway sandbox env)"                       # points another shell at it
  slipway sandbox deploy environments/research.yaml --raise-quotas
  eval "$(slipway sandbox env --unset)"               # gives the shell back, before slipway sandbox stop`,
    )
    .option('--state-dir <dir>', 'folder of everything it writes; default .slipway')
    .option('--python <file>', 'interpreter that jobs run with')
    .option('--auth', 'enforce IAM and signatures, over TLS')
    .option('--persist', 'keep the state over a stop')
    .option('--region <region>', "region of the clients' environment")
    .option('--unset', 'with env: lines that take the variables out of the shell again')
    .option('--raise-quotas', 'with deploy: first raise the limits that are below what the environment needs')
    .option('--json', 'print one JSON document on stdout')
    .action(async (action: string, file: string | undefined, options: SandboxOptions) =>
      done(await (await import('./sandbox.js')).sandbox(action, file, options, terminal)),
    );
}

/** Runs the command line and returns its exit code; errors are reported here and nowhere else. */
export async function main(argv: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  let code = 0;
  const asJson = argv.includes('--json');
  try {
    await program(terminal, (result) => {
      code = result;
    }).parseAsync([...argv]);
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return reportError(error, { asJson, file: argv[3] ?? '' }, terminal);
  }
}
