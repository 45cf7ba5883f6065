import type { ApiCall } from '../wire/api-call';
import { page } from '../wire/page';
import { ServiceError, validationError } from '../wire/service-error';

interface Tag {
  Key: string;
  Value: string;
}

/** A resource with tags. */
export interface Tagged {
  arn: string;
  account: string;
  region: string;
  tags: Record<string, string>;
}

const MAX_TAGS = 50;
const DEFAULT_PAGE = 50;

/** Tags of a request as an object. */
export function tagMap(tags: readonly Tag[] = []): Record<string, string> {
  return Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]));
}

/** AddTags, ListTags and DeleteTags for all resources of the sandbox. */
export class TagOperations {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    AddTags: (call) => {
      const resource = this.require(call);
      const merged = { ...resource.tags, ...tagMap(call.input.Tags as Tag[]) };
      if (Object.keys(merged).length > MAX_TAGS)
        throw validationError(`A resource cannot have more than ${MAX_TAGS} tags.`);
      resource.tags = merged;
      return { Tags: tagList(merged) };
    },
    ListTags: (call) => {
      const { items, nextToken } = page(tagList(this.require(call).tags), call.input, DEFAULT_PAGE);
      return { Tags: items, NextToken: nextToken };
    },
    DeleteTags: (call) => {
      const resource = this.require(call);
      const gone = new Set(call.input.TagKeys as string[]);
      resource.tags = Object.fromEntries(Object.entries(resource.tags).filter(([key]) => !gone.has(key)));
      return {};
    },
  };

  constructor(private readonly find: (arn: string) => Tagged | undefined) {}

  private require(call: ApiCall): Tagged {
    const resource = this.find(String(call.input.ResourceArn));
    if (!resource || resource.account !== call.account || resource.region !== call.region) {
      throw new ServiceError('ValidationException', 'Requested resource not found.');
    }
    return resource;
  }
}

const tagList = (tags: Record<string, string>): Tag[] => Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
