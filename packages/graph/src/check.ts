import { firstPrev, type Link, readLink } from './chain.ts';
import type { Line } from './lines.ts';

/** What is wrong at a line. The five ways a chain can break. */
export type ProblemCode = 'glued' | 'forged' | 'missing' | 'swapped' | 'duplicated';

export interface JournalProblem {
  readonly code: ProblemCode;
  /** The number of the line, from 1, sealed fragments and all. */
  readonly line: number;
  /** The record's number, or the first missing one. */
  readonly g?: number;
  readonly message: string;
}

/** What the file says of itself. A tail that was cut off at a line's end shows only against the store. */
export interface JournalReport {
  readonly records: number;
  /** Lines that hold no record, as a crash and the seal after it leave them; the chain goes on around them. */
  readonly fragments: number;
  /** Bytes follow the last LF: the next append seals them. */
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
 * Checks a graph file by itself, line after line (R6): the records count 1, 2, 3 …, and each names the hash
 * of the one before. Beside the current line it holds six bytes of hash for each record.
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

/** The state of a check: what was last in order, what broke the order, what is still missing. */
class ChainCheck {
  #last: Link = origin;
  #suspect: Suspect | undefined;
  #records = 0;
  readonly #problems = new Set<JournalProblem>();
  readonly #gaps: Gap[] = [];
  /** By number, the first 48 bits of each record's hash, to know a repetition from another line. */
  readonly #seen = new Map<number, number>();

  /** Takes a line; says whether it holds a record, or at least JSON that claims to be one. */
  read(text: string, line: number): boolean {
    const linked = readLink(text);
    if (linked.kind === 'record') {
      this.#take(linked.link, line);
      return true;
    }
    if (linked.kind === 'other') {
      this.#report({ code: 'forged', line, message: 'is JSON, but no record' });
      return true;
    }
    const glued = gluedRecords(text);
    if (glued.length === 0) return false;
    const g = glued[0]?.g ?? 0;
    this.#report({ code: 'glued', line, g, message: `holds record ${g} glued to something else` });
    for (const link of glued) this.#take(link, line);
    return true;
  }

  /** Takes what follows the last LF: a record that lacks only its own and stands where it does not belong is named. */
  readTorn(text: string | undefined, line: number): void {
    if (text?.endsWith('}') !== true) return;
    const linked = readLink(text);
    if (linked.kind === 'record' && !follows(this.#last, linked.link)) this.#take(linked.link, line);
  }

  result(): Pick<JournalReport, 'records' | 'g' | 'hash' | 'problems'> {
    const problems = [...this.#problems].sort((a, b) => a.line - b.line);
    return { records: this.#records, g: this.#last.g, hash: this.#last.hash, problems };
  }

  #take(link: Link, line: number): void {
    this.#records += 1;
    const { g } = link;
    if (follows(this.#last, link)) {
      this.#suspect = undefined;
      this.#advance(link);
    } else if (this.#suspect !== undefined && follows(this.#suspect.before, link)) {
      this.#resolve(this.#suspect, link, line);
    } else if (g > this.#last.g) {
      this.#doubt(link, line);
    } else if (!this.#seen.has(g)) {
      this.#fillGap(g);
      this.#report({ code: 'swapped', line, g, message: `record ${g} stands after record ${this.#last.g}` });
      this.#seen.set(g, short(link.hash));
    } else if (this.#seen.get(g) === short(link.hash)) {
      this.#report({ code: 'duplicated', line, g, message: `record ${g} stands here again` });
    } else {
      this.#report({ code: 'forged', line, g, message: `is another record ${g}` });
    }
  }

  /** A record that does not follow. What it means may show with the next line. */
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

  /** The line after a doubtful one follows the line before it: the doubtful one was put in, or came too early. */
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
        message: `record ${link.g} stands after record ${odd.g}`,
      });
      return; // what comes next follows the odd one, which is the last already
    }
    this.#report({
      code: 'forged',
      line: problem.line,
      g: odd.g,
      message: `record ${odd.g} stands where none was between ${before.g} and ${link.g}`,
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

/** The records inside a line that is not one: our records begin alike, and no string in them can hold that. */
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
