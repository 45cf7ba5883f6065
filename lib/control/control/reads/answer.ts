import type { ControlAnswer, ReadRequest } from '../../../core/contracts/control';
import type { ReadDeps } from '../deps';
import { eventsOf } from './events';
import { logsOf } from './logs';
import { listRuns, statusOf } from './status';

/** Answers a request that changes nothing. `control` uses it among others, `audit` uses only this. */
export function answerRead(deps: ReadDeps, team: string, request: ReadRequest): Promise<ControlAnswer> {
  switch (request.action) {
    case 'status':
      return statusOf(deps, team, request);
    case 'list':
      return listRuns(deps, team, request);
    case 'events':
      return eventsOf(deps, team, request);
    case 'logs':
      return logsOf(deps, team, request);
  }
}
