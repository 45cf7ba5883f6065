import type { Rule } from '../../config/rule';
import { SMP_V1_ADVICE } from './advice';
import { SMP_V1_BATCH_RULES } from './batch-rules';
import { SMP_V1_DEGREE_RULES } from './degree-rules';
import { SMP_V1_OPTION_RULES } from './option-rules';
import { SMP_V1_PLATFORM_RULES } from './platform-rules';
import { SMP_V1_TECHNIQUE_ADVICE } from './technique-advice';

/** All rules of SMP v1, in the order of their page. */
export const SMP_V1_RULES: readonly Rule[] = [
  ...SMP_V1_PLATFORM_RULES,
  ...SMP_V1_DEGREE_RULES,
  ...SMP_V1_OPTION_RULES,
  ...SMP_V1_BATCH_RULES,
  ...SMP_V1_ADVICE,
  ...SMP_V1_TECHNIQUE_ADVICE,
];
