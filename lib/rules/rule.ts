export { type Finding, type Rule, type RuleContext, trainingRule, when } from '../spec/rule';

const GUIDE = 'https://docs.aws.amazon.com/sagemaker/latest/';
/** The page of CreateTrainingJob or of one of its types. */
export const api = (type = 'CreateTrainingJob') => `${GUIDE}APIReference/API_${type}.html`;
/** A page of the developer guide. */
export const guide = (page: string) => `${GUIDE}dg/${page}.html`;
