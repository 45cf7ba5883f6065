import type { Read } from '../report/read/assemble';
import { Refusal, ServiceError } from './exit';

/** A source that fails on its own. Only what a call can answer is caught: a mistake of ours still shows. */
export async function attempt<T>(read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (error instanceof ServiceError) return { why: error.message };
    if (error instanceof Refusal) return { why: error.issues.map(({ message }) => message).join('; ') };
    throw error;
  }
}
