import type { Rule } from '../spec/rule';
import { SMP_V1_ADVICE } from './smp-v1-advice';
import { SMP_V1_BATCH_RULES } from './smp-v1-batch-rules';
import { SMP_V1_DEGREE_RULES } from './smp-v1-degree-rules';
import { SMP_V1_OPTION_RULES } from './smp-v1-option-rules';
import { SMP_V1_PLATFORM_RULES } from './smp-v1-platform-rules';
import { SMP_V1_TECHNIQUE_ADVICE } from './smp-v1-technique-advice';

/** Every rule of SMP v1, in the order of its page. */
export const SMP_V1_RULES: readonly Rule[] = [
  ...SMP_V1_PLATFORM_RULES,
  ...SMP_V1_DEGREE_RULES,
  ...SMP_V1_OPTION_RULES,
  ...SMP_V1_BATCH_RULES,
  ...SMP_V1_ADVICE,
  ...SMP_V1_TECHNIQUE_ADVICE,
];
