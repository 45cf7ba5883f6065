/**
 * Loopback addresses for the instances of one job, so that each has its own and ports do not clash. Linux answers on all of
 * 127.0.0.0/8; elsewhere only 127.0.0.1 exists and instances share it.
 */
export function loopbackAddresses(
  job: number,
  hosts: readonly string[],
  platform = process.platform,
): Map<string, string> {
  if (platform !== 'linux') return new Map(hosts.map((host) => [host, '127.0.0.1']));
  // Second and third byte tell jobs apart (1-200 each), the rest the instances of one job.
  const network = `127.${1 + (Math.floor(job / 200) % 200)}.${1 + (job % 200)}`;
  return new Map(hosts.map((host, index) => [host, `${network}.${1 + (index % 250)}`]));
}
