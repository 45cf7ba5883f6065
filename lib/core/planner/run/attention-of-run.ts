import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';

/** Attention stays within the documents of a row. */
export const masksDocuments = ({ training }: RunSpec): boolean =>
  training.objective === 'sft' || training.documentMask === true;

/** Capped scores and sinks, which FlexAttention of PyTorch 2.11 and later computes in one kernel. */
export const changesScores = ({ model }: RunSpec): boolean =>
  model?.architecture.logitSoftcap?.attention !== undefined || model?.architecture.attentionSinks === true;

/** The earliest PyTorch whose FlexAttention the built-in trainer uses (flex.py). */
export const FLEX_SINCE = '2.11';

/** The built-in trainer computes capped scores with plain operations if the image's PyTorch is known to be older. */
export function keepsScores(run: RunSpec): boolean {
  const version = pytorchOfImage(run);
  const isOlder = version !== undefined && compareVersions(version, FLEX_SINCE) < 0;
  return isOlder && run.code.builtin === 'builtin' && run.model?.architecture.logitSoftcap?.attention !== undefined;
}
