// What is planned of a layout and of a run, whole, to four digits: each case lists what is otherwise than in the first. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/planner/cases.test.ts, and read the difference.
import path from 'node:path';
import { loadRun } from '../../../lib/core/config/load';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { planLayout } from '../../../lib/core/planner/plan';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { acceleratorNamed, LLAMA_8B, layout } from '../../support/layouts';
import { changes } from '../../support/run-cases';
import { testCases } from '../../support/tables';

interface Case {
  name?: string;
  /** Fields of the layout; of its model and its accelerator those that differ. */
  layout?: Partial<LayoutInput>;
  model?: Partial<LayoutInput['model']>;
  accelerator?: string;
  /** Options of the run file beside those of the table, as `--set` takes them. */
  set?: string[];
  figures?: string[];
  [outcome: string]: unknown;
}
interface Table {
  /** A run file; absent: the cases are layouts. */
  file?: object;
  cases: Case[];
}

const rounded = (plan: unknown): unknown =>
  JSON.parse(JSON.stringify(plan, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)));

function layoutPlan({ layout: given = {}, model = {}, accelerator }: Case): unknown {
  const type = accelerator ? { accelerator: acceleratorNamed(accelerator) } : {};
  return rounded(planLayout(layout({ ...given, ...type, model: { ...LLAMA_8B, ...model } })));
}

function runPlan(file: object, { set = [] }: Case): unknown {
  const { value, issues } = loadRun(JSON.stringify(file), set);
  const plan = value ? planRun(value, { region: 'us-west-2' }) : issues;
  if (Array.isArray(plan)) return rounded({ issues: plan.map(({ rule, message }) => `${rule} ${message}`) });
  const { model: _, accelerator: _type, ...mapped } = plan.layout;
  return rounded({ ...plan, layout: mapped, advice: plan.advice.map((advice) => JSON.stringify(rounded(advice))) });
}

testCases<Case, Table>(path.join(__dirname, 'cases'), ({ file, cases }, given) => {
  const plan = (one: Case) => (file ? runPlan(file, one) : layoutPlan(one));
  const [first = given] = cases;
  const [base, own] = [plan(first), plan(given)];
  if (typeof own === 'string') return { figures: [own] };
  const isRefused = typeof own === 'object' && own !== null && 'issues' in own;
  return { figures: changes(given === first || isRefused ? undefined : base, own) };
});
