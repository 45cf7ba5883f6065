import { z } from 'zod';

/** What the JSON Schema and the documentation say of a field. */
export interface Described {
  description?: string;
  default?: unknown;
  examples?: unknown[];
}

/** A field of a file that must be given. */
export const field = <T extends z.ZodType>(type: T, description: string, more: Described = {}): T =>
  type.meta({ description, ...more });

/** A field of a file that may be left out. */
export const option = <T extends z.ZodType>(type: T, description: string, more: Described = {}) =>
  field(type.optional(), description, more);

/** A field of a file that is true or false. */
export const flag = (description: string, byDefault = false) =>
  option(z.boolean(), description, { default: byDefault });

/** A section with these fields. */
export const section = <T extends z.ZodRawShape>(description: string, fields: T) =>
  z.strictObject(fields).meta({ description });

/** Text of this form, or the reason why it is refused. */
export const formed = (form: RegExp, must: Parameters<z.ZodString['regex']>[1]) => z.string().regex(form, must);

const words = z.union([z.string(), z.number(), z.boolean()], { error: 'must be text, a number, true or false' });

/** Text that needs no quotes: numbers, true and false are kept as they are written in the file. */
export const written = words.transform(String);

/** Whether a schema, without its wrappers, is that of `written`. */
export const isWritten = (schema: unknown): boolean => schema === words;

/** A section in which the options `Given` have their defaults. */
export type Filled<T, Given extends keyof T> = Omit<T, Given> & Required<Pick<T, Given>>;
