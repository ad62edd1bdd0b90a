// `VmHWM` begins with the process's own program; `maxRSS` would count what the parent had when it started it.
const { readFileSync, writeSync } = require('node:fs');

process.on('exit', () => {
  const [, peak] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'));
  writeSync(3, peak);
});
