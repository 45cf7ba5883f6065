/** Returns an environment variable that the construct must set. Throws when it is missing or empty. */
export function requireEnv(env: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = env[name];
  if (value) return value;
  throw new Error(`environment variable ${name} is not set; the construct that owns this function must set it`);
}
