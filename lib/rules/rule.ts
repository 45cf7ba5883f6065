export { api, guide } from '../spec/aws-pages';
export { type Finding, type Rule, type RuleContext, regionOf, trainingRule, when } from '../spec/rule';
