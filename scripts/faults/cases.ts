import { CREATE_CASES } from './cases-create';
import { TRAINING_CASES } from './cases-training';
import type { FaultCase } from './fault-case';

export const CASES: readonly FaultCase[] = [...CREATE_CASES, ...TRAINING_CASES];
