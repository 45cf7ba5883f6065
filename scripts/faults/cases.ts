import { CLOCK_CASES } from './cases-clock';
import { CREATE_CASES } from './cases-create';
import { DEPLOY_CASES } from './cases-deploy';
import { STILL_CASES } from './cases-still';
import { STORAGE_CASES } from './cases-storage';
import { TRAINER_CASES } from './cases-trainer';
import { TRAINING_CASES } from './cases-training';
import type { FaultCase } from './fault-case';

export const CASES: readonly FaultCase[] = [
  ...CREATE_CASES,
  ...TRAINING_CASES,
  ...STILL_CASES,
  ...STORAGE_CASES,
  ...TRAINER_CASES,
  ...DEPLOY_CASES,
  ...CLOCK_CASES,
];
