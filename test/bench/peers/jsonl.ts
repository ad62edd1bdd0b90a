import {
  closeSync,
  copyFileSync,
  createReadStream,
  fdatasyncSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Peer, Text } from './peer.ts';

const block = 65_536;

/** A file of JSON lines for each session, synced after each line. A fork copies the file. */
export const jsonl: Peer = {
  name: 'JSONL, fdatasync',
  packages: {},
  load: async () => (home) => {
    const file = (session: string) => join(home, `${session}.jsonl`);
    const opened: number[] = [];
    const open = (session: string, flags: string) => {
      const fd = openSync(file(session), flags);
      opened.push(fd);
      return fd;
    };
    const synced = (fd: number, texts: readonly Text[]) => {
      writeSync(fd, texts.map((text) => `${JSON.stringify(text)}\n`).join(''));
      fdatasyncSync(fd);
    };
    return {
      async fill(texts) {
        const session = crypto.randomUUID();
        const fd = open(session, 'wx');
        for (let at = 0; at < texts.length; at += 1000) synced(fd, texts.slice(at, at + 1000));
        return session;
      },
      async appender(session) {
        const fd = open(session, 'a');
        return (text) => synced(fd, [text]);
      },
      async fork(session) {
        const fork = crypto.randomUUID();
        copyFileSync(file(session), file(fork));
        fdatasyncSync(open(fork, 'a'));
        return fork;
      },
      last: async (session, count) => lastLines(open(session, 'r'), count).map(textOf),
      async all(session, see) {
        for await (const line of createInterface({ input: createReadStream(file(session)) }))
          see(textOf(line));
      },
      list: async () =>
        readdirSync(home).map((name) => ({ name, changed: statSync(join(home, name)).mtimeMs })).length,
      close: () => {
        for (const fd of opened) closeSync(fd);
      },
    };
  },
};

/** Reads blocks backwards until they hold this many lines. */
function lastLines(fd: number, count: number): string[] {
  const blocks: Buffer[] = [];
  let newlines = 0;
  for (let end = fstatSync(fd).size; end > 0 && newlines <= count; end -= block) {
    const read = Buffer.alloc(Math.min(block, end));
    readSync(fd, read, 0, read.length, end - read.length);
    for (let at = read.indexOf(10); at >= 0; at = read.indexOf(10, at + 1)) newlines += 1;
    blocks.unshift(read);
  }
  return Buffer.concat(blocks).toString().trimEnd().split('\n').slice(-count);
}

function textOf(line: string): string {
  return (JSON.parse(line) as Text).text;
}
