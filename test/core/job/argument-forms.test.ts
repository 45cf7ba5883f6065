// An argument of a run file reaches the script in one form under both contracts, or `code/argument-form` says that it does not.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toolkitHyperparameters } from '../../../lib/core/job/image';
import { jobFile } from '../../../lib/core/job/job-file';
import { BASE, issuesOf, planOf, runOf } from '../../support/runs';

const scalar = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);
const key = fc.stringMatching(/^-{0,2}[a-z][a-z_-]{0,6}$/).filter((name) => !name.startsWith('sagemaker'));
const drawnArguments = fc.dictionary(key, fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })), { maxKeys: 4 });

/**
 * The words that the toolkit makes of hyperparameters: `mapping.to_cmd_args` of
 * https://github.com/aws/sagemaker-training-toolkit/blob/master/src/sagemaker_training/mapping.py, which reads each as JSON before.
 */
function toolkitWords(hyperparameters: Record<string, string>): string[] {
  const own = Object.keys(hyperparameters).filter((name) => !name.startsWith('sagemaker_'));
  return own.flatMap((name) => [
    name.length > 1 ? `--${name}` : `-${name}`,
    pythonText(JSON.parse(hyperparameters[name] ?? '')),
  ]);
}

function pythonText(value: unknown): string {
  if (value === null) return '';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return Array.isArray(value) ? `[${value.map(pythonText).join(', ')}]` : String(value);
}

/** Numbers are the same whatever way they are written. */
const sameWord = (word: string) => (word.trim() !== '' && Number.isFinite(Number(word)) ? Number(word) : word);

test('an argument without a warning is the same under both contracts, and false is left out under both', () => {
  fc.assert(
    fc.property(drawnArguments, (drawn) => {
      const code = { source: './src', entryPoint: 'train.py', arguments: drawn };
      const toolkit = { ...BASE, code, distribution: { library: 'ddp', contract: 'toolkit' } };
      const said = issuesOf(toolkit, 'code/argument-form').map(({ path }) => path.replace('code.arguments.', ''));
      const silent = Object.fromEntries(Object.entries(drawn).filter(([name]) => !said.includes(name)));
      const byToolkit = runOf({ ...toolkit, code: { ...code, arguments: silent } });
      const byDriver = runOf({ ...BASE, code: { ...code, arguments: silent } });
      const words = toolkitWords(toolkitHyperparameters(planOf(byToolkit), 'job')).map(sameWord);
      expect(words).toEqual(jobFile(planOf(byDriver)).arguments.map(sameWord));
      for (const [name, value] of Object.entries(drawn)) if (value === false) expect(said).not.toContain(name);
    }),
  );
});
