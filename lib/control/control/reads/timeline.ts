import type { TimelineAnswer } from '../../../core/contracts/control';
import type { TimelineEvent } from '../../../core/lifecycle/action';

/** A Lambda answer is limited to 6 MB; the rest of a status stays far below the remaining 2 MB. */
const MAX_BYTES = 4_000_000;

/** The newest events that fit into an answer, oldest first, and the number of older ones that do not. */
export function boundedTimeline(
  lines: readonly TimelineEvent[],
  mostBytes = MAX_BYTES,
): { timeline: TimelineAnswer[]; timelineOmitted?: number } {
  const timeline: TimelineAnswer[] = [];
  let bytes = 0;
  for (const line of [...lines].reverse()) {
    const answer = timelineAnswer(line);
    bytes += Buffer.byteLength(JSON.stringify(answer)) + 1;
    if (bytes > mostBytes) break;
    timeline.push(answer);
  }
  const omitted = lines.length - timeline.length;
  return { timeline: timeline.reverse(), ...(omitted > 0 && { timelineOmitted: omitted }) };
}

const timelineAnswer = ({ at, what, text, evidence }: TimelineEvent): TimelineAnswer => ({
  at: new Date(at).toISOString(),
  what,
  text,
  evidence,
});
