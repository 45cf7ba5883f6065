import { Invariant } from './invariant';

/** Errors of the language, which no service returns and no input may cause. */
const DEFECT = /^(TypeError|ReferenceError|RangeError):/;

/** No function throws or logs an error of its own code: such an error would be repeated like one of a service, and would not be noticed. */
export class NoDefect extends Invariant {
  readonly name = 'no-defect';

  override onError(error: string): void {
    if (DEFECT.test(error)) this.break(`a function failed: ${error}`);
  }
}
