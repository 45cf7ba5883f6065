export { api, guide } from '../config/formats/aws-pages';
export { type Finding, type Rule, type RuleContext, regionOf, trainingRule, when } from '../config/rule';
