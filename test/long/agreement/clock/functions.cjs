// Puts the functions on the clock of the test: NODE_OPTIONS makes Node read this file before anything else.
const { readFileSync } = require('node:fs');

const RealDate = Date;
const now = () => RealDate.now() + Number(readFileSync(process.env.SLIPWAY_TEST_CLOCK, 'latin1'));

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(now());
    else super(...args);
  }
  static now() {
    return now();
  }
};
