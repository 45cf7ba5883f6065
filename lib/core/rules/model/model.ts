import { scalingContradictions } from '../../catalog/model/config-rope';
import type { ModelShape, RopeScaling } from '../../catalog/model/shape';
import { findModel, MODEL_NAMES } from '../../catalog/models';
import { nearest } from '../../catalog/nearest';
import { isHubSource } from '../../config/formats/places';
import { readModelConfig } from '../../config/inline';
import { orList } from '../../config/issue';
import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

const AT = 'model.architecture';

type Written = NonNullable<NonNullable<RunSpec['written']['model']>['architecture']>;

function headFindings(a: Written): Finding[] {
  const kvHeads = a.kvHeads ?? a.attentionHeads;
  const rotated = (a.headSize ?? a.hiddenSize / a.attentionHeads) * (a.partialRotary ?? 1);
  const isUneven = a.headSize === undefined && !a.latentAttention && a.hiddenSize % a.attentionHeads !== 0;
  return [
    ...when(isUneven, `${AT}.attentionHeads`, {
      must: `must divide hiddenSize ${a.hiddenSize}`,
      fix: 'use a divisor, or set headSize',
    }),
    ...when(a.attentionHeads % kvHeads !== 0, `${AT}.kvHeads`, {
      must: `must divide the ${a.attentionHeads} attention heads`,
      fix: 'use a divisor',
    }),
    ...when(a.partialRotary !== undefined && rotated % 2 !== 0, `${AT}.partialRotary`, {
      must: 'must apply to an even number of elements of a head',
      got: rotated,
      fix: 'use another share',
    }),
  ];
}

/** Fields that have no meaning without experts. */
const OF_EXPERTS = ['expertFfnHiddenSize', 'sharedExperts', 'denseLayers', 'routing'] as const;

function mixtureFindings(a: Written): Finding[] {
  const isHalf = (a.experts === undefined) !== (a.expertsPerToken === undefined);
  return [
    ...when(isHalf, a.experts === undefined ? `${AT}.expertsPerToken` : `${AT}.experts`, {
      must: 'must be set together: experts and expertsPerToken',
      fix: 'add the other',
    }),
    ...when((a.expertsPerToken ?? 0) > (a.experts ?? Number.POSITIVE_INFINITY), `${AT}.expertsPerToken`, {
      must: `must be at most the ${a.experts} experts`,
      fix: 'reduce it',
    }),
    ...OF_EXPERTS.flatMap((key) =>
      when(a.experts === undefined && a[key] !== undefined, `${AT}.${key}`, {
        must: 'must be used with experts',
        fix: 'remove it, or add experts and expertsPerToken',
      }),
    ),
  ];
}

function routingFindings({ experts = 1, expertsPerToken = 1, routing }: ModelShape): Finding[] {
  // Too many experts per token without groups are reported by another finding.
  if (routing?.groups === undefined && routing?.topGroups === undefined) return [];
  const { groups = 1, topGroups = groups } = routing;
  const reached = (topGroups * experts) / groups;
  return [
    ...when(experts % groups !== 0, `${AT}.routing.groups`, {
      must: `must divide the ${experts} experts`,
      fix: 'use a divisor',
    }),
    ...when(topGroups > groups || reached < expertsPerToken, `${AT}.routing.topGroups`, {
      must: `must be at most the ${groups} groups, and contain the ${expertsPerToken} experts of a token`,
      got: topGroups,
      fix: 'use another number',
    }),
  ];
}

function layerFindings(a: Written): Finding[] {
  const last = a.layers - 1;
  const beyond = (list: unknown) => (Array.isArray(list) ? list.filter((layer) => layer > last) : []);
  const lists = { denseLayers: a.denseLayers, 'slidingWindow.pattern': a.slidingWindow?.pattern };
  return [
    ...Object.entries(lists).flatMap(([key, list]) =>
      when(beyond(list).length > 0, `${AT}.${key}`, {
        must: `must be layer indices from 0 to ${last}`,
        got: beyond(list),
        fix: 'correct the list or layers',
      }),
    ),
    ...when(typeof a.denseLayers === 'number' && a.denseLayers >= a.layers, `${AT}.denseLayers`, {
      must: `must leave at least one of the ${a.layers} layers for the experts`,
      fix: 'reduce it',
    }),
  ];
}

function latentFindings(a: Written): Finding[] {
  if (!a.latentAttention) return [];
  return [
    ...(['kvHeads', 'headSize', 'partialRotary', 'qkNorm'] as const).flatMap((key) =>
      when(a[key] !== undefined, `${AT}.${key}`, { must: 'must be omitted with latentAttention, which determines it' }),
    ),
    ...when(a.latentAttention.ropeHeadSize % 2 !== 0, `${AT}.latentAttention.ropeHeadSize`, {
      must: 'must be even',
      fix: 'use an even size',
    }),
  ];
}

function ropeFindings(given: RopeScaling | undefined): Finding[] {
  const path = `${AT}.ropeScaling`;
  const [fast, slow] = given?.type === 'yarn' ? [given.betaFast ?? 32, given.betaSlow ?? 1] : [1, 0];
  return [
    ...scalingContradictions(given).map(({ field, must, fix }) => ({
      path: `${path}.${field}`,
      must: `must be ${must}`,
      fix,
    })),
    ...when(fast <= slow, `${path}.betaFast`, {
      must: `must be greater than betaSlow ${slow}`,
      got: fast,
      fix: 'remove both for 32 and 1',
    }),
  ];
}

/** Rules for what the planner and the trainer must know about the model. */
export const MODEL_RULES: readonly Rule[] = [
  rule('model/named', 'error, local', (run) => {
    const given = run.written.model;
    if (!given)
      return when(run.code.builtin === 'builtin', 'model', {
        must: 'must be set for the built-in trainer',
        fix: 'add model: { preset: llama3-8b }',
      });
    const ways = (['preset', 'config', 'architecture'] as const).filter((way) => given[way] !== undefined);
    return [
      ...when(given.preset !== undefined && !findModel(given.preset), 'model.preset', {
        must: 'must be a preset of the catalog',
        got: given.preset,
        fix: `use ${orList(nearest(given.preset ?? '', MODEL_NAMES))}, or model.architecture`,
      }),
      ...when(ways.length > 1, `model.${ways[1]}`, {
        must: `must not be given together with model.${ways[0]}`,
        got: 'both',
        fix: 'keep one of the two',
      }),
      // That of a model of a hub is inserted with its commit (data/hub-commit).
      ...when(ways.length === 0 && !isHubSource(given.weights), 'model', {
        must: 'must contain a preset, a config or an architecture',
        fix: 'add preset: llama3-8b',
      }),
    ];
  }),
  rule('model/config', 'error, local', (run) => {
    const given = run.written.model?.config;
    return given === undefined ? [] : readModelConfig(given).findings;
  }),
  /** Contradictions in an architecture that a run file gives. */
  rule('model/shape', 'error, local', (run) => {
    const a = run.written.model?.architecture;
    if (!a) return [];
    const resolved = run.model?.architecture;
    return [
      ...headFindings(a),
      ...mixtureFindings(a),
      ...(resolved ? routingFindings(resolved) : []),
      ...layerFindings(a),
      ...latentFindings(a),
      ...ropeFindings(a.ropeScaling),
    ];
  }),
].map(trainingRule);
