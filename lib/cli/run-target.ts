import type { Descriptor } from '../spec/descriptor';
import { findDescriptor } from './environment';
import type { CommonOptions } from './inputs';

/** Verbs on one run need the environment that it belongs to. */
export async function runTarget(options: CommonOptions): Promise<Descriptor> {
  return findDescriptor(options, process.env.SLIPWAY_ENVIRONMENT);
}
