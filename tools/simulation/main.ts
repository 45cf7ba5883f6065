// `npm run -s simulate -- SCENARIO.yaml`: the functions of the control plane on a virtual clock against an AWS in memory (docs/simulate.md).
import { Command } from 'commander';
import { reportError } from '../../lib/cli/report-error';
import { processTerminal } from '../../lib/cli/terminal';
import { type SimulateOptions, simulate } from './command/simulate';

new Command('simulate')
  .description('run the functions of the control plane against an in-memory AWS on a virtual clock')
  .argument('<scenario>')
  .option('--seed <n>', 'seed of the random parts of the scenario and of call durations (default: 1)')
  .option('--histories <n>', 'run n seeds; the first failing history is reduced to the shortest scenario that fails')
  .option('--html <file>', 'write a page that charts queue, runs, attempts and decisions over time')
  .option('--json', 'print one JSON document to stdout')
  .addHelpText(
    'after',
    '\nExamples:\n  npm run -s simulate -- test/scenarios/spot-lost.yaml --seed 7\n  npm run -s simulate -- test/scenarios/spot-lost.yaml --histories 100 --html histories.html',
  )
  .action(async (file: string, options: SimulateOptions) => {
    try {
      process.exitCode = await simulate(file, options, processTerminal);
    } catch (error) {
      process.exitCode = reportError(
        error,
        { asJson: options.json === true, hasPrinted: false, file },
        processTerminal,
      );
    }
  })
  .parseAsync();
