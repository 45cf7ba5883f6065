import {
  type EnvironmentFile,
  type EnvironmentSpec,
  environmentFileSchema,
  resolveEnvironments,
} from '../config/environment-file';
import type { Issue } from '../config/issue';
import type { PartialFile } from '../config/reading/partial-validation';
import { issueOf } from '../config/rule';
import { ENVIRONMENT_CAPACITY_RULES } from './environment/capacity';
import { COMPANY_RULES } from './environment/company';
import type { EnvironmentRule } from './environment/environment-rule';
import { ENVIRONMENT_IMAGE_RULES } from './environment/image';
import { ENVIRONMENT_NETWORK_RULES } from './environment/network';
import { ENVIRONMENT_STORAGE_RULES } from './environment/storage';
import { intended, undoubted } from './partial-file';

/** All named rules for environment files. */
export const ENVIRONMENT_RULES: readonly EnvironmentRule[] = [
  ...COMPANY_RULES,
  ...ENVIRONMENT_NETWORK_RULES,
  ...ENVIRONMENT_STORAGE_RULES,
  ...ENVIRONMENT_IMAGE_RULES,
  ...ENVIRONMENT_CAPACITY_RULES,
];

const SECTIONS = Object.keys(environmentFileSchema.shape);

type Placed = ReturnType<typeof placedFindings>[number];

/** Issues of an environment file beyond its schema, region by region, each reported once. */
export function checkEnvironment(file: EnvironmentFile): Issue[] {
  const specs = resolveEnvironments(file);
  const placed = specs.flatMap((spec) => ENVIRONMENT_RULES.flatMap((rule) => placedFindings(rule, spec, file)));
  const kept = placed.filter((one) => !one.found.isIgnored || isIgnoredEverywhere(one, placed, specs, file));
  const issues = kept.map(({ rule, found: { isIgnored, ...finding }, path }) => issueOf(rule, { ...finding, path }));
  return [...new Map(issues.map((i) => [`${i.rule} ${i.message}`, i])).values()];
}

/** The findings of a rule with the path of the option: at the top level, or in the region that overrides it. */
function placedFindings(rule: EnvironmentRule, spec: EnvironmentSpec, file: EnvironmentFile) {
  return rule.check(spec, file).map((found) => ({ rule, found, path: placeOf(found.path, spec.region, file) }));
}

function isIgnoredEverywhere(
  { path, found }: Placed,
  placed: readonly Placed[],
  specs: readonly EnvironmentSpec[],
  file: EnvironmentFile,
): boolean {
  const readers = specs.filter(({ region }) => placeOf(found.path, region, file) === path);
  return placed.filter((other) => other.path === path && other.found.isIgnored).length >= readers.length;
}

/** The path as the user wrote it: `network.existing`, or `regions.us-east-1.network.existing` if that region overrides it. */
function placeOf(path: string, region: string, file: EnvironmentFile): string {
  const names = path.split(/[.[\]]+/);
  const here = depthOf(names, file.regions[region]);
  return here === 0 || here < depthOf(names, file) ? path : `regions.${region}.${path}`;
}

/** How many names of a path exist. */
function depthOf([name = '', ...names]: readonly string[], sections: unknown): number {
  const isThere = typeof sections === 'object' && sections !== null && Object.hasOwn(sections, name);
  return isThere ? 1 + depthOf(names, (sections as Record<string, unknown>)[name]) : 0;
}

/** Rule issues for the rest of a file that the schema rejected, without those that may be caused by the rejected values. */
export function checkPartialEnvironment({ versions, refused, leftOut }: PartialFile<EnvironmentFile>): Issue[] {
  const doubtful = new Set(leftOut.map(sectionOf));
  const silent = new Set(
    ENVIRONMENT_RULES.filter(({ reads }) => reads.some((section) => doubtful.has(section))).map(({ id }) => id),
  );
  return undoubted(versions.map(checkEnvironment), refused).filter(({ rule }) => !silent.has(rule));
}

/** The section of a path, below its region if it has one. */
const sectionOf = (path: string): string => intended(/^(?:regions\.[\w-]+\.)?(\w+)/.exec(path)?.[1] ?? '', SECTIONS);
