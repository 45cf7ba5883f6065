import type { SimMs } from '../core/clock';

/** An object; its content is generated when it is read. */
export interface S3Object {
  /** In a listing of a run's checkpoints: relative to its prefix. */
  key: string;
  bytes: number;
  at: SimMs;
  /** Its text. @default - the JSON of its facts */
  body?: () => string;
  facts?: () => unknown;
}

/** The text of an object now; undefined where nobody reads it, such as that of weights. */
export const textOf = ({ body, facts }: S3Object): string | undefined => (facts ? JSON.stringify(facts()) : body?.());

/** The content of an object at the time when the read reached it. */
export class SimBody {
  /** The data of an object whose text is JSON. */
  readonly facts: unknown;
  private made: string | undefined;

  constructor({ body, facts }: S3Object) {
    this.facts = facts?.();
    if (!facts) this.made = body?.() ?? '';
  }

  get text(): string {
    this.made ??= JSON.stringify(this.facts);
    return this.made;
  }

  transformToString(): Promise<string> {
    return Promise.resolve(this.text);
  }

  transformToByteArray(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(Buffer.from(this.text)));
  }
}
