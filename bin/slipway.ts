// Node 20 is supported until its users have left it; the SDK's reminder on every call would only be noise.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

import('../lib/cli/main.js')
  .then(({ main }) => main(process.argv))
  .then((code) => {
    process.exitCode = code;
  });
