/**
 * What tests of a platform team use (`slipway/testing`): the embedded AWS, in which jobs really run, and the simulation, which plays
 * a month of the control plane in seconds.
 *
 * ```ts
 * const result = await simulate('scenarios/spot-lost.yaml', { seed: 7 });
 * assert.ok(result.ok, JSON.stringify(result.invariants));
 * ```
 */
export * from '../sandbox/testing';
export * from '../simulation';
