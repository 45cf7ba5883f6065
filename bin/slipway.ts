#!/usr/bin/env node
import { outliveReaders } from '../lib/cli/terminal';

// Node 20 is supported until its users have left it; the SDK's reminder on every call would only be noise.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

outliveReaders();

import('../lib/cli/main.js')
  .then(({ main, reportSignals, reportUncaught }) => {
    reportSignals(process.argv);
    process.on('uncaughtException', (error) => process.exit(reportUncaught(error, process.argv)));
    return main(process.argv);
  })
  .then((code) => {
    process.exitCode = code;
  });
