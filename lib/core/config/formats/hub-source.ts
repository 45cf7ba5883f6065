/** A repository of a hub, as run files and commands name it. */
export interface HubSource {
  kind: 'model' | 'dataset';
  /** `ORG/NAME`. */
  name: string;
  /** Branch, tag or commit. @default main */
  revision: string;
}

const NAME = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}';
const form = (prefix: string) => new RegExp(`^hf:(${prefix})(${NAME}/${NAME})(?:@([\\w][\\w./-]{0,199}))?$`);
/** `hf:ORG/NAME[@REVISION]`. */
export const HUB_MODEL = form('');
/** `hf:datasets/ORG/NAME[@REVISION]`. */
export const HUB_DATASET = form('datasets/');

/** The parts of a source; undefined for other text. */
export function parseHubSource(text: string): HubSource | undefined {
  const [, datasets, name, revision = 'main'] = HUB_DATASET.exec(text) ?? HUB_MODEL.exec(text) ?? [];
  return name === undefined ? undefined : { kind: datasets ? 'dataset' : 'model', name, revision };
}

/** Whether text names a repository of a hub. */
export const isHubSource = (text: string | undefined): boolean => text?.startsWith('hf:') ?? false;

/** Whether a source names a commit, whose files never change. */
export const isPinned = ({ revision }: Pick<HubSource, 'revision'>): boolean => /^[0-9a-f]{40}$/.test(revision);

/** The text of a source. */
export const hubSourceText = ({ kind, name, revision }: HubSource): string =>
  `hf:${kind === 'dataset' ? 'datasets/' : ''}${name}@${revision}`;

/** Prefix of the files that a team has fetched. `slipway_trainer.fetch` names what is below it. */
export const HUB_ROOT = 's3://{dataBucket}/teams/{team}/hub/';

/** Folder of a fetched commit. */
export const hubFolder = ({ name, revision }: HubSource, root = HUB_ROOT): string => `${root}${name}/${revision}/`;

/** Where a run reads what it names: the folder of a fetched commit; other text stays. */
export function placeOf<T extends string | undefined>(text: T): T | string {
  const source = text === undefined ? undefined : parseHubSource(text);
  return source && isPinned(source) ? hubFolder(source) : text;
}
