#!/usr/bin/env node
// Node 20 is supported until its users have left it; the SDK's reminder on every call would only be noise.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

// A reader that has seen enough (`slipway logs RUN | head`) closes the pipe: this is not an error. Without a reader of its messages, a verb
// goes on to its result.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (stream === process.stdout) process.exit(process.exitCode ?? 0);
  });

import('../lib/cli/main.js')
  .then(({ main, reportSignals, reportUncaught }) => {
    reportSignals(process.argv);
    process.on('uncaughtException', (error) => process.exit(reportUncaught(error, process.argv)));
    return main(process.argv);
  })
  .then((code) => {
    process.exitCode = code;
  });
