import { isPinned, parseHubSource } from '../../config/formats/places';
import { type Finding, type Rule, type RuleContext, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';

const sourcesOf = ({ code }: RunSpec): string[] => String(code.arguments.source ?? '').split(',');

function fetched(run: RunSpec): Finding[] {
  const wrong = sourcesOf(run).find((text) => parseHubSource(text.trim()) === undefined);
  return when(wrong !== undefined, 'code.arguments.source', {
    must: 'must be hf:ORG/NAME or hf:datasets/ORG/NAME, with @REVISION or without',
    got: wrong || 'nothing',
    fix: 'correct it',
  });
}

/** Hubs are on the internet; a mirror (HF_ENDPOINT) may be in the network of the jobs. */
const withoutInternet: Rule['check'] = (run, { descriptor }) =>
  when(
    (descriptor?.network?.mode === 'vpc-locked' && run.environmentVariables.HF_ENDPOINT === undefined) ||
      run.network.isolation,
    'code.source',
    {
      must: 'must run in a network with internet access, or with a mirror in environmentVariables.HF_ENDPOINT',
      got: run.network.isolation ? 'network.isolation' : `${descriptor?.name} (vpc-locked)`,
      fix: `copy it through this machine: ${localCommands(run, descriptor).join('; ')}`,
    },
  );

/** Commands that copy the same repositories, by the names with which runs find them. */
function localCommands(run: RunSpec, descriptor: RuleContext['descriptor']): string[] {
  const names = String(run.code.arguments.revisions ?? '').split(',');
  const place = descriptor ? ` --environment ${descriptor.name}/${descriptor.team}` : '';
  return sourcesOf(run).map((text, i) => {
    const [name = '', revision] = text.trim().split('@');
    const written = names[i] || revision;
    return `slipway fetch ${name}${written && written !== 'main' ? `@${written}` : ''}${place} --local`;
  });
}

const ofFetchStep =
  (check: Rule['check']): Rule['check'] =>
  (run, context) =>
    run.code.builtin === 'builtin-fetch' ? check(run, context) : [];

/** Rules for models and data sets of a hub. */
export const HUB_RULES: readonly Rule[] = [
  /** Sources of the file that a launch has not replaced by a commit. */
  rule('data/hub-commit', 'error', ({ written: { model, data = [] } }) => {
    const named = [{ path: 'model.weights', text: model?.weights }].concat(
      data.map(({ source }, i) => ({ path: `data[${i}].source`, text: source })),
    );
    return named.flatMap(({ path, text }) => {
      const source = parseHubSource(text ?? '');
      return when(source !== undefined && !isPinned(source), path, {
        must: 'must be a fetched commit, which is looked up in an environment',
        got: text,
        fix: 'add --environment, or write the commit after @',
      });
    });
  }),
  rule('processing/fetch-source', 'error', ofFetchStep(fetched)),
  rule('processing/fetch-network', 'error', ofFetchStep(withoutInternet)),
];
