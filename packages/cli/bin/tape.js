#!/usr/bin/env node
// Checked before anything is imported: the native SQLite module crashes an older Node.js instead of refusing.
const [major] = process.versions.node.split('.').map(Number);
if (major < 24) {
  console.error(`tape needs Node.js 24 or newer, and this is ${process.version}.`);
  process.exit(1);
}
const { main, nodeIo } = await import('../dist/main.js');
process.exitCode = await main(process.argv.slice(2), nodeIo());
