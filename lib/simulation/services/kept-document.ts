import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Item, textOf, type Written } from '../../handlers/shared/items';
import { recordOf } from '../../handlers/shared/run-store';
import type { RunRecord } from '../../lifecycle/record';

/** No text that is not made yet is longer than this. */
export const MOST_KEPT = 16_000;
/** A text that was so long is made again at once: looks add little to it. */
const MOST_BEFORE = 8000;
/** So many looks after the text was last made it is made again. */
const MOST_LOOKS = 48;

/** A document whose text is made when somebody reads it: most are written over before. */
class KeptDocument {
  private made: string | undefined;

  /**
   * @param before how long the text was when it was last made
   * @param looks how often the document was written since
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

/** Documents that a look writes in place of this one, at a run or its attempt, whose text is made when it is read. */
export function keptAfter(before: AttributeValue | undefined): Written {
  const { length, looks } = before instanceof KeptDocument ? ageOf(before) : { length: before?.S?.length, looks: 1 };
  if (length === undefined || length > MOST_BEFORE || looks > MOST_LOOKS)
    return (document) => ({ S: JSON.stringify(document) });
  return (document) => new KeptDocument(document, length, looks) as AttributeValue;
}

const ageOf = ({ madeLength, before, looks }: KeptDocument) =>
  madeLength === undefined ? { length: before, looks: looks + 1 } : { length: madeLength, looks: 1 };

/** The length of an item's document; that of one whose text is not made yet is `MOST_KEPT` at most, which stands for it. */
export function lengthOf({ document }: Item): number {
  if (document instanceof KeptDocument) return document.madeLength ?? MOST_KEPT;
  return document?.S?.length ?? 0;
}

const records = new WeakMap<Item, RunRecord>();

/** The record of a RUN item. Shared: nobody may change it. */
export function recordOfItem(item: Item): RunRecord {
  let record = records.get(item);
  if (!record) {
    record = recordOf(textOf(item));
    records.set(item, record);
  }
  return record;
}

/** What the item says is known: it was just made of this record. */
export const keepRecord = (item: Item, record: RunRecord): void => void records.set(item, record);
