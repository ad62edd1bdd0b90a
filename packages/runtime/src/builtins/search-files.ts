import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { FilePlace } from '../tools/file-place.ts';
import type { DeckTool } from '../tools/traits.ts';
import { countArgument, defineBuiltin, pathArgument } from './define.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import { FileReader, type ReadFile } from './file-reader.ts';
import { assertReach, realOf } from './held-directory.ts';
import { ignoredAt } from './ignored.ts';
import type { BuiltinLimits } from './limits.ts';
import { shownName } from './list-directory.ts';
import { type Matcher, type MatchingLine, matcherOf, PatternTimeout } from './matcher.ts';
import { kindOf } from './open-file.ts';
import { walk } from './walk.ts';

interface SearchInput {
  readonly pattern?: string;
  readonly path?: string;
  readonly regex?: boolean;
  readonly ignore_case?: boolean;
  readonly files?: string;
  readonly offset?: number;
}

/** The most lines of one answer. */
const pageMax = 200;

/** The most files that are open at once. */
const batchMax = 64;

/** How long the process does nothing else, in milliseconds. */
const stretchMs = 15;

/** Searches the text files of a directory that git does not ignore. */
export function searchFilesTool(
  limits: Pick<BuiltinLimits, 'outputBytes' | 'fileBytes' | 'searchTimeoutMs'>,
): DeckTool {
  return defineBuiltin<SearchInput>({
    description: `Search the text files below a directory, without those that .gitignore excludes. Returns up to ${pageMax} lines as PATH:LINE: TEXT. Without a pattern it lists the files.`,
    properties: {
      pattern: { type: 'string', minLength: 1, description: 'The text to find in a line' },
      path: {
        ...pathArgument('The directory or file'),
        description: 'The directory or file (default: the workspace)',
      },
      regex: { type: 'boolean', description: 'True if the pattern is a regular expression of JavaScript' },
      ignore_case: { type: 'boolean', description: 'True to find capitals and small letters alike' },
      files: {
        type: 'string',
        minLength: 1,
        description: 'Only files like this, as in .gitignore: *.ts, src/**',
      },
      offset: countArgument('The first match to show (default 1)'),
    },
    required: [],
    paths: { read: ['path'], display: 'pattern' },
    safeToRepeat: true,
    timeoutMs: limits.searchTimeoutMs + 10_000,
    execute: async (input, { place, signal }) => {
      const act = `search '${input.path ?? '.'}'`;
      try {
        return await search(input, { place, signal, limits, act });
      } catch (error) {
        throw asBuiltin(error, act);
      }
    },
  });
}

interface Search {
  readonly place: FilePlace;
  readonly signal: AbortSignal;
  readonly limits: Pick<BuiltinLimits, 'outputBytes' | 'fileBytes' | 'searchTimeoutMs'>;
  readonly act: string;
}

async function search(
  { pattern, path = '.', regex = false, ignore_case = false, files, offset = 1 }: SearchInput,
  { place, signal, limits, act }: Search,
): Promise<string> {
  const { default: make } = await import('ignore');
  const real = realOf(place, { path, kind: 'read', act });
  assertReach(place, { kind: 'read', act }, real);
  const at = statSync(real);
  if (!at.isFile() && !at.isDirectory())
    throw new BuiltinError('TOOL_NOT_A_FILE', `cannot ${act}: it is ${kindOf(at)}`);
  const isFile = at.isFile();
  const workspace = place.directory === undefined ? '/' : realpathSync.native(place.directory);
  const root = isFile ? dirname(real) : real;
  const isInside = root === workspace || root.startsWith(workspace === '/' ? '/' : `${workspace}/`);
  const top = isInside ? workspace : root;
  const below = relative(top, root);
  const shown = (file: string) =>
    shownName(isInside || isFile ? relative(workspace, `${top}/${file}`) : `${top}/${file}`);
  const wanted = files === undefined ? undefined : make({ allowRelativePaths: true }).add(files);
  const rules = () => make({ allowRelativePaths: true });
  const ignored = ignoredAt(top, below === '' ? [] : below.split('/'), rules);
  const found = isFile
    ? [below === '' ? basename(real) : `${below}/${basename(real)}`]
    : walk({ top, below, ignored, make: rules });
  const matcher =
    pattern === undefined ? undefined : matcherOf(pattern, { isRegExp: regex, ignoreCase: ignore_case });
  const page = new Page(offset, limits.outputBytes);
  const reader = new FileReader(top, { ...limits, place });
  const until = performance.now() + limits.searchTimeoutMs;
  let [searched, resumedAt, stopped] = [0, performance.now(), ''];
  let batch: ReadFile[] = [];
  let batchBytes = 0;
  const matchBatch = (given: Matcher) => {
    const lines = given.match(
      batch.map(({ bytes }) => bytes),
      page.room,
    );
    for (const [i, read] of batch.entries())
      if (lines[i] !== undefined && lines[i].length > 0 && reader.isAllowed(read))
        page.addLines(shown(read.file), lines[i]);
    closeBatch();
  };
  const closeBatch = () => {
    for (const read of batch) reader.close(read);
    [batch, batchBytes] = [[], 0];
  };
  try {
    for (const file of found) {
      signal.throwIfAborted();
      if (page.isFull) break;
      if (performance.now() > until) {
        stopped = `it took longer than ${limits.searchTimeoutMs} ms`;
        break;
      }
      if (wanted?.ignores(below === '' ? file : file.slice(below.length + 1)) === false) continue;
      if (matcher === undefined && place.mayReach?.('read', `${top}/${file}`) === false) continue;
      searched += 1;
      if (matcher === undefined) page.add(shown(file));
      else {
        const read = reader.read(file, matcher.batchBytes > 0);
        if (read !== undefined) {
          batch.push(read);
          batchBytes += read.bytes.length;
          if (batchBytes >= matcher.batchBytes || batch.length === batchMax) matchBatch(matcher);
        }
      }
      if (performance.now() - resumedAt < stretchMs) continue;
      await setImmediate();
      resumedAt = performance.now();
    }
    if (matcher !== undefined && batch.length > 0) matchBatch(matcher);
  } catch (error) {
    if (!(error instanceof PatternTimeout)) throw error;
    stopped = `the pattern is too slow: ${error.message} on a part of the files`;
  } finally {
    closeBatch();
  }
  return page.text(searched, { stopped, large: reader.large, unreadable: reader.unreadable });
}

/** The lines of one answer. */
class Page {
  readonly #from: number;
  readonly #bytesMax: number;
  readonly #lines: string[] = [];
  #passed = 0;
  #bytes = 0;
  #isCut = false;

  constructor(from: number, bytesMax: number) {
    this.#from = from;
    this.#bytesMax = bytesMax;
  }

  get isFull(): boolean {
    return this.#isCut;
  }

  /** How many lines of one file can count. */
  get room(): number {
    return this.#from + pageMax + 1 - this.#passed;
  }

  addLines(file: string, lines: readonly MatchingLine[]): void {
    for (const { line, text } of lines) this.add(`${file}:${line}: ${text.replaceAll('\r', '\\r')}`);
  }

  add(line: string): void {
    if (this.#isCut) return;
    if (this.#passed + 1 >= this.#from) {
      const bytes = Buffer.byteLength(line) + 1;
      if (
        this.#lines.length === pageMax ||
        (this.#lines.length > 0 && this.#bytes + bytes > this.#bytesMax)
      ) {
        this.#isCut = true;
        return;
      }
      this.#bytes += bytes;
      this.#lines.push(line);
    }
    this.#passed += 1;
  }

  text(
    searched: number,
    { stopped, large, unreadable }: { stopped: string; large: number; unreadable: number },
  ): string {
    const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;
    const next = this.#from + this.#lines.length;
    const notes = [
      ...(this.#isCut ? [`cut: ${next - 1} matches so far; read on with {"offset":${next}}`] : []),
      ...(stopped === '' ? [] : [`stopped: ${stopped}; ${count(searched, 'file')} were begun`]),
      ...(large + unreadable > 0
        ? [`not searched: ${count(large, 'large file')}, ${count(unreadable, 'unreadable file')}`]
        : []),
      ...(this.#lines.length === 0 && !this.#isCut
        ? [`no ${this.#from > 1 ? 'further ' : ''}matches in ${count(searched, 'file')}`]
        : []),
    ];
    return [...this.#lines, ...notes.map((note) => `[${note}]`)].join('\n');
  }
}
