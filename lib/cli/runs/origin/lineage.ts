import pc from 'picocolors';
import { plainLines, textTable } from '../../../core/config/formats/plain-text';
import { type Lineage, type LineageRun, lineageRows } from '../../../report/lineage/lineage';
import { findDescriptor } from '../../environment/environment';
import { EXIT } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { json, type Terminal } from '../../terminal';
import { readLineage } from './read-lineage';

/** `slipway status RUN|s3://... --lineage`: shows the data, code, image and earlier runs of a checkpoint, published weights or a run. */
export async function lineage(of: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const found = await readLineage(await findDescriptor(options), of);
  terminal.out(options.json ? json(found) : lineageText(plainLines(found)));
  return EXIT.done;
}

/** One block for each run, newest first. */
export function lineageText({ checkpoint, runs, notes }: Lineage): string {
  const head = checkpoint
    ? [`checkpoint ${checkpoint.uri}`, `step ${checkpoint.step}, saved ${checkpoint.savedAt ?? '-'}`, '']
    : [];
  return [...head, ...runs.flatMap(runText), ...notes.map((note) => pc.yellow(`not known: ${note}`))]
    .join('\n')
    .trimEnd();
}

function runText(run: LineageRun): string[] {
  const [first = [], ...rest] = lineageRows(run);
  return [`${pc.bold(run.runId)}  ${run.state}`, textTable(first, rest), ''];
}
