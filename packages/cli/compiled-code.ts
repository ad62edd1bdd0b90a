import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The bundle of the command. */
export const bundle: string = join(import.meta.dirname, 'bundle');

const sumOf: (code: Uint8Array) => string = createRequire(import.meta.url)('./bin/code-sum.js');

/** The end of the code of a text, after its sum, as `bin/tape.js` compares it: which build of Node.js reads it, and the hash of the text. */
function markOf(text: string): string {
  const { platform, arch, version, config } = process;
  return ` ${version} ${platform} ${arch} ${config.variables.v8_enable_pointer_compression} ${text.slice(-16)}`;
}

const textOf = (code: string) => readFileSync(code.replace(/\.code$/, ''), 'utf8');

/** Whether a file of code was compiled from the file beside it, by this build of Node.js. */
export function isCurrent(code: string): boolean {
  try {
    return readFileSync(code, 'latin1').endsWith(markOf(textOf(code)));
  } catch {
    return false;
  }
}

/** Replaces a file of code at once: another process may be starting from the bundle. */
export function saveCode(code: string, data: Uint8Array): void {
  writeFileSync(`${code}.new`, Buffer.concat([data, Buffer.from(sumOf(data) + markOf(textOf(code)))]));
  renameSync(`${code}.new`, code);
}
