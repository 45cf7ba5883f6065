import { findModel, MODEL_NAMES } from '../../catalog/models';
import { nearest } from '../../catalog/nearest';
import { isHubSource } from '../../config/formats/hub-source';
import { orList } from '../../config/issue';
import { readModelConfig } from '../../config/model-config';
import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';
import { shapeFindings } from './shape';

function named(run: RunSpec): Finding[] {
  const given = run.written.model;
  if (!given)
    return when(run.code.builtin === 'builtin', {
      path: 'model',
      must: 'must be set for the built-in trainer',
      fix: 'add model: { preset: llama3-8b }',
    });
  const ways = (['preset', 'config', 'architecture'] as const).filter((way) => given[way] !== undefined);
  return [
    ...when(given.preset !== undefined && !findModel(given.preset), {
      path: 'model.preset',
      must: 'must be a preset of the catalog',
      got: given.preset,
      fix: `use ${orList(nearest(given.preset ?? '', MODEL_NAMES))}, or model.architecture`,
    }),
    ...when(ways.length > 1, {
      path: `model.${ways[1]}`,
      must: `must not be given together with model.${ways[0]}`,
      got: 'both',
      fix: 'keep one of the two',
    }),
    // That of a model of a hub is inserted with its commit (data/hub-commit).
    ...when(ways.length === 0 && !isHubSource(given.weights), {
      path: 'model',
      must: 'must contain a preset, a config or an architecture',
      fix: 'add preset: llama3-8b',
    }),
  ];
}

const config = (run: RunSpec): Finding[] => {
  const given = run.written.model?.config;
  return given === undefined ? [] : readModelConfig(given).findings;
};

const RULES: readonly Rule[] = [
  {
    id: 'model/named',
    level: 'error',
    isLocal: true,
    what: 'The model is a preset of the catalog, a config.json or an architecture.',
    why: 'The trainer and the planner need the shape of the model.',
    source: 'lib/core/catalog/models.ts',
    check: named,
  },
  {
    id: 'model/config',
    level: 'error',
    isLocal: true,
    what: 'model.config is a config.json of a known family, without keys that are unknown or contradict each other.',
    why: 'A key that Slipway does not know may change the size or the computation of the model.',
    source: 'lib/core/catalog/model/families',
    check: config,
  },
  {
    id: 'model/shape',
    level: 'error',
    isLocal: true,
    what: 'The number of heads divides the hidden size, the number of key/value heads divides the number of heads, experts have a number per token, and lists of layers contain valid layer indexes.',
    why: 'Otherwise the tensors have no valid shape.',
    source: 'https://arxiv.org/abs/2305.13245',
    check: shapeFindings,
  },
];

/** Rules for what the planner and the trainer must know about the model. */
export const MODEL_RULES: readonly Rule[] = RULES.map(trainingRule);
