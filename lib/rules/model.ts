import type { RopeScaling } from '../catalog/model/shape';
import { MODELS } from '../catalog/models';
import { nearest } from '../catalog/nearest';
import { orList } from '../spec/issue';
import type { RunSpec } from '../spec/run-spec';
import { type Finding, type Rule, trainingRule, when } from './rule';

function model(run: RunSpec): Finding[] {
  const given = run.written.model;
  if (!given)
    return when(run.code.builtin === 'builtin', {
      path: 'model',
      must: 'must be given for the built-in trainer',
      fix: 'add model: { preset: llama3-8b }',
    });
  const presets = Object.keys(MODELS);
  return [
    ...when(given.preset !== undefined && !(given.preset in MODELS), {
      path: 'model.preset',
      must: 'must be a preset of the catalog',
      got: given.preset,
      fix: `use ${orList(nearest(given.preset ?? '', presets))}, or model.architecture`,
    }),
    ...when(given.preset !== undefined && given.architecture !== undefined, {
      path: 'model.architecture',
      must: 'must not be given together with model.preset',
      got: 'both',
      fix: 'keep one of the two',
    }),
    ...when(given.preset === undefined && given.architecture === undefined, {
      path: 'model',
      must: 'must name a preset or an architecture',
      fix: 'add preset: llama3-8b',
    }),
  ];
}

function shape(run: RunSpec): Finding[] {
  const a = run.written.model?.architecture;
  if (!a) return [];
  const at = 'model.architecture';
  const kvHeads = a.kvHeads ?? a.attentionHeads;
  return [
    ...when(a.headSize === undefined && a.hiddenSize % a.attentionHeads !== 0, {
      path: `${at}.attentionHeads`,
      must: `must divide hiddenSize ${a.hiddenSize}`,
      got: a.attentionHeads,
      fix: 'use a divisor, or give headSize',
    }),
    ...when(a.attentionHeads % kvHeads !== 0, {
      path: `${at}.kvHeads`,
      must: `must divide the ${a.attentionHeads} attention heads`,
      got: kvHeads,
      fix: 'use a divisor',
    }),
    ...when((a.experts === undefined) !== (a.expertsPerToken === undefined), {
      path: a.experts === undefined ? `${at}.expertsPerToken` : `${at}.experts`,
      must: 'must be given together: experts and expertsPerToken',
      got: a.experts ?? a.expertsPerToken,
      fix: 'add the other',
    }),
    ...when((a.expertsPerToken ?? 0) > (a.experts ?? Number.POSITIVE_INFINITY), {
      path: `${at}.expertsPerToken`,
      must: `must be at most the ${a.experts} experts`,
      got: a.expertsPerToken,
      fix: 'lower it',
    }),
    ...ropeScaling(a.ropeScaling),
  ];
}

function ropeScaling(given: RopeScaling | undefined): Finding[] {
  const path = 'model.architecture.ropeScaling';
  if (given?.type === 'llama3')
    return when(given.highFreqFactor <= given.lowFreqFactor, {
      path: `${path}.highFreqFactor`,
      must: `must be greater than lowFreqFactor ${given.lowFreqFactor}`,
      got: given.highFreqFactor,
      fix: 'Llama 3.1 has 1 and 4',
    });
  if (given?.type !== 'yarn') return [];
  const [fast, slow] = [given.betaFast ?? 32, given.betaSlow ?? 1];
  return when(fast <= slow, {
    path: `${path}.betaFast`,
    must: `must be greater than betaSlow ${slow}`,
    got: fast,
    fix: 'leave both out for 32 and 1',
  });
}

const RULES: readonly Rule[] = [
  {
    id: 'model/named',
    level: 'error',
    isLocal: true,
    what: 'The model is a preset of the catalog or an architecture.',
    why: 'Trainer and planner need its shape.',
    source: 'lib/catalog/models.ts',
    check: model,
  },
  {
    id: 'model/shape',
    level: 'error',
    isLocal: true,
    what: 'Heads divide the hidden size, key/value heads divide the heads, experts come with their number per token.',
    why: 'The tensors cannot be shaped otherwise.',
    source: 'https://arxiv.org/abs/2305.13245',
    check: shape,
  },
];

/** What the planner and the trainer must know of the model. */
export const MODEL_RULES: readonly Rule[] = RULES.map(trainingRule);
