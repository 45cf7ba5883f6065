// The property tests of which `npm test` draws few cases, with five times as many, and the laws of templates over all environment files.
import { vi } from 'vitest';
import '../laws/environments.test';
import '../core/lifecycle/model.test';
import '../core/planner/laws.test';
import '../simulation/fresh-histories.test';
import '../simulation/hostile-histories.test';
import '../core/config/properties.test';
import '../templates/validation.test';

vi.hoisted(() => {
  process.env.SLIPWAY_DRAWS ??= '5';
  process.env.SLIPWAY_LAWS ??= 'all';
});
