import type { TemplateResource } from '../../cdk/support/app';
import { createOnlyProperties } from './identity';

export type Resources = Record<string, TemplateResource>;

/** A resource that CloudFormation makes while everything of the old template still exists. */
export interface Made {
  id: string;
  resource: TemplateResource;
  /** Whether it takes the place of one with the same logical id. */
  replaces: boolean;
}

/**
 * Logical ids whose resources CloudFormation replaces in an update: a create-only property differs, or refers to a resource that is
 * replaced itself.
 */
export function replacedIds(before: Resources, after: Resources): Set<string> {
  const shared = Object.keys(after).filter((id) => before[id]?.Type === after[id]?.Type);
  const replaced = new Set(shared.filter((id) => fixedOf(before[id]) !== fixedOf(after[id])));
  for (let size = -1; size !== replaced.size; ) {
    size = replaced.size;
    for (const id of shared) {
      const refers = [...replaced].some((other) => fixedOf(after[id]).includes(`"${other}"`));
      if (refers) replaced.add(id);
    }
  }
  return replaced;
}

/** What an update makes: resources that are new, and those that replace another one. */
export function madeBy(before: Resources, after: Resources): Made[] {
  const replaced = replacedIds(before, after);
  return Object.entries(after).flatMap(([id, resource]) =>
    before[id] && !replaced.has(id) ? [] : [{ id, resource, replaces: replaced.has(id) }],
  );
}

function fixedOf(resource: TemplateResource | undefined): string {
  const names = createOnlyProperties(resource?.Type ?? '');
  return JSON.stringify(names.map((name) => [name, resource?.Properties?.[name]]));
}

/** Whether two IPv4 ranges share an address. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [rangeOf(one), rangeOf(other)];
  return a.first <= b.last && b.first <= a.last;
}

function rangeOf(cidr: string): { first: number; last: number } {
  const [address = '', length = '32'] = cidr.split('/');
  const first = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  return { first, last: first + 2 ** (32 - Number(length)) - 1 };
}
