import { orList } from '../core/config/issue';
import { UsageError } from './exit';

/**
 * The option that selects what a verb does; undefined when none is given.
 * @param modes the other options that each of them takes; `''` stands for the verb without any of them
 * @throws UsageError for two of them, and for an option that the selected one does not take
 */
export function modeOf<Mode extends string>(
  options: object,
  modes: Readonly<Record<Mode | '', readonly string[]>>,
): Mode | undefined {
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const [mode = '', second] = Object.keys(modes).filter((name) => given.includes(name));
  if (second !== undefined) throw unsuited(second, mode);
  const taken: readonly string[] = modes[mode as Mode | ''];
  const others = Object.values<readonly string[]>(modes).flat();
  const wrong = given.find((name) => others.includes(name) && !taken.includes(name));
  if (wrong === undefined) return mode === '' ? undefined : (mode as Mode);
  if (mode !== '') throw unsuited(wrong, mode);
  const takers = Object.entries<readonly string[]>(modes).flatMap(([name, its]) => (its.includes(wrong) ? [name] : []));
  throw new UsageError(
    `${flag(wrong)}: must be used with ${orList(takers.map(flag))}, got ${flag(wrong)} alone; add ${flag(takers[0] ?? '')}`,
  );
}

const unsuited = (option: string, mode: string): UsageError =>
  new UsageError(`${flag(option)}: must not be used with ${flag(mode)}, got both; leave one of them out`);

const flag = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
