import { loadEnvironment } from '../../lib/core/config/load';
import { checkEnvironment } from '../../lib/core/rules/environment';

/** Messages of the schema, and of the rules, about an environment in `us-west-2` with these options. */
export function environmentMessages(options: object): string[] {
  const file = { name: 'research', account: '111122223333', regions: { 'us-west-2': {} }, ...options };
  const { value, issues } = loadEnvironment(JSON.stringify(file));
  return [...issues, ...(value ? checkEnvironment(value) : [])].map(({ message }) => message);
}
