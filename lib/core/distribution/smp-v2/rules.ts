import type { Rule } from '../../config/rule';
import { SMP_V2_ADVICE } from './advice';
import { SMP_V2_CLUSTER_RULES } from './cluster-rules';
import { SMP_V2_DEGREE_RULES } from './degree-rules';
import { SMP_V2_OFFLOAD_RULES } from './offload-rules';
import { SMP_V2_PLATFORM_RULES } from './platform-rules';

/** All rules of SMP v2, in the order of their page. */
export const SMP_V2_RULES: readonly Rule[] = [
  ...SMP_V2_DEGREE_RULES,
  ...SMP_V2_PLATFORM_RULES,
  ...SMP_V2_OFFLOAD_RULES,
  ...SMP_V2_CLUSTER_RULES,
  ...SMP_V2_ADVICE,
];
