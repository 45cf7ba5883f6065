import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Item, textOf, type Written } from '../../handlers/shared/items';
import { recordOf } from '../../handlers/shared/run-store';
import type { RunRecord } from '../../lifecycle/record';

/** Upper bound on the length of a text that has not been generated yet. */
export const MOST_KEPT = 16_000;
/** A text that was longer than this is always generated immediately: an update adds little to it. */
const MOST_BEFORE = 8000;
/** After this many updates the text is generated again. */
const MOST_LOOKS = 48;

/** A document whose text is generated when it is read: most documents are overwritten before. */
class KeptDocument {
  private made: string | undefined;

  /**
   * @param before length of the text when it was last generated
   * @param looks number of updates since
   */
  constructor(
    private readonly document: unknown,
    readonly before: number,
    readonly looks: number,
  ) {}

  get S(): string {
    if (this.made === undefined) {
      this.made = JSON.stringify(this.document);
      if (isRecord(this.document)) recordOf.keep(this.made, this.document);
    }
    return this.made;
  }

  get madeLength(): number | undefined {
    return this.made?.length;
  }
}

const isRecord = (document: unknown): document is RunRecord => Object.hasOwn(document as object, 'budgets');

/** Documents of a run or its attempt that an update writes in place of this one; their text is generated when it is read. */
export function keptAfter(before: AttributeValue | undefined): Written {
  const { length, looks } = before instanceof KeptDocument ? ageOf(before) : { length: before?.S?.length, looks: 1 };
  if (length === undefined || length > MOST_BEFORE || looks > MOST_LOOKS)
    return (document) => ({ S: JSON.stringify(document) });
  return (document) => new KeptDocument(document, length, looks) as AttributeValue;
}

const ageOf = ({ madeLength, before, looks }: KeptDocument) =>
  madeLength === undefined ? { length: before, looks: looks + 1 } : { length: madeLength, looks: 1 };

/** The length of an item's document; for a document whose text is not generated yet, the upper bound `MOST_KEPT`. */
export function lengthOf({ document }: Item): number {
  if (document instanceof KeptDocument) return document.madeLength ?? MOST_KEPT;
  return document?.S?.length ?? 0;
}

const records = new WeakMap<Item, RunRecord>();

/** The record of a RUN item. The result is shared and must not be changed. */
export function recordOfItem(item: Item): RunRecord {
  let record = records.get(item);
  if (!record) {
    record = recordOf(textOf(item));
    records.set(item, record);
  }
  return record;
}

/** Caches the record of an item that was just created from it. */
export const keepRecord = (item: Item, record: RunRecord): void => void records.set(item, record);
