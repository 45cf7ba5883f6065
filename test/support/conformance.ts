import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { PYTHON } from './python';

/** Requests that the SageMaker Python SDK v2 made: README there. */
export const SDK_V2 = path.join(__dirname, '../fixtures/conformance/sdk-v2');
/** Folders that hold a request with the run file that stands for it. */
export const CASES = readdirSync(SDK_V2).filter((name) => existsSync(path.join(SDK_V2, name, 'run.yaml')));
/** Descriptor of the environment that they were made for. */
export const ENVIRONMENT = path.join(SDK_V2, 'environment.json');

/** Differences between two files with requests, as compare.py finds them: one a line, '' when there are none. */
export function differences(expected: string, actual: string): string {
  try {
    execFileSync(PYTHON, [path.join(SDK_V2, 'compare.py'), expected, actual, ENVIRONMENT], { encoding: 'utf8' });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
