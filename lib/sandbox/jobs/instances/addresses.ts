/**
 * Loopback addresses for the instances of one job, so that each has its own and ports do not conflict. Linux supports all of 127.0.0.0/8;
 * on other systems only 127.0.0.1 exists, and instances share it.
 */
export function loopbackAddresses(
  job: number,
  hosts: readonly string[],
  platform = process.platform,
): Map<string, string> {
  if (platform !== 'linux') return new Map(hosts.map((host) => [host, '127.0.0.1']));
  // The second and third byte identify the job (1-200 each), the last one the instance.
  const network = `127.${1 + (Math.floor(job / 200) % 200)}.${1 + (job % 200)}`;
  return new Map(hosts.map((host, index) => [host, `${network}.${1 + (index % 250)}`]));
}
