import type { SimMs } from '../core/clock';

/** An object; its text is made when somebody reads it. */
export interface S3Object {
  /** In a listing of a run's checkpoints: relative to its prefix. */
  key: string;
  bytes: number;
  at: SimMs;
  body?: () => string;
}
