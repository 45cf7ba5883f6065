/** An error that a service returns, in the AWS JSON 1.1 format. */
export class ServiceError extends Error {
  constructor(
    /** The `__type` by which clients distinguish errors. */
    readonly code: string,
    message: string,
    readonly status = 400,
  ) {
    super(message);
    this.name = code;
  }
}

/** The error of AWS for an invalid request. */
export const validationError = (message: string) => new ServiceError('ValidationException', message);
