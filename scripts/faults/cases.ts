import { CREATE_CASES } from './cases-create';
import { STILL_CASES } from './cases-still';
import { STORAGE_CASES } from './cases-storage';
import { TRAINING_CASES } from './cases-training';
import type { FaultCase } from './fault-case';

export const CASES: readonly FaultCase[] = [...CREATE_CASES, ...TRAINING_CASES, ...STILL_CASES, ...STORAGE_CASES];
