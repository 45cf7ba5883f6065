export { api, guide } from '../spec/formats/aws-pages';
export { type Finding, type Rule, type RuleContext, regionOf, trainingRule, when } from '../spec/rule';
