// A verb that says what it does when it is interrupted, as `launch`, `verify` and `publish` do, and then removes the file that it is given.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { interruptible, outliveReaders, processTerminal } from '../../../lib/cli/terminal';

const [, , left = ''] = process.argv;
outliveReaders();
void interruptible(
  () => processTerminal.err('interrupted: cleaning up'),
  async (interrupted) => {
    const isWorking = setInterval(() => undefined, 1000);
    const ended = once(interrupted, 'abort');
    processTerminal.out('begun');
    await ended;
    clearInterval(isWorking);
    // An error of the terminal is reported in a later turn.
    await turn();
    processTerminal.err('cleaning up');
    await turn();
    rmSync(left);
  },
);
