import type { Stack } from 'aws-cdk-lib';

/**
 * Availability Zones of the Region of a stack. The look-up of the CDK also returns the Local Zones and Wavelength Zones that the account has
 * opted in to (us-west-2-lax-1a), in which there are no training instances.
 */
export const regionalZones = ({ availabilityZones, region }: Stack): string[] =>
  availabilityZones.filter((zone) => !zone.startsWith(`${region}-`));
