import { type Issue, type IssueText, issue } from '../../../core/config/issue';

/** An issue of the existing network of an environment file. */
export const networkIssue = (level: Issue['level'], option: string, text: IssueText): Issue =>
  issue('preflight/network', level, `network.existing.${option}`, text);
