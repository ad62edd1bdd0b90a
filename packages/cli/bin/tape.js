#!/usr/bin/env node
// Checked before anything is imported: the native SQLite module crashes an older Node.js instead of refusing.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 4)) {
  console.error(`tape needs Node.js 24.4 or newer, and this is ${process.version}.`);
  process.exit(1);
}
const { consoleOn, main, maskedIo, nodeIo, reportEarlyExit } = await import('../dist/main.js');
const io = maskedIo(nodeIo());
// Stdout is for answers: what a configuration and its tools print goes where status goes.
globalThis.console = consoleOn(io);
const argv = process.argv.slice(2);
const done = reportEarlyExit(argv);
process.exitCode = await main(argv, io);
done();
// What a tool left open, a timer or a connection, does not keep the command from ending once its output is out.
process.stdout.write('', () => setTimeout(() => process.exit(), 500).unref());
