/** One question that IAM is asked. */
export interface Ask {
  action: string;
  resource: string;
  context?: Record<string, string | readonly string[]>;
}

/** Why a role needs permissions: calls of our code, or a service that acts with the role, with the page that says so. */
export interface Use {
  calls?: readonly string[];
  because?: string;
  source?: string;
  asks: readonly Ask[];
}

/** What the roles of one synthesised environment work on. */
export interface Places {
  arn(service: string, rest: string): string;
  bucket(name: 'data' | 'checkpoints' | 'artifacts' | 'access-logs'): string;
  dataKey: string;
  operationsKey: string;
  /** ARN of the resource whose logical id begins so. */
  of(logicalIdPrefix: string): string;
}

export const ask = (action: string, resource: string, context?: Ask['context']): Ask => ({ action, resource, context });
export const asks = (actions: readonly string[], resource: string, context?: Ask['context']): Ask[] =>
  actions.map((action) => ask(action, resource, context));
/** What one call of ours needs. */
export const call = (name: string | readonly string[], ...needs: readonly Ask[]): Use => ({
  calls: [name].flat(),
  asks: needs,
});
/** What a service needs that acts with the role. */
export const service = (because: string, source: string, needs: readonly Ask[]): Use => ({
  because,
  source,
  asks: needs,
});
