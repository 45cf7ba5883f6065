import { plainText } from '../../core/config/formats/plain-text';

/** Prints an error of the sandbox; it may contain text of a job, such as the name of an object. */
export const logError = (text: string): void => {
  process.stderr.write(`sandbox: ${plainText(text)}\n`);
};
