import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { searchText } from '../../../lib/cli/plan/text/plan-text';
import { loadRun } from '../../../lib/core/config/load';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { candidateOverrides, candidateRun, searchRun } from '../../../lib/core/search/search-run';
import { PLANNABLE, runOf } from '../../support/runs';

const RUN = runOf(PLANNABLE);

test('a search whose layouts the rules reject says which rule', () => {
  const refusal = { rule: 'r', level: 'error' as const, path: 'training', message: 'training: must be another' };
  expect(searchText(RUN, { considered: 1200, seconds: 3, candidates: [], refusal })).toBe(
    '1,200 layouts in 3 s; none is valid: training: must be another',
  );
});

test('a search that finds nothing says so, without an empty table', () => {
  expect(searchText(RUN, { considered: 1200, seconds: 3, candidates: [] })).toBe(
    '1,200 layouts in 3 s; none fits: use more instances, or a type with more memory',
  );
});

test('the options of the first layout make it the run, whatever its library was', () => {
  const files = ['builtin/llama3-8b-fsdp', 'builtin/qwen3-8b-mixture', 'sagemaker/llama2-70b-smp-v2'];
  for (const file of files) {
    const text = readFileSync(`runs/${file}.yaml`, 'utf8');
    const run = loadRun(text).value as RunSpec;
    const search = searchRun(run, { region: 'us-west-2' }, { libraries: [run.distribution.library, 'fsdp'] });
    if (Array.isArray(search)) throw new Error(JSON.stringify(search));
    for (const candidate of search.candidates) {
      const overrides = candidateOverrides(run, candidate);
      const changed = loadRun(text, overrides);
      expect(changed.issues, overrides.join(' ')).toEqual([]);
      const { written: _, ...found } = changed.value as RunSpec;
      const { written: __, ...wanted } = candidateRun(run, candidate);
      expect(found).toEqual({ ...wanted, compute: found.compute });
    }
  }
});

test('says how to use the first layout, and nothing if it is that of the file', () => {
  const search = searchRun(RUN, { region: 'us-west-2' });
  if (Array.isArray(search)) throw new Error(JSON.stringify(search));
  const [first] = search.candidates;
  const shown = { ...search, seconds: 1 };
  expect(searchText(RUN, shown)).toMatch(/\nfor the first: --set distribution\.parameters\.\S+=\d/);
  const same = first && candidateRun(RUN, first);
  expect(searchText(same as RunSpec, shown)).toMatch(/\nthe first is that of the file$/);
});

test('says why a library of several has none of the layouts', () => {
  const check = ({ distribution }: RunSpec) =>
    distribution.library === 'megatron'
      ? [{ rule: 'r', level: 'error' as const, path: 'distribution', message: 'distribution: must be another' }]
      : [];
  const libraries = [RUN.distribution.library, 'megatron'];
  const search = searchRun(RUN, { region: 'us-west-2' }, { libraries, check });
  if (Array.isArray(search)) throw new Error(JSON.stringify(search));
  expect(new Set(search.candidates.map(({ distribution }) => distribution.library))).toEqual(new Set([libraries[0]]));
  expect(searchText(RUN, { ...search, seconds: 1 })).toMatch(
    /\nmegatron: none is valid: distribution: must be another$/,
  );
});
