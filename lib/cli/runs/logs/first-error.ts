import type { RunLine } from './log-tail';

/** Lines that contain an error itself, not its consequences. */
const ERROR_LINE = /\b(Traceback|\w*Error\b|\w*Exception\b|error:|FATAL|CUDA out of memory|Segmentation fault)/;
const BEFORE = 5;
const AFTER = 15;

/** The first error of all hosts, with the lines around it of the same host and attempt; empty when no line looks like one. */
export function firstError(lines: readonly RunLine[]): RunLine[] {
  const found = lines.find(({ message }) => ERROR_LINE.test(message) && !message.startsWith('slipway {'));
  if (!found) return [];
  const ofHost = lines.filter(({ host, attempt }) => host === found.host && attempt === found.attempt);
  const at = ofHost.indexOf(found);
  return ofHost.slice(Math.max(0, at - BEFORE), at + AFTER + 1);
}
