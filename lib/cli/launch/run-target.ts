import type { Descriptor } from '../../core/config/descriptor';
import { findDescriptor } from '../environment/environment';
import type { CommonOptions } from '../inputs';

/** Allowed values of `launch --run-id`: the name of a job has no room for more. */
export const RUN_ID = /^[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?$/;

/** The descriptor for a verb on one run, which needs the environment of the run. */
export async function runTarget(options: CommonOptions): Promise<Descriptor> {
  return findDescriptor(options);
}
