import { duration, number, time } from '../page/format';
import { type Html, html, itemTable } from '../page/parts';
import type { ReportHost, RunReport } from './run-report';

const CHECK = { passed: 'passed', reported: 'passed, with findings', refused: 'refused' } as const;

/** Whether a support case about the host makes sense: its hardware, and not the program, was at fault. */
const BROKEN = /\bGPU\b|NVLink|nvidia-smi|Xid|ECC|DCGM|all-reduce/i;
const isBroken = ({ check, events }: ReportHost): boolean =>
  check === 'refused' || events.some(({ text }) => BROKEN.test(text));

/** The text of a support case: what AWS needs to find the machine, and the errors. A container does not know the id of its instance. */
export function supportCase(report: Pick<RunReport, 'region' | 'attempts'>, host: ReportHost): string {
  const attempt = report.attempts.find(({ number: of }) => of === host.attempt);
  const instances = [...new Set(attempt?.instances?.map(({ instanceType }) => instanceType))].join(', ');
  return [
    `SageMaker training job: ${attempt?.trainingJobName ?? 'unknown'} (${report.region})`,
    `Instance: ${host.host}${instances && `, ${instances}`}`,
    `Job time (UTC): ${attempt?.startedAt ?? 'unknown'} to ${attempt?.endedAt ?? 'now'}`,
    `GPUs: ${host.gpus.join(', ') || 'unknown'}`,
    'Errors (UTC):',
    ...host.events.map(({ at, text }) => `  ${at} ${text}`),
  ].join('\n');
}

/** Hosts with findings, failures or restarts, and the text of a support case for each broken one; undefined when there is none. */
export function hostsPart(report: RunReport): Html | undefined {
  const shown = (report.hosts ?? []).filter(({ events, restarts }) => events.length > 0 || restarts > 0);
  if (shown.length === 0) return undefined;
  const cases = shown.filter(isBroken).map((host) => supportCase(report, host));
  const overview = itemTable({
    caption: 'Hosts with findings or failures, and the time of the restarts that they caused',
    items: shown,
    columns: [
      { head: 'host', kind: 'fixed', cell: (host) => host.host },
      { head: 'attempt', kind: 'num', cell: (host) => number(host.attempt) },
      { head: 'health check', kind: 'fixed', cell: (host) => (host.check === null ? '–' : CHECK[host.check]) },
      { head: 'restarts', kind: 'num', cell: (host) => number(host.restarts) },
      { head: 'time', kind: 'num', cell: (host) => (host.restarts === 0 ? '–' : duration(host.restartSeconds)) },
      {
        head: 'events',
        kind: 'long',
        cell: (host) => host.events.map(({ at, text }) => `${time(at)} ${text}`).join('; '),
      },
    ],
    layout: 'cards',
  });
  if (cases.length === 0) return overview;
  return html`${overview}<p>Text for a support case:</p>${cases.map((text) => html`<pre>${text}</pre>`)}`;
}
