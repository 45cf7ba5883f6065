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
    description: 'Whether the weights of the chosen experts are divided by their sum.',
    default: true,
  }),
  bias: z.boolean().optional().meta({
    description:
      'Whether a bias per expert, which is loaded and not trained, is added for the choice of experts alone.',
    default: false,
  }),
  groups: count
    .optional()
    .meta({ description: 'Number of groups that the experts stand in.', default: 1, examples: [8] }),
  topGroups: count.optional().meta({
    description: 'Number of groups whose experts a token may visit. Default: `groups`.',
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
      description: 'Number of experts that every token visits, beside the routed ones.',
      default: 0,
      examples: [1],
    }),
  denseLayers: layers.optional().meta({
    description:
      'Layers without experts: how many of the first ones, or a list of layer numbers from 0 on. Default: none.',
    examples: [3, [0, 1]],
  }),
  routing: routing.optional().meta({
    description: 'How the router weighs and chooses experts. Default: softmax, normalised.',
    examples: [{ score: 'sigmoid', bias: true, groups: 8, topGroups: 4 }],
  }),
};
