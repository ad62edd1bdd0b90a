import { firstLinePrev, hashLine, type Journal, type LineageLine } from '@tapedeck/tape/store';

/** A graph file that is a text: its end can be torn off, and it fails on request. */
export class MemoryJournal implements Journal {
  text: string;
  /** How many characters of the next append are written before it fails; all of them when not set. */
  failAfter: number | undefined;

  constructor(text = '') {
    this.text = text;
  }

  tail(): { g: number; hash: string; torn: boolean } {
    const last = this.lines().at(-1);
    const torn = this.text !== '' && !this.text.endsWith('\n');
    if (last === undefined) return { g: 0, hash: firstLinePrev, torn };
    return { g: parse(last)?.g ?? 0, hash: hashLine(last), torn };
  }

  append(lines: readonly string[]): void {
    const torn = this.tail().torn;
    const added = (torn ? '\n' : '') + lines.map((line) => `${line}\n`).join('');
    const fails = this.failAfter !== undefined;
    this.text += added.slice(0, this.failAfter);
    this.failAfter = undefined;
    if (fails) throw Object.assign(new Error('no space left'), { code: 'GRAPH_IO' });
  }

  /** The whole lines, without a fragment. */
  lines(): string[] {
    return this.text.split('\n').filter((line) => parse(line) !== undefined);
  }
}

function parse(line: string): LineageLine | undefined {
  try {
    return JSON.parse(line) as LineageLine;
  } catch {
    return undefined;
  }
}
