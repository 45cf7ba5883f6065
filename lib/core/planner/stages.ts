import { embeddingParameters } from '../catalog/model/parameters';
import type { LayoutInput } from './layout';
import { meanLayerParameters } from './model-size';

/** Number of blocks of the fullest pipeline stage, and of the last one, which also has the head. */
export interface StageLayers {
  most: number;
  last: number;
}

/** Megatron and similar libraries give every stage the same number of blocks; nanotron also counts the head, by its cost. */
export function stageLayers(l: LayoutInput): StageLayers {
  const { layers } = l.model;
  const even = Math.ceil(layers / l.pipeline);
  if (l.pipeline === 1) return { most: layers, last: layers };
  const most = l.stack === 'nanotron' ? Math.max(even, balanced(l)) : even;
  return { most, last: Math.max(1, layers - most * (l.pipeline - 1)) };
}

function balanced(l: LayoutInput): number {
  const headInBlocks = embeddingParameters(l.model) / meanLayerParameters(l.model);
  const share = Math.round((l.model.layers + headInBlocks) / l.pipeline);
  return Math.min(share, Math.floor((l.model.layers - 1) / (l.pipeline - 1)));
}
