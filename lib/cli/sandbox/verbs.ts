import { type CommandLine, regionGiven } from '../command-line';
import type { SandboxOptions } from './sandbox';
import type { SimulateOptions } from './simulate';

/** Verbs on the embedded AWS and on the one in memory. */
export function sandboxVerbs(cli: CommandLine): void {
  simulateVerb(cli);
  sandboxVerb(cli);
}

/** It reads nothing but the scenario: none of the options of the other verbs means anything to it. */
function simulateVerb(cli: CommandLine): void {
  cli.root
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
      cli.done(await (await import('./simulate.js')).simulate(file, options, cli.terminal)),
    );
}

function sandboxVerb(cli: CommandLine): void {
  cli.root
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
    .option('--region <region>', "region of the clients' environment", regionGiven)
    .option('--unset', 'with env: lines that take the variables out of the shell again')
    .option('--raise-quotas', 'with deploy: first raise the limits that are below what the environment needs')
    .option('--json', 'print one JSON document on stdout')
    .action(async (action: string, file: string | undefined, options: SandboxOptions) =>
      cli.done(await (await import('./sandbox.js')).sandbox(action, file, options, cli.terminal)),
    );
}
