#!/usr/bin/env node
// Checked before anything is loaded: the native SQLite module crashes an older Node.js instead of refusing.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 4)) {
  console.error(`tape needs Node.js 24.4 or newer, and this is ${process.version}.`);
  process.exit(1);
}

const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Script } = require('node:vm');
const sumOf = require('./code-sum.js');

/** The build of Node.js that can read the code which `pnpm build` compiled: V8 itself compares its version and flags. */
const { platform, arch, version, config } = process;
const reader = `${version} ${platform} ${arch} ${config.variables.v8_enable_pointer_compression}`;

const bundle = join(__dirname, '../bundle');
const modules = new Map();
const head = '(function (exports, require, module, __filename, __dirname) {';

/** Loads a file of the bundle once, with its compiled code where there is any. */
function load(file, given) {
  const loaded = modules.get(file);
  if (loaded !== undefined) return loaded.exports;
  const { text, code } = given ?? source(file);
  const module = { exports: {} };
  modules.set(file, module);
  const filename = join(bundle, file);
  const script = new Script(`${head}${text}\n})`, {
    filename,
    columnOffset: -head.length,
    cachedData: code,
  });
  const own = (id) => (id.startsWith('./') ? load(id.slice(2)) : require(id));
  try {
    script.runInThisContext().call(module.exports, module.exports, own, module, filename, bundle);
  } catch (error) {
    modules.delete(file);
    throw error;
  }
  return module.exports;
}

/**
 * The text of a file of the bundle, and its compiled code, if that is whole and was made of this text by this build of
 * Node.js.
 */
function source(file) {
  const text = readFileSync(join(bundle, file), 'utf8');
  // The text ends with its hash, and the file of code with its sum.
  const mark = Buffer.from(` ${reader} ${text.slice(-16)}`);
  let code;
  try {
    code = readFileSync(join(bundle, `${file}.code`));
  } catch {
    return { text };
  }
  const end = Math.max(0, code.length - mark.length - 8);
  const own = code.subarray(0, end);
  const isOurs = code.subarray(end + 8).equals(mark);
  return isOurs && code.latin1Slice(end, end + 8) === sumOf(own) ? { text, code: own } : { text };
}

/** The command, with compiled code unless Node.js has to compile it: it maps and covers only what it compiled itself. */
function command() {
  const given = source('start.cjs');
  const canCompile = !process.sourceMapsEnabled && process.env.NODE_V8_COVERAGE === undefined;
  return given.code !== undefined && canCompile ? load('start.cjs', given) : require('../bundle/start.cjs');
}

command().start(process.argv.slice(2), () => import('../dist/start.js'));
