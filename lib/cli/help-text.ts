import type { Command } from 'commander';

/** Columns of the pages that are made from the help. */
const WIDTH = 100;

/** What `slipway VERB --help` prints on a terminal of 100 columns, without colours. */
export function helpOf(verb: Command): string {
  let text = '';
  const width = () => WIDTH;
  verb.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: width, getOutHasColors: () => false });
  verb.outputHelp();
  return text.trimEnd();
}
