import { z } from 'zod';

/** Section `protection`. */
export const protection = z.strictObject({
  terminationProtection: z.boolean().optional().meta({
    description:
      'Whether CloudFormation refuses to delete the stack until this is false and deployed. Default: `storage.retain`.',
  }),
  tableDeletionProtection: z.boolean().optional().meta({
    description: 'Whether DynamoDB refuses to delete the run table until this is false and deployed.',
    default: false,
  }),
});
