import { z } from 'zod';
import { count } from './formats';

const layers = z.union([z.int().min(0), z.array(z.int().min(0)).min(1)], {
  error: 'must be a number of layers, or a list of layer numbers from 0 on',
});

const routing = z.strictObject({
  score: z.enum(['softmax', 'sigmoid']).optional().meta({
    description: 'Function of the router outputs.',
    default: 'softmax',
  }),
  normalise: z.boolean().optional().meta({
    description: 'Whether the weights of the selected experts are divided by their sum.',
    default: true,
  }),
  bias: z.boolean().optional().meta({
    description:
      'Whether a bias per expert is added to the scores for the selection of experts only. The bias is loaded and not trained.',
    default: false,
  }),
  groups: count.optional().meta({ description: 'Number of expert groups.', default: 1, examples: [8] }),
  topGroups: count.optional().meta({
    description: 'Number of groups from which experts can be selected for a token. Default: `groups`.',
    examples: [4],
  }),
});

/** Fields of a mixture of experts. */
export const mixtureFields = {
  experts: count.optional().meta({
    description: 'Number of routed experts of a mixture-of-experts layer. Default: none, a dense model.',
    examples: [8],
  }),
  expertsPerToken: count.optional().meta({
    description: 'Number of experts that each token is routed to. Must be given with `experts`. Default: none.',
    examples: [2],
  }),
  expertFfnHiddenSize: count.optional().meta({
    description: 'Inner width of one expert. Default: `ffnHiddenSize`.',
    examples: [2048],
  }),
  sharedExperts: z
    .int()
    .min(0)
    .optional()
    .meta({
      description: 'Number of shared experts, which process every token in addition to the routed experts.',
      default: 0,
      examples: [1],
    }),
  denseLayers: layers.optional().meta({
    description:
      'Layers without experts: the number of first layers, or a list of layer indexes, starting at 0. Default: none.',
    examples: [3, [0, 1]],
  }),
  routing: routing.optional().meta({
    description: 'How the router weights and selects experts. Default: softmax, normalized.',
    examples: [{ score: 'sigmoid', bias: true, groups: 8, topGroups: 4 }],
  }),
};
