import pc from 'picocolors';

const started = Date.now();
const seconds = () => ((Date.now() - started) / 1000).toFixed(0).padStart(4);

/** Numbered steps with the time since the start; details below them. */
export const screen = {
  step: (number: number, text: string) =>
    console.log(`\n${pc.dim(`${seconds()} s`)}  ${pc.bold(`${number}. ${text}`)}`),
  detail: (text: string) =>
    console.log(
      text
        .split('\n')
        .map((line) => `        ${line}`)
        .join('\n'),
    ),
  done: (text: string) => console.log(`\n${pc.dim(`${seconds()} s`)}  ${pc.green(text)}`),
  fail: (text: string) => console.error(`\n${pc.dim(`${seconds()} s`)}  ${pc.red(text)}`),
};

export const elapsedSeconds = () => (Date.now() - started) / 1000;
