import { adaptableLayers } from '../../catalog/model/adaptable';
import type { ModelShape } from '../../catalog/model/shape';
import type { RunSpec } from '../../config/run-spec';
import { builtinOnly } from '../own-code';
import { type Finding, type Rule, trainingRule, when } from '../rule';

/**
 * Layers of a mixture that are not linear layers in transformers 5, which stores all experts in one tensor and has its own router: PEFT
 * 0.21 gives them no adapter, or a different one (test/containers/test_adapter_families.py).
 */
export const EXPERT_LAYERS = ['gate_proj', 'up_proj', 'down_proj', 'router'];
const EXPORT = 'code.arguments.export-adapter';
const TARGETS = 'training.lora.targets';

const exportsAdapter = ({ code }: RunSpec) => code.builtin === 'builtin' && code.arguments['export-adapter'] === true;

/** Findings for names of layers that the model does not have, or whose adapters cannot be used. */
function targetFindings(run: RunSpec, targets: readonly string[], shape: ModelShape): Finding[] {
  const known = adaptableLayers(shape);
  const unknown = targets.filter((name) => name !== 'head' && !known.includes(name));
  const adaptsExperts = shape.experts !== undefined && EXPERT_LAYERS.some((layer) => targets.includes(layer));
  return [
    // Merging the adapter into the head would make it differ from the embedding.
    ...when(shape.tiedEmbeddings && targets.includes('head'), {
      path: TARGETS,
      must: 'must not name head when model.architecture.tiedEmbeddings is true',
      got: 'head',
      fix: 'remove it',
    }),
    ...when(unknown.length > 0, {
      path: TARGETS,
      must: `must name layers of the model (${known.join(', ')})`,
      got: unknown.join(', '),
      fix: 'correct the names',
    }),
    ...when(exportsAdapter(run) && adaptsExperts, {
      path: EXPORT,
      must: 'must be left out where training.lora.targets names experts or the router',
      got: targets.join(', '),
      fix: 'use export-weights, or adapters of attention only',
    }),
  ];
}

function adapterFindings(run: RunSpec): Finding[] {
  const { code, training, model, checkpoints, distribution, written } = run;
  const { lora } = training;
  if (!lora)
    return when(exportsAdapter(run), {
      path: EXPORT,
      must: 'must be used with training.lora',
      got: true,
      fix: 'remove it, or use export-weights',
    });
  if (code.builtin !== 'builtin') return [builtinOnly('training.lora')];
  return [
    ...when(!written.model?.weights && !checkpoints.startFrom, {
      path: 'training.lora',
      must: 'must be used with model.weights or checkpoints.startFrom',
      fix: 'add model.weights',
    }),
    ...when(distribution.library === 'smp-v2', {
      path: 'training.lora',
      must: 'must be left out with smp-v2 in the built-in trainer',
      got: `rank ${lora.rank}`,
      fix: 'use fsdp',
    }),
    ...(model ? targetFindings(run, lora.targets, model.architecture) : []),
  ];
}

/** Rules for low-rank adapters. */
export const ADAPTER_RULES: readonly Rule[] = [
  {
    id: 'training/lora',
    level: 'error',
    what: 'training.lora requires the built-in trainer with fsdp, ddp or deepspeed, pretrained weights, and targets that are layers of the model.',
    why: 'User code would ignore it, adapters on random weights are useless, and with unknown layers every instance would start and then exit with code 77.',
    source: 'docs/reference/run-file.md',
    check: adapterFindings,
  } satisfies Rule,
].map(trainingRule);
