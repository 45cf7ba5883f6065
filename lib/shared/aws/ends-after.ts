/**
 * Options of the SDK's HTTP handler that end a call with a TimeoutError after `requestTimeout` milliseconds without an answer, or
 * `connectionTimeout` milliseconds without a connection. By default the handler only logs a warning at that time
 * (@smithy/node-http-handler, `throwOnRequestTimeout`).
 */
export const endsAfter = (requestTimeout: number, connectionTimeout = 3000) => ({
  connectionTimeout,
  requestTimeout,
  throwOnRequestTimeout: true,
});
