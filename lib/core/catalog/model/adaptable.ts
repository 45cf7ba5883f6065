import type { ModelShape } from './shape';

/** The linear layers of attention, by the names of the built-in trainer. */
function ofAttention({ latentAttention }: ModelShape): string[] {
  if (!latentAttention) return ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
  const queries = latentAttention.qRank === undefined ? ['q_proj'] : ['q_a_proj', 'q_b_proj'];
  return [...queries, 'kv_a_proj_with_mqa', 'kv_b_proj', 'o_proj'];
}

/** The layers that can have low-rank adapters; containers/trainer/slipway_trainer/adapted.py has the same list. */
export function adaptableLayers(shape: ModelShape): string[] {
  const { experts, sharedExperts, family, gatedMlp, tiedEmbeddings } = shape;
  const hasGate = experts !== undefined && (sharedExperts ?? 0) > 0 && family?.sharedExpertGate;
  return [
    ...ofAttention(shape),
    ...(gatedMlp ? ['gate_proj'] : []),
    ...['up_proj', 'down_proj'],
    ...(experts === undefined ? [] : ['router']),
    ...(hasGate ? ['shared_gate'] : []),
    ...(tiedEmbeddings ? [] : ['head']),
  ];
}
