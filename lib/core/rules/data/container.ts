import { CODE_IN_IMAGE } from '../../config/code-source';
import { type Rule, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

const inImage = ({ code }: RunSpec): boolean => code.source === CODE_IN_IMAGE;

/** Rules for a program that is in the image, where the container has no Slipway component. */
export const CONTAINER_RULES: readonly Rule[] = [
  /** Findings for options of the image's own program when another program is started. */
  rule('code/container-options', 'error, local', (run) => {
    if (inImage(run)) return [];
    const given = (['containerEntrypoint', 'containerArguments'] as const).filter((key) => run.code[key] !== undefined);
    return [
      ...given.map((key) => ({
        path: `code.${key}`,
        must: 'must be used with code.source image: the driver or the toolkit starts other code',
        fix: 'set source: image, or use code.entryPoint and code.arguments',
      })),
      ...when(run.distribution.contract === 'container', 'distribution.contract', {
        must: 'must be entrypoint or toolkit unless code.source is image',
        fix: 'remove it, or set code.source: image',
      }),
    ];
  }),
  rule('code/container', 'error', (run) => {
    if (!inImage(run)) return [];
    const { contract, library } = run.distribution;
    return [
      ...when(run.kind === 'processing', 'code.source', {
        must: 'must be builtin-tokenize, builtin-fetch or custom code for a processing run',
        fix: 'use a folder with the program, or kind: training',
      }),
      ...when(contract !== 'container', 'distribution.contract', {
        must: 'must be container with code.source image',
        fix: 'remove it',
      }),
      ...when(library !== 'custom', 'distribution.library', {
        must: 'must be custom with code.source image: it would have no effect on the program',
        fix: 'remove it',
      }),
    ];
  }),
  /** Findings for options that only the driver or the toolkit reads, when neither is used. */
  rule('code/container-without-driver', 'error', (run) => {
    if (!inImage(run)) return [];
    const { code, distribution = {}, model } = run.written;
    const given: [string, unknown][] = [
      ...(['entryPoint', 'arguments', 'requirements', 'sha256'] as const).map((key): [string, unknown] => [
        `code.${key}`,
        code[key],
      ]),
      ...(['launcher', 'processesPerHost', 'parameters', 'mpiOptions', 'instanceGroups'] as const).map(
        (key): [string, unknown] => [`distribution.${key}`, distribution[key]],
      ),
      ['model.weights', model?.weights],
    ];
    return given
      .filter(([, value]) => value !== undefined)
      .map(([path, got]) => ({
        path,
        must: 'must be omitted with code.source image: the image starts its own program',
        got,
        fix: path === 'model.weights' ? 'add the weights as a channel of data' : 'use code.containerArguments',
      }));
  }),
];
