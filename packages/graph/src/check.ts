import { firstPrev, type Link, readLink } from './chain.ts';
import type { Line } from './lines.ts';

/** The five ways in which the chain can break at a line. */
export type ProblemCode = 'glued' | 'forged' | 'missing' | 'swapped' | 'duplicated';

/** Damage that `checkJournal` found in a graph file. */
export interface JournalProblem {
  readonly code: ProblemCode;
  /** Number of the line, from 1; fragments count. */
  readonly line: number;
  /** Number of the record, or of the first missing record. */
  readonly g?: number;
  readonly message: string;
}

/**
 * The result of a check of the file alone. A tail cut off at a line end is visible only in comparison with
 * the store.
 */
export interface JournalReport {
  readonly records: number;
  /** Lines without a record, which remain after a crash; the chain skips them. */
  readonly fragments: number;
  /** Whether bytes follow the last LF; the next append seals them. */
  readonly torn: boolean;
  /** Number and hash of the last record in order. */
  readonly g: number;
  readonly hash: string;
  readonly problems: readonly JournalProblem[];
}

interface Suspect {
  problem: JournalProblem;
  readonly link: Link;
  /** The last record in order before it. */
  readonly before: Link;
}

interface Gap {
  readonly from: number;
  readonly to: number;
  readonly problem: JournalProblem;
  left: number;
}

const origin: Link = { g: 0, prev: undefined, hash: firstPrev };

/**
 * Checks a graph file by itself, line by line: the records count 1, 2, 3 …, and each has the hash of the
 * record before. Memory: the current line, and six bytes of hash for each record.
 *
 * @example
 * ```ts
 * import { checkJournal, readLines } from '@tapedeck/graph';
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * const { records, problems } = checkJournal(readLines('.tape/session_graph.jsonl'));
 * console.log(records, problems.length); // 2 0
 * ```
 */
export function checkJournal(lines: Iterable<Line>): JournalReport {
  const chain = new ChainCheck();
  let fragments = 0;
  let torn = false;
  for (const line of lines) {
    if (line.kind === 'torn') {
      torn = true;
      chain.readTorn(line.text, line.number);
    } else if (line.kind === 'bad') fragments += 1;
    else if (!chain.read(line.text, line.number)) fragments += 1;
  }
  return { ...chain.result(), fragments, torn };
}

/** Numbers by number from 1, most of them set in order: those take eight bytes each, where a map would take fifty. */
class HashStarts {
  readonly #inOrder: number[] = [];
  readonly #others = new Map<number, number>();

  get(g: number): number | undefined {
    const found = this.#inOrder[g - 1];
    return found === undefined || Number.isNaN(found) ? this.#others.get(g) : found;
  }

  set(g: number, start: number): void {
    if (g >= 1 && g <= this.#inOrder.length + 1) this.#inOrder[g - 1] = start;
    else this.#others.set(g, start);
  }

  delete(g: number): void {
    if (g >= 1 && g <= this.#inOrder.length) this.#inOrder[g - 1] = Number.NaN;
    this.#others.delete(g);
  }
}

/**
 * The state of a check: the last record in order, the record that broke the order, and the missing records.
 */
class ChainCheck {
  #last: Link = origin;
  #suspect: Suspect | undefined;
  #records = 0;
  readonly #problems = new Set<JournalProblem>();
  readonly #gaps: Gap[] = [];
  /** The first 48 bits of the hash of each record, by number, to tell a repeated record from another one. */
  readonly #seen = new HashStarts();

  /** Checks a finished line. Returns false for a fragment. */
  read(text: string, line: number): boolean {
    const linked = readLink(text);
    if (linked.kind === 'record') {
      this.#add(linked.link, line);
      return true;
    }
    if (linked.kind === 'other') {
      this.#report({ code: 'forged', line, message: 'is JSON, but not a record' });
      return true;
    }
    const glued = gluedRecords(text);
    if (glued.length === 0) return false;
    const g = glued[0]?.g ?? 0;
    this.#report({ code: 'glued', line, g, message: `has record ${g} glued to other text` });
    for (const link of glued) this.#add(link, line);
    return true;
  }

  /** Checks the bytes after the last LF, and reports a complete record that is out of order. */
  readTorn(text: string | undefined, line: number): void {
    if (text?.endsWith('}') !== true) return;
    const linked = readLink(text);
    if (linked.kind === 'record' && !follows(this.#last, linked.link)) this.#add(linked.link, line);
  }

  result(): Pick<JournalReport, 'records' | 'g' | 'hash' | 'problems'> {
    const problems = [...this.#problems].sort((a, b) => a.line - b.line);
    return { records: this.#records, g: this.#last.g, hash: this.#last.hash, problems };
  }

  #add(link: Link, line: number): void {
    this.#records += 1;
    const { g } = link;
    if (follows(this.#last, link)) {
      this.#suspect = undefined;
      this.#advance(link);
    } else if (this.#suspect !== undefined && follows(this.#suspect.before, link)) {
      this.#resolve(this.#suspect, link, line);
    } else if (g > this.#last.g) {
      this.#doubt(link, line);
    } else if (this.#seen.get(g) === undefined) {
      this.#fillGap(g);
      this.#report({ code: 'swapped', line, g, message: `record ${g} follows record ${this.#last.g}` });
      this.#seen.set(g, short(link.hash));
    } else if (this.#seen.get(g) === short(link.hash)) {
      this.#report({ code: 'duplicated', line, g, message: `record ${g} is repeated` });
    } else {
      this.#report({ code: 'forged', line, g, message: `a different record ${g}` });
    }
  }

  /** Reports a record that does not follow the last one. The next line may correct the report. */
  #doubt(link: Link, line: number): void {
    const before = this.#last;
    const { g } = link;
    const from = before.g + 1;
    const problem: JournalProblem =
      g === from
        ? { code: 'forged', line, g, message: `record ${g} or the one before it was changed` }
        : { code: 'missing', line, g: from, message: `${numbers(from, g - 1)} missing before record ${g}` };
    this.#report(problem);
    if (g !== from) this.#gaps.push({ from, to: g - 1, left: g - from, problem });
    this.#suspect = { problem, link, before };
    this.#advance(link);
  }

  /**
   * Corrects the report: this record follows the one before the suspect, so the suspect was inserted or is
   * early.
   */
  #resolve({ problem, link: odd, before }: Suspect, link: Link, line: number): void {
    this.#suspect = undefined;
    this.#problems.delete(problem);
    const gap = this.#gaps.findIndex((other) => other.problem === problem);
    if (gap !== -1) this.#gaps.splice(gap, 1);
    this.#seen.set(link.g, short(link.hash));
    if (follows(link, odd)) {
      this.#report({
        code: 'swapped',
        line,
        g: link.g,
        message: `record ${link.g} follows record ${odd.g}`,
      });
      return; // the next record follows the suspect, which is already `#last`
    }
    this.#report({
      code: 'forged',
      line: problem.line,
      g: odd.g,
      message: `record ${odd.g} was inserted between ${before.g} and ${link.g}`,
    });
    if (odd.g !== link.g) this.#seen.delete(odd.g);
    this.#last = link;
  }

  #fillGap(g: number): void {
    const gap = this.#gaps.find(({ from, to }) => from <= g && g <= to);
    if (gap === undefined) return;
    gap.left -= 1;
    if (gap.left === 0) this.#problems.delete(gap.problem);
  }

  #advance(link: Link): void {
    this.#last = link;
    this.#seen.set(link.g, short(link.hash));
  }

  #report(problem: JournalProblem): void {
    this.#problems.add(problem);
  }
}

function follows(last: Link, link: Link): boolean {
  return link.g === last.g + 1 && link.prev === last.hash;
}

/**
 * The records inside a line that is not JSON. All records begin with `{"v":`, which JSON strings cannot
 * contain.
 */
function gluedRecords(text: string): Link[] {
  const found: Link[] = [];
  const pieces = text.split('{"v":').slice(1);
  for (const [i, piece] of pieces.entries()) {
    const linked = readLink(`{"v":${piece}`);
    if (linked.kind === 'record' && (i > 0 || pieces.length > 1)) found.push(linked.link);
  }
  return found;
}

function numbers(from: number, to: number): string {
  return from === to ? `record ${from} is` : `records ${from} to ${to} are`;
}

function short(hash: string): number {
  return Number.parseInt(hash.slice(0, 12), 16);
}
