import { ServiceError, type ServiceModel, type Shape } from './api-call';

/**
 * Validates a request against the service's own model, with the messages that the services use: `1 validation error detected: Value 'x' at
 * 'trainingJobName' failed to satisfy constraint: Member must ...`. Members that the model does not contain are ignored, like in the
 * services.
 * @throws ServiceError ValidationException with all violations, or SerializationException for a wrong JSON type
 */
export function validateInput(model: ServiceModel, operation: string, input: unknown): void {
  const shape = model.operations[operation]?.input?.shape;
  if (!shape) return;
  const violations = violationsOf(model, shape, input, '');
  if (violations.length === 0) return;
  const count = `${violations.length} validation error${violations.length > 1 ? 's' : ''} detected`;
  throw new ServiceError('ValidationException', `${count}: ${violations.join('; ')}`);
}

function violationsOf(model: ServiceModel, shapeName: string, value: unknown, at: string): string[] {
  const shape = model.shapes[shapeName];
  if (!shape) return [];
  requireJsonType(shape, value, at);
  const own = constraintsOn(shape, value).map(
    (constraint) => `Value '${display(value)}' at '${at}' failed to satisfy constraint: ${constraint}`,
  );
  return [...own, ...nested(model, shape, value, at)];
}

function nested(model: ServiceModel, shape: Shape, value: unknown, at: string): string[] {
  if (shape.type === 'structure') return structure(model, shape, value as Record<string, unknown>, at);
  const { member, key, value: item } = shape;
  if (shape.type === 'list' && member)
    return (value as unknown[]).flatMap((v, i) => violationsOf(model, member.shape, v, `${at}.${i + 1}.member`));
  if (shape.type === 'map' && key && item)
    return Object.entries(value as object).flatMap(([name, v]) => [
      ...mapKey(model.shapes[key.shape], name, at),
      ...violationsOf(model, item.shape, v, `${at}.${name}.member`),
    ]);
  return [];
}

function structure(model: ServiceModel, shape: Shape, value: Record<string, unknown>, at: string): string[] {
  const prefix = at === '' ? '' : `${at}.`;
  const isMissing = (name: string) => value[name] === undefined || value[name] === null;
  const missing = (shape.required ?? []).filter(isMissing);
  const present = Object.entries(shape.members ?? {}).filter(([name]) => !isMissing(name));
  return [
    ...missing.map(
      (name) => `Value null at '${prefix}${lowerFirst(name)}' failed to satisfy constraint: Member must not be null`,
    ),
    ...present.flatMap(([name, { shape: member }]) =>
      violationsOf(model, member, value[name], `${prefix}${lowerFirst(name)}`),
    ),
  ];
}

function mapKey(shape: Shape | undefined, name: string, at: string): string[] {
  const broken = shape ? constraintsOn(shape, name) : [];
  return broken.map(
    (c) => `Value '${name}' at '${at}' failed to satisfy constraint: Map keys must satisfy constraint: [${c}]`,
  );
}

function constraintsOn(shape: Shape, value: unknown): string[] {
  const size = sizeOf(shape, value);
  const word = typeof value === 'number' ? 'value' : 'length';
  const broken: string[] = [];
  if (size > (shape.max ?? size)) broken.push(`Member must have ${word} less than or equal to ${shape.max}`);
  if (size < (shape.min ?? size)) broken.push(`Member must have ${word} greater than or equal to ${shape.min}`);
  if (shape.type === 'string' && shape.pattern && !pattern(shape.pattern).test(String(value)))
    broken.push(`Member must satisfy regular expression pattern: ${shape.pattern}`);
  if (shape.type === 'string' && shape.enum && !shape.enum.includes(String(value)))
    broken.push(`Member must satisfy enum value set: [${shape.enum.join(', ')}]`);
  return broken;
}

/** What the limits of a shape are about; not a number if it has none. */
function sizeOf(shape: Shape, value: unknown): number {
  if (typeof value === 'number') return shape.type === 'timestamp' ? Number.NaN : value;
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return shape.type === 'map' ? Object.keys(value as object).length : Number.NaN;
}

const isObject = (value: unknown) => typeof value === 'object' && !Array.isArray(value);

const JSON_TYPE: Readonly<Record<string, (value: unknown) => boolean>> = {
  structure: isObject,
  map: isObject,
  list: Array.isArray,
  string: (v) => typeof v === 'string',
  boolean: (v) => typeof v === 'boolean',
  integer: Number.isInteger,
  long: Number.isInteger,
  float: (v) => typeof v === 'number',
  double: (v) => typeof v === 'number',
  timestamp: (v) => typeof v === 'number' || typeof v === 'string',
};

function requireJsonType(shape: Shape, value: unknown, at: string): void {
  const fits = JSON_TYPE[shape.type];
  if (value === null || (fits && !fits(value)))
    throw new ServiceError('SerializationException', `Expected ${shape.type} at '${at || 'the request'}'`);
}

const compiled = new Map<string, RegExp>();

/**
 * A pattern of a model must match the whole value; some patterns use property classes, which need the `u` flag, and some are invalid with
 * it.
 */
function pattern(source: string): RegExp {
  let made = compiled.get(source);
  if (!made) {
    try {
      made = new RegExp(`^(?:${source})$`, 'u');
    } catch {
      made = new RegExp(`^(?:${source})$`);
    }
    compiled.set(source, made);
  }
  return made;
}

const lowerFirst = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);

function display(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
