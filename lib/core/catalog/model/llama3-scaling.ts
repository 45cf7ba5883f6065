import type { RopeScaling } from './shape';

/** RoPE scaling of Llama 3.1 (factor 8), 3.2 (factor 32) and models made like them, from their config.json. */
export const llama3Scaling = (factor: number): RopeScaling => ({
  type: 'llama3',
  factor,
  lowFreqFactor: 1,
  highFreqFactor: 4,
  originalMaxPositionEmbeddings: 8192,
});
