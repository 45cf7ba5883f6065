import type { LineageRun } from './lineage';

/** Name and value of each item of a run's origin; a dash when not known. */
export function lineageRows({ configHash, code, driverHash, image, data, parents }: LineageRun): [string, string][] {
  return [
    ['configuration', configHash ?? '-'],
    ['code', [code.source, code.sha256].filter((part) => part !== null).join('  ') || '-'],
    ['driver', driverHash ?? '-'],
    ['image', image ?? '-'],
    ...data.channels.map(({ channel, source }): [string, string] => [`data ${channel}`, source]),
    ['data digest', data.digest ?? '-'],
    ...parents.map(({ source, step, by }): [string, string] => ['from', `${source}${stepText(source, step)} (${by})`]),
  ];
}

/** The step, unless the URI ends with it. */
const stepText = (source: string, step: number | null): string =>
  step === null || source.replace(/\/$/, '').endsWith(`step-${step}`) ? '' : ` at step ${step}`;
