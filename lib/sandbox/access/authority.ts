import { REGIONS } from '../../core/catalog/regions';
import type { Hook, SignedRequest } from '../ministack/hook';
import type { Service } from '../service';
import type { ApiCall, Caller } from '../wire/api-call';
import { ServiceError, validationError } from '../wire/service-error';
import { permissionQuestions } from './iam-questions';

/** The principal that assumes execution roles. */
export const SERVICE_PRINCIPAL = 'sagemaker.amazonaws.com';

/** Partition of a Region: `aws`, `aws-cn`, ... */
export const partitionOf = (region: string): string => REGIONS[region]?.partition ?? 'aws';

/** The identity of callers and their IAM permissions, according to the embedded AWS. */
export class Authority {
  constructor(
    private readonly hook: Hook,
    /** Whether signatures are verified and permissions enforced. */
    readonly enforced: boolean,
  ) {}

  /** @throws ServiceError when enforcement is on and the credentials or the signature are wrong */
  async identify(request: SignedRequest): Promise<{ account: string; caller: Caller }> {
    const { account, arn, refused } = await this.hook.identify(request, this.enforced);
    if (refused) throw new ServiceError(refused.code, refused.message, 403);
    return { account, caller: { accessKeyId: request.accessKeyId, sessionToken: request.sessionToken, arn } };
  }

  /**
   * @param tagsOf tags of an existing resource
   * @throws ServiceError AccessDeniedException naming the first action that is not allowed
   */
  async requireAllowed(call: ApiCall, tagsOf?: Service['tagsOf']): Promise<void> {
    if (!this.enforced) return;
    const questions = permissionQuestions(call, partitionOf(call.region), tagsOf);
    const { accessKeyId, sessionToken, arn } = call.caller;
    const caller = { accessKeyId, sessionToken, region: call.region, secureTransport: true };
    const decisions = await this.hook.authorize(caller, questions);
    questions.forEach(({ action, resource }, index) => {
      if (decisions[index] === 'Allow') return;
      const why =
        decisions[index] === 'Deny'
          ? 'with an explicit deny in an identity-based policy'
          : `because no identity-based policy allows the ${action} action`;
      const message = `User: ${arn} is not authorized to perform: ${action} on resource: ${resource} ${why}`;
      throw new ServiceError('AccessDeniedException', message);
    });
  }

  /** @throws ServiceError ValidationException unless the role exists and lets SageMaker assume it for this job */
  async requireServiceTrust(roleArn: string, call: ApiCall, jobArn: string): Promise<void> {
    const context = { 'aws:SourceAccount': call.account, 'aws:SourceArn': jobArn };
    const { exists, trusted } = await this.hook.trusts(roleArn, SERVICE_PRINCIPAL, call.region, context);
    if (exists && trusted) return;
    throw validationError(
      `Could not assume role ${roleArn}. Please ensure that the role exists and allows principal '${SERVICE_PRINCIPAL}' to ` +
        'assume the role.',
    );
  }
}
