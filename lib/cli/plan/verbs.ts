import type { CommandLine } from '../command-line';
import type { CommonOptions } from '../inputs';
import type { PlanOptions } from './plan';

/** Verbs on a file, before anything is launched. */
export function planVerbs(cli: CommandLine): void {
  cli
    .verb(
      'schema <run|environment|answers>',
      'print the JSON Schema of a file, for editors, or of what --json prints, for scripts',
      'slipway schema run > run.schema.json\n  slipway schema answers > answers.schema.json',
    )
    .action(async (kind: string) => cli.done((await import('./schema.js')).schema(kind, cli.terminal)));
  cli
    .verb(
      'validate <file>',
      'check a run file or an environment file against every rule, offline',
      'slipway validate runs/llama2-13b.yaml\n  slipway validate environments/research.yaml --json',
    )
    .action(async (file: string, options: CommonOptions) =>
      cli.done(await (await import('./validate.js')).validate(file, options, cli.terminal)),
    );
  planVerb(cli);
}

function planVerb(cli: CommandLine): void {
  cli
    .verb(
      'plan [file]',
      'memory fit, step time, hours and dollars before launch',
      'slipway plan runs/llama3-8b-fsdp.yaml --set compute.instanceCount=8\n  slipway plan runs/llama3-8b-fsdp.yaml --search --html plan.html',
    )
    .option('--search', "find faster and cheaper layouts inside the run's library")
    .option('--search-libraries <a,b>', 'search in these libraries too')
    .option('--html <file>', 'draw memory, step time, scaling and Pareto front')
    .option('--by <date>', 'ways to have the run done by then: on demand, spot, training plans; buys nothing')
    .option(
      '--calibrate <run...>',
      'measured runs (ids, or files of report --json): later plans of the environment use them',
    )
    .action(async (file: string | undefined, options: PlanOptions) =>
      cli.done(await (await import('./plan.js')).plan(file, options, cli.terminal)),
    );
}
