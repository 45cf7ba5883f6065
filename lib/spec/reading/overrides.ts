import { parse } from 'yaml';
import { type Issue, issue } from '../issue';

/** Splits `data[1].s3` into ['data', 1, 's3']; undefined when it is not a path. */
export function parsePath(text: string): (string | number)[] | undefined {
  // Names are separated by dots; the first one has no dot before it.
  if (text.startsWith('.')) return undefined;
  const segments: (string | number)[] = [];
  const pattern = /(?:^|\.)([A-Za-z_][\w-]*)|\[(\d+)\]|\["([^"]+)"\]/y;
  let end = 0;
  while (end < text.length) {
    pattern.lastIndex = end;
    const match = pattern.exec(text);
    if (!match) return undefined;
    segments.push(match[1] ?? (match[2] === undefined ? (match[3] ?? '') : Number(match[2])));
    end = pattern.lastIndex;
  }
  return segments.length > 0 ? segments : undefined;
}

/** Applies `--set path=value` to a copy of `data`, in order. The value is parsed as YAML; an empty one removes the key. */
export function applyOverrides(data: unknown, overrides: readonly string[]): { data: unknown; issues: Issue[] } {
  const copy: unknown = structuredClone(data ?? {});
  const issues: Issue[] = [];
  for (const override of overrides) {
    const split = override.indexOf('=');
    const path = split > 0 ? parsePath(override.slice(0, split).trim()) : undefined;
    if (!path || !setAt(copy, path, override.slice(split + 1))) {
      issues.push(
        issue('schema/set', 'error', '--set', {
          must: 'must name a path of the file and a value',
          got: override,
          fix: 'write for example --set compute.instanceCount=2 or --set data[0].channel=train',
        }),
      );
    }
  }
  return { data: copy, issues };
}

function setAt(root: unknown, path: readonly (string | number)[], text: string): boolean {
  const last = path[path.length - 1];
  if (last === undefined || isPrototypeKey(last)) return false;
  let parent = root;
  for (const [i, segment] of path.slice(0, -1).entries()) {
    if (!isContainer(parent) || isPrototypeKey(segment)) return false;
    const container = parent as Record<string | number, unknown>;
    if (container[segment] === undefined || container[segment] === null) {
      container[segment] = typeof path[i + 1] === 'number' ? [] : {};
    }
    parent = container[segment];
  }
  if (!isContainer(parent)) return false;
  const value = readValue(last, text);
  if (value === undefined) delete (parent as Record<string | number, unknown>)[last];
  else (parent as Record<string | number, unknown>)[last] = value;
  return true;
}

function readValue(key: string | number, text: string): unknown {
  if (text.trim() === '') return undefined;
  // A version is text even if it looks like a number: 2.10 is not 2.1.
  if (key === 'version') return text.trim().replace(/^["']|["']$/g, '');
  try {
    return parse(text);
  } catch {
    return text;
  }
}

const isContainer = (value: unknown) => typeof value === 'object' && value !== null;
const isPrototypeKey = (key: string | number) => key === '__proto__' || key === 'constructor' || key === 'prototype';
