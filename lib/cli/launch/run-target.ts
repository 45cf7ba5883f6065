import type { Descriptor } from '../../spec/descriptor';
import { findDescriptor } from '../environment/environment';
import type { CommonOptions } from '../inputs';

/** What `launch --run-id` takes: the name of a job has room for no more. */
export const RUN_ID = /^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/;

/** Verbs on one run need the environment that it belongs to. */
export async function runTarget(options: CommonOptions): Promise<Descriptor> {
  return findDescriptor(options);
}
