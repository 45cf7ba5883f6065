const SAGEMAKER = 'https://docs.aws.amazon.com/sagemaker/latest/';

/** The page of CreateTrainingJob or of one of its types in SageMaker's API reference. */
export const api = (type = 'CreateTrainingJob') => `${SAGEMAKER}APIReference/API_${type}.html`;

/** A page of SageMaker's developer guide, by its file name without the ending. */
export const guide = (page: string) => `${SAGEMAKER}dg/${page}.html`;
