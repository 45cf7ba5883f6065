import { z } from 'zod';

/** Section `protection`. */
export const protection = z.strictObject({
  terminationProtection: z.boolean().optional().meta({
    description:
      'Whether CloudFormation rejects the deletion of the stack until this is deployed as false. Default: `storage.retain`.',
  }),
  tableDeletionProtection: z.boolean().optional().meta({
    description: 'Whether DynamoDB rejects the deletion of the run table until this is deployed as false.',
    default: false,
  }),
});
