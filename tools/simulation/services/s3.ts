import type {
  GetObjectCommandInput,
  HeadObjectCommandInput,
  ListObjectsV2CommandInput,
  PutObjectCommandInput,
  PutObjectTaggingCommandInput,
} from '@aws-sdk/client-s3';
import type { SimMs } from '../core/clock';
import { dateAt } from '../core/epoch';
import type { Operations } from '../core/operation';
import { serviceError } from '../core/service-error';
import type { RunTruth } from '../job/steps/run-truth';
import { type S3Object, SimBody, textOf } from './s3-object';

const PAGE = 1000;

/** Buckets with what functions and people wrote, and with the checkpoints and heartbeats of the jobs of runs. */
export class SimS3 {
  private readonly buckets = new Map<string, Map<string, S3Object>>();
  private readonly truths = new Map<string, RunTruth>();
  private readonly entries = new Map<RunTruth, RunEntries>();
  /**
   * Other objects of a bucket below the prefix of one run's checkpoints, cached by the number of objects in the bucket: almost everything
   * below the prefix is the run's own.
   */
  private readonly strangers = new WeakMap<RunTruth, { puts: number; objects: readonly S3Object[] }>();
  private puts = 0;

  /**
   * @param observe brings a run's training up to date, and returns its newest heartbeat
   * @param onWrite a function has written or tagged an object
   */
  constructor(
    private readonly now: () => SimMs,
    private readonly observe: (truth: RunTruth) => S3Object | undefined,
    private readonly onWrite: (bucket: string, key: string, isTag: boolean) => void = () => {},
  ) {}

  readonly operations: Operations = {
    GetObject: {
      latencyMs: 30,
      knows: ['Bucket', 'Key'],
      key: keyOf,
      run: ({ Bucket = '', Key = '' }: GetObjectCommandInput) => {
        const object = this.find(Bucket, Key, 'NoSuchKey');
        const { at, bytes } = object;
        return {
          Body: new SimBody(object),
          LastModified: dateAt(at),
          ContentLength: bytes,
          $metadata: {},
        };
      },
    },
    HeadObject: {
      latencyMs: 20,
      knows: ['Bucket', 'Key'],
      key: keyOf,
      run: ({ Bucket = '', Key = '' }: HeadObjectCommandInput) => {
        const { bytes, at } = this.find(Bucket, Key, 'NotFound');
        return { ContentLength: bytes, LastModified: dateAt(at), $metadata: {} };
      },
    },
    PutObject: {
      latencyMs: 40,
      writes: true,
      key: keyOf,
      run: ({ Bucket = '', Key = '', Body }: PutObjectCommandInput) => {
        this.put(Bucket, Key, String(Body ?? ''));
        this.onWrite(Bucket, Key, false);
        return {};
      },
    },
    PutObjectTagging: {
      latencyMs: 25,
      writes: true,
      key: keyOf,
      run: ({ Bucket = '', Key = '' }: PutObjectTaggingCommandInput) => {
        this.find(Bucket, Key, 'NoSuchKey');
        this.onWrite(Bucket, Key, true);
        return {};
      },
    },
    ListObjectsV2: {
      latencyMs: 100,
      knows: ['Bucket', 'Prefix', 'ContinuationToken', 'MaxKeys', 'Delimiter', 'StartAfter'],
      key: (input: ListObjectsV2CommandInput) => `${input.Bucket}/${input.Prefix ?? ''}`,
      run: (input: ListObjectsV2CommandInput) => this.list(input),
    },
  };

  /** From now on the run's checkpoints and heartbeats are in S3. */
  follow(truth: RunTruth): void {
    if (truth.place) this.truths.set(`${truth.place.bucket}/${truth.place.prefix}`, truth);
    if (truth.heartbeat) this.truths.set(`${truth.heartbeat.bucket}/${truth.heartbeat.key}`, truth);
  }

  /** An upload to a presigned URL. */
  upload(url: string, bytes: number): void {
    const { hostname, pathname } = new URL(url);
    this.put(hostname.replace(/\.invalid$/, ''), decodeURIComponent(pathname.slice(1)), '', bytes);
  }

  put(bucket: string, key: string, text: string, bytes = text.length): void {
    const objects = this.buckets.get(bucket) ?? new Map<string, S3Object>();
    this.buckets.set(bucket, objects);
    objects.set(key, { key, bytes, at: this.now(), body: () => text });
    this.puts += 1;
  }

  read(bucket: string, key: string): string | undefined {
    const object = this.buckets.get(bucket)?.get(key);
    return object && textOf(object);
  }

  private find(bucket: string, key: string, error: string): S3Object {
    const found = this.buckets.get(bucket)?.get(key) ?? this.findOfRun(bucket, key);
    if (!found) throw serviceError(error, 'The specified key does not exist.', 404);
    return found;
  }

  private findOfRun(bucket: string, key: string): S3Object | undefined {
    const writer = this.truths.get(`${bucket}/${key}`);
    if (writer) return this.observe(writer);
    const folder = key.lastIndexOf('/', key.lastIndexOf('/') - 1) + 1;
    for (const prefix of [key.slice(0, folder), key.slice(0, key.lastIndexOf('/') + 1)]) {
      const truth = this.truths.get(`${bucket}/${prefix}`);
      if (!truth) continue;
      this.observe(truth);
      const rest = key.slice(prefix.length);
      const found = truth.objects().find((object) => object.key === rest);
      if (found) return found;
    }
    return undefined;
  }

  /** Keys that contain the delimiter after the prefix are grouped into one common prefix, which counts as one entry of a page. */
  private list(input: ListObjectsV2CommandInput): unknown {
    const { Bucket = '', Prefix = '', ContinuationToken, MaxKeys = PAGE, Delimiter, StartAfter = '' } = input;
    const after = ContinuationToken ?? StartAfter;
    const Contents: Entry[] = [];
    const prefixes: string[] = [];
    let next: string | undefined;
    for (const entry of this.below(Bucket, Prefix, {
      after,
      most: Delimiter === undefined ? MaxKeys + 1 : undefined,
    })) {
      const cut = Delimiter === undefined ? -1 : entry.Key.indexOf(Delimiter, Prefix.length);
      const shown = cut < 0 ? entry.Key : entry.Key.slice(0, cut + 1);
      if (shown <= after || shown === prefixes.at(-1)) continue;
      if (Contents.length + prefixes.length === MaxKeys) {
        next = [Contents.at(-1)?.Key ?? '', prefixes.at(-1) ?? ''].sort().at(-1);
        break;
      }
      if (cut < 0) Contents.push(entry);
      else prefixes.push(shown);
    }
    return {
      ...(Contents.length > 0 && { Contents }),
      ...(prefixes.length > 0 && { CommonPrefixes: prefixes.map((one) => ({ Prefix: one })) }),
      KeyCount: Contents.length + prefixes.length,
      IsTruncated: next !== undefined,
      ...(next !== undefined && { NextContinuationToken: next }),
      $metadata: {},
    };
  }

  /** The objects below a prefix whose keys come after another key, in the order of keys: of each run at most as many as given. */
  private below(bucket: string, prefix: string, { after, most }: { after: string; most?: number }): Entry[] {
    const truths = this.truthsBelow(bucket, prefix);
    const found: Entry[] = [];
    for (const object of this.putBelow(bucket, prefix, truths)) {
      if (object.key.startsWith(prefix)) found.push(entryOf(object.key, object));
    }
    for (const truth of truths) {
      const written = this.observe(truth);
      const { place, heartbeat } = truth;
      if (place?.bucket === bucket)
        for (const entry of from(this.entriesOf(truth, place.prefix), { prefix, after, most })) found.push(entry);
      if (written && heartbeat?.bucket === bucket && heartbeat.key.startsWith(prefix))
        found.push(entryOf(heartbeat.key, written));
    }
    return sorted(found);
  }

  /** Objects that were put into a bucket, as far as they are below the prefix. */
  private putBelow(bucket: string, prefix: string, [truth, ...others]: readonly RunTruth[]): Iterable<S3Object> {
    const all = this.buckets.get(bucket)?.values() ?? [];
    const place = truth?.place;
    if (!place || others.length > 0 || place.bucket !== bucket || !prefix.startsWith(place.prefix)) return all;
    const known = this.strangers.get(truth);
    if (known?.puts === this.puts) return known.objects;
    const objects = [...all].filter(({ key }) => key.startsWith(place.prefix));
    this.strangers.set(truth, { puts: this.puts, objects });
    return objects;
  }

  private entriesOf(truth: RunTruth, prefix: string): readonly Entry[] {
    const objects = truth.objects();
    const known = this.entries.get(truth);
    if (known?.objects === objects) return known.inOrder;
    const byObject = new Map<S3Object, Entry>();
    for (const object of objects)
      byObject.set(object, known?.byObject.get(object) ?? entryOf(`${prefix}${object.key}`, object));
    const entries = sorted([...byObject.values()]);
    this.entries.set(truth, { objects, byObject, inOrder: entries });
    return entries;
  }

  /** Runs whose checkpoint prefix is below the given prefix, or contains it. */
  private truthsBelow(bucket: string, prefix: string): RunTruth[] {
    const parent = prefix.slice(0, prefix.lastIndexOf('/', prefix.length - 2) + 1);
    const near = this.truths.get(`${bucket}/${prefix}`) ?? this.truths.get(`${bucket}/${parent}`);
    if (near) return [near];
    const whole = `${bucket}/${prefix}`;
    const found = [...this.truths].filter(([at]) => at.startsWith(whole) || whole.startsWith(at));
    return [...new Set(found.map(([, truth]) => truth))];
  }
}

interface Entry {
  Key: string;
  Size: number;
  LastModified: Date;
}

/** In the order of keys. */
const sorted = (entries: Entry[]): Entry[] =>
  inOrder(entries) ? entries : entries.sort((a, b) => (a.Key < b.Key ? -1 : 1));

/** Entries of a run's checkpoints in a listing. Most objects of one version of it are also in the next. */
interface RunEntries {
  objects: readonly S3Object[];
  byObject: ReadonlyMap<S3Object, Entry>;
  inOrder: readonly Entry[];
}

/** Entries with a prefix whose keys come after another key. A checkpoint may have a million objects, so that no page looks at all of them. */
function* from(entries: readonly Entry[], { prefix, after, most = entries.length }: Part): Iterable<Entry> {
  const first = prefix > after ? prefix : after;
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle] as Entry).Key < first) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < Math.min(entries.length, low + most + 1); at++) {
    const entry = entries[at] as Entry;
    if (!entry.Key.startsWith(prefix)) return;
    yield entry;
  }
}

interface Part {
  prefix: string;
  after: string;
  most?: number;
}

const inOrder = (entries: readonly Entry[]): boolean =>
  entries.every(({ Key }, i) => i === 0 || (entries[i - 1] as Entry).Key < Key);

const entryOf = (key: string, { bytes, at }: S3Object): Entry => ({ Key: key, Size: bytes, LastModified: dateAt(at) });

/** The text with which the `key` of a fault is compared; it starts with the bucket, so that a pattern may contain it. */
function keyOf({ Bucket = '', Key = '' }: { Bucket?: string; Key?: string }): string {
  return `${Bucket}/${Key}`;
}
