/** An error that a service answers with, in the AWS JSON 1.1 form. */
export class ServiceError extends Error {
  constructor(
    /** The `__type` clients branch on. */
    readonly code: string,
    message: string,
    readonly status = 400,
  ) {
    super(message);
    this.name = code;
  }
}

/** The error of AWS for a request that is not valid. */
export const validationError = (message: string) => new ServiceError('ValidationException', message);
