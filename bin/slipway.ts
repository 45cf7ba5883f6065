import { main } from '../lib/cli/main';

main(process.argv).then((code) => {
  process.exitCode = code;
});
