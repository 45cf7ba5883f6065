import { checkEnvironment } from '../rules/environment';
import { checkEnvironmentSupport } from '../rules/environment-support';
import { hasErrors, type Issue } from '../spec/issue';
import { isEnvironmentFile, type Loaded, loadEnvironment } from '../spec/load';
import { EXIT } from './exit';
import { type CommonOptions, checkRunFile, isDescriptorFile, readDescriptor, readText } from './inputs';
import { issueLine, json, type Terminal } from './terminal';

/** `slipway validate FILE`: schema and every rule, offline. */
export function validate(file: string, options: CommonOptions, terminal: Terminal): number {
  const { issues, positionOf } = findIssues(file, options);
  const ok = !hasErrors(issues);
  if (options.json) terminal.out(json({ ok, issues }));
  else printIssues(file, issues, positionOf, terminal);
  return ok ? EXIT.done : EXIT.refused;
}

function findIssues(
  file: string,
  options: CommonOptions,
): { issues: Issue[]; positionOf: Loaded<unknown>['positionOf'] } {
  const text = readText(file);
  if (isEnvironmentFile(text)) {
    const loaded = loadEnvironment(text, options.set);
    return {
      ...loaded,
      issues: [
        ...loaded.issues,
        ...(loaded.value ? [...checkEnvironment(loaded.value), ...checkEnvironmentSupport(loaded.value)] : []),
      ],
    };
  }
  // A name would need a service call; offline only a descriptor file says something about the environment.
  const descriptor =
    options.environment && isDescriptorFile(options.environment) ? readDescriptor(options.environment) : undefined;
  return checkRunFile(file, options, descriptor);
}

function printIssues(
  file: string,
  issues: Issue[],
  positionOf: Loaded<unknown>['positionOf'],
  terminal: Terminal,
): void {
  for (const found of issues) terminal.err(issueLine(found, file, positionOf));
  const count = (level: string) => issues.filter((i) => i.level === level).length;
  const [errors, warnings] = [count('error'), count('warning')];
  terminal.err(
    errors > 0 ? `${file}: ${errors} error(s), ${warnings} warning(s)` : `${file}: valid, ${warnings} warning(s)`,
  );
}
