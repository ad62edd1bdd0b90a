#!/usr/bin/env node
// Checked before anything is loaded: the native SQLite module crashes an older Node.js instead of refusing.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 4)) {
  console.error(`tape needs Node.js 24.4 or newer, and this is ${process.version}.`);
  process.exit(1);
}
require('../bundle/start.cjs').start(process.argv.slice(2), () => import('../dist/start.js'));
