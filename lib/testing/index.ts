/**
 * The API for tests of platform teams (`slipway/testing`): the AWS emulator, which runs jobs as processes, and the simulation, which runs
 * a month of the control plane in seconds.
 *
 * ```ts
 * const result = await simulate('scenarios/spot-lost.yaml', { seed: 7 });
 * assert.ok(result.ok, JSON.stringify(result.invariants));
 * ```
 */
export * from '../sandbox/testing';
export * from '../simulation';
