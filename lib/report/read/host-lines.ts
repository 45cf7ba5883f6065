import { isGroup } from '../../core/config/formats/json';
import type { ReportHost } from '../run/run-report';
import { type LogLine, parseProgressLine } from './log-lines';

/** Events of one host that are kept, and characters of each: its log is written by a container. */
const MAX_EVENTS = 20;
const MAX_TEXT = 400;
/** Hosts of a run that are kept: those with the most to say. */
const MAX_HOSTS = 64;

type Fields = Record<string, unknown>;

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : '');
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const fieldsOf = (value: unknown): Fields => (isGroup(value) ? value : {});

/** The hosts of all attempts by what their logs say of them. */
class Hosts {
  private readonly byKey = new Map<string, ReportHost>();
  /** The host whose failure began a restart, by attempt and number of the restart: every host prints the line. */
  private readonly causes = new Map<string, ReportHost>();
  /** The name of the host with a rank, by attempt and rank: the trainer knows only ranks. */
  private readonly ranks = new Map<string, string>();

  find(attempt: number, host: string): ReportHost {
    const key = `${attempt}/${host}`;
    const known = this.byKey.get(key);
    if (known) return known;
    const added: ReportHost = { attempt, host, gpus: [], check: null, restarts: 0, restartSeconds: 0, events: [] };
    this.byKey.set(key, added);
    return added;
  }

  add({ attempt, at }: LogLine, host: string, text: string): void {
    const { events } = this.find(attempt, host);
    if (text !== '' && events.length < MAX_EVENTS && events.every((event) => event.text !== text))
      events.push({ at, text });
  }

  inventory({ attempt }: LogLine, host: string, fields: Fields): void {
    this.find(attempt, host).gpus = listOf(fields.gpuIds).map((gpu) => textOf(listOf(gpu)[1]));
    if (typeof fields.rank === 'number') this.ranks.set(`${attempt}/${fields.rank}`, host);
  }

  slow(line: LogLine, { host: rank, ratio, what }: Fields): void {
    const host = this.ranks.get(`${line.attempt}/${rank}`);
    if (host) this.add(line, host, `${String(ratio)} times as long as the other hosts for ${textOf(what)}`);
  }

  restartBegan(line: LogLine, fields: Fields): void {
    const [host, round] = [textOf(fields.host), `${line.attempt}/${fields.round}`];
    if (host === '' || this.causes.has(round)) return;
    const cause = this.find(line.attempt, host);
    this.causes.set(round, cause);
    cause.restarts += 1;
    this.add(line, host, textOf(fields.reason));
    for (const [old, next] of Object.entries(fieldsOf(fields.replaced))) {
      this.add(line, old.slice(0, MAX_TEXT), `replaced by ${textOf(next)}`);
      for (const [rank, name] of this.ranks)
        if (name === old && rank.startsWith(`${line.attempt}/`)) this.ranks.set(rank, textOf(next));
    }
  }

  restartEnded({ attempt }: LogLine, fields: Fields): void {
    const cause = this.causes.get(`${attempt}/${fields.round}`);
    if (!cause) return;
    for (const seconds of Object.values(fieldsOf(fields.phases)))
      if (typeof seconds === 'number' && Number.isFinite(seconds)) cause.restartSeconds += seconds;
  }

  all(): ReportHost[] {
    const size = (host: ReportHost) => host.events.length + host.restarts;
    return [...this.byKey.values()]
      .sort((a, b) => b.restartSeconds - a.restartSeconds || size(b) - size(a) || a.attempt - b.attempt)
      .slice(0, MAX_HOSTS);
  }
}

function addHealth(hosts: Hosts, line: LogLine, host: string, fields: Fields): void {
  const found = listOf(fields.findings).map(fieldsOf);
  const isRefused = found.some(({ refuses }) => refuses === true);
  hosts.find(line.attempt, host).check = isRefused ? 'refused' : found.length > 0 ? 'reported' : 'passed';
  for (const { reason } of found) hosts.add(line, host, textOf(reason));
}

/** What the progress lines of all hosts say of the hosts, those that cost the most time first. Lines that do not parse are ignored. */
export function hostsOf(lines: readonly LogLine[]): ReportHost[] {
  const hosts = new Hosts();
  for (const line of [...lines].sort((a, b) => a.at.localeCompare(b.at))) {
    const fields = parseProgressLine(line.message.trimEnd());
    const host = textOf(fields?.host);
    if (fields?.event === 'restart' && fields.state === 'end') hosts.restartEnded(line, fields);
    else if (fields?.event === 'restart') hosts.restartBegan(line, fields);
    if (fields?.event === 'slow-host') hosts.slow(line, fields);
    if (fields === undefined || host === '') continue;
    if (fields.event === 'inventory') hosts.inventory(line, host, fields);
    if (fields.event === 'health') addHealth(hosts, line, host, fields);
    if (fields.event === 'exit' && fields.class === 'hardware') hosts.add(line, host, textOf(fields.reason));
  }
  return hosts.all();
}
