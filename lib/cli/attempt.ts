import type { Read } from '../report/read/assemble';
import { Refusal, ServiceError } from './exit';

/** Reads a source that may fail on its own. Only expected errors of a call are caught, so that programming errors still surface. */
export async function attempt<T>(read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    if (error instanceof ServiceError) return { why: error.message };
    if (error instanceof Refusal) return { why: error.issues.map(({ message }) => message).join('; ') };
    throw error;
  }
}
