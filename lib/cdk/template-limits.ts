import { type Stack, Token } from 'aws-cdk-lib';
import { ANY_ACCOUNT, measureTemplate, type SentTemplate, sizeIssues } from '../shared/environment/template-sizes';

/**
 * Measures the template of a stack against the limits of CloudFormation and of the services.
 * @throws an error that names the option to change, instead of a deployment that AWS rejects
 */
export function requireLimits(template: SentTemplate, { stackName: stack, account, region }: Stack): SentTemplate {
  const place = { stack, account: Token.isUnresolved(account) ? ANY_ACCOUNT : account, region };
  const issues = sizeIssues(measureTemplate(template, place));
  if (issues.length > 0) throw new Error(issues.map(({ message }) => message).join('\n'));
  return template;
}
