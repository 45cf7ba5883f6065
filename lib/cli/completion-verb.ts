import type { Command } from 'commander';
import type { Terminal } from './terminal';

/** It takes none of the options of the other verbs: its words are those of another call. */
export function completionVerb(root: Command, terminal: Terminal, done: (code: number) => void): void {
  root
    .command('completion <shell> [words...]')
    .description('print the completion script of a shell: bash, zsh or fish')
    .addHelpText(
      'after',
      '\nExamples:\n  eval "$(slipway completion bash)"       # in ~/.bashrc; zsh likewise\n  slipway completion fish | source        # in ~/.config/fish/config.fish',
    )
    .action(async (shell: string, words: string[]) => {
      const [{ completion }, { accountNames }] = await Promise.all([
        import('./completion.js'),
        import('./account-names.js'),
      ]);
      done(await completion(shell, words, root, accountNames, terminal));
    });
}
