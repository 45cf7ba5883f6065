// The sizes of what a deploy sends, over 40 drawn environments and in every partition; `npm test` draws ten.
import { vi } from 'vitest';
import '../../laws/sizes.test';

vi.hoisted(() => {
  process.env.SLIPWAY_DRAWS ??= '4';
});
