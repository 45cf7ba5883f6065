import { readdirSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import path from 'node:path';

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

/**
 * Lines of the sources that a bundle ran, as `file:line` with files relative to the root: what V8 counted (NODE_V8_COVERAGE) through the
 * bundle's source map. A mutant of any other line is never played.
 * @param folder where the process wrote its coverage
 */
export function reachedLines(root: string, outfile: string, folder: string): Set<string> {
  const code = readFileSync(outfile, 'utf8');
  const map = new SourceMap(JSON.parse(readFileSync(`${outfile}.map`, 'utf8')) as SourceMapPayload);
  const ranges = readRanges(folder, outfile);
  const runs = ranges.map((of) => countsOf(code.length, of.flat()));
  const reached = new Set<string>();
  let offset = 0;
  let file = '';
  for (const [number, line] of code.split('\n').entries()) {
    // esbuild names each module before its code.
    file = /^\s*\/\/ ((?:\w[^:]*\/)?[\w.-]+\.\w+)$/.exec(line)?.[1] ?? file;
    if (file.startsWith('lib/') && !isIdleFunction(line, offset)) addLine(number, line, offset);
    offset += line.length + 1;
  }
  const idle = idleFiles();
  return new Set([...reached].filter((line) => !idle.has(line.slice(0, line.lastIndexOf(':')))));

  /** Files with functions of which none was called: their constants were made, and nothing was done with them. */
  function idleFiles(): Set<string> {
    const [called, all] = [new Set<string>(), new Set<string>()];
    const starts = lineStarts(code);
    for (const [first] of ranges.flat()) {
      // The range of the whole file is no function of a module.
      if (!first || first.endOffset - first.startOffset >= code.length - 1) continue;
      const source = sourceAt(starts, first.startOffset);
      if (source === undefined) continue;
      all.add(source);
      if (first.count > 0) called.add(source);
    }
    return new Set([...all].filter((one) => !called.has(one)));
  }

  function sourceAt(starts: readonly number[], offset: number): string | undefined {
    const line = starts.findLastIndex((start) => start <= offset);
    const entry = map.findEntry(line, offset - (starts[line] ?? 0));
    if (!('originalSource' in entry)) return undefined;
    return path.relative(root, path.resolve(path.dirname(outfile), entry.originalSource));
  }

  /** The line declares one function, which was never called: that its declaration ran says nothing of it. */
  function isIdleFunction(line: string, start: number): boolean {
    const head = /^\s*(?:var|let|const) [\w$]+ = (?=\()/.exec(line)?.[0].length;
    return head !== undefined && line.endsWith(';') && runs.every((counts) => counts[start + head] === 0);
  }

  function addLine(number: number, line: string, start: number): void {
    for (let column = line.search(/\S/); column >= 0 && column < line.length; column++) {
      if (!runs.some((counts) => (counts[start + column] ?? 0) > 0)) continue;
      const entry = map.findEntry(number, column);
      if (!('originalSource' in entry)) continue;
      const source = path.relative(root, path.resolve(path.dirname(outfile), entry.originalSource));
      reached.add(`${source}:${entry.originalLine + 1}`);
    }
  }
}

/** Ranges of each function, of each process. */
function readRanges(folder: string, outfile: string): Range[][][] {
  return readdirSync(folder).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as {
      result: { url: string; functions: { ranges: Range[] }[] }[];
    };
    return result
      .filter(({ url }) => url.endsWith(path.basename(outfile)))
      .map(({ functions }) => functions.map(({ ranges }) => ranges));
  });
}

/** Offset of each line's first character. */
function lineStarts(code: string): number[] {
  const starts = [0];
  for (let at = code.indexOf('\n'); at >= 0; at = code.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** How often each character ran: the innermost range decides. */
function countsOf(length: number, ranges: readonly Range[]): Int32Array {
  const counts = new Int32Array(length).fill(0);
  const outermostFirst = [...ranges].sort((a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset));
  for (const { startOffset, endOffset, count } of outermostFirst) counts.fill(count, startOffset, endOffset);
  return counts;
}
