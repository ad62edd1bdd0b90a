import { isObject } from '@tapedeck/tape/internal';
import { shortHash } from './short-hash.ts';

/** Some fields quote no more of a text than its beginning. */
const quotedMax = 100;

/** A title that was cut has at least so much of a text. */
const cutMin = 40;

/** How a cut text ends. */
const cutEnd = /\s*(?:…|\.{3})$/;

/** What a tool writes behind the title of a session, or behind its first prompt, to name a copy of it. */
const copyEnd = /(?: \((?:Branch|Fork)(?: \d+)?\))+$/;

/** A word of a result is an id, or a word of a format, unless it is as long. */
const wordMin = 16;

/** Texts, and whether other ones quote them: as a whole, or their beginnings, as the title of a session does. */
export class QuotedTexts {
  readonly #marks = new Set<string>();

  /** Takes what a value says. */
  addSaid(value: unknown): void {
    for (const text of saidIn(value)) this.add(text);
  }

  add(text: string): void {
    const line = lineOf(text);
    if (line === '') return;
    this.#marks.add(wholeMark(line));
    if (line.length > cutMin) this.#marks.add(cutMark(line));
  }

  has(text: string): boolean {
    const line = lineOf(text);
    return this.#hasLine(line) || this.#hasLine(line.replace(copyEnd, ''));
  }

  #hasLine(line: string): boolean {
    if (this.#marks.has(wholeMark(line))) return true;
    const begun = line.replace(cutEnd, '');
    return begun !== line && begun.length >= cutMin && this.#marks.has(cutMark(begun));
  }

  /** Whether something in a value quotes one of the texts. */
  areIn(value: unknown): boolean {
    return textsIn(value).some(({ text }) => this.has(text));
  }
}

function lineOf(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function wholeMark(line: string): string {
  return shortHash(line.slice(0, quotedMax).trimEnd());
}

function cutMark(line: string): string {
  return shortHash(`${line.slice(0, cutMin)}…`);
}

/** The texts in a value that are more than an id, a time, a path, or a word of a format. */
export function saidIn(value: unknown): readonly string[] {
  return textsIn(value).flatMap(({ text, name }) => {
    const isWord = !/\s/.test(text.trim());
    const isSaid = !isWord || name === 'text' || (name === 'value' && text.length >= wordMin);
    return isSaid ? text : [];
  });
}

/** A text, and the name of the field that has it. */
interface FoundText {
  readonly text: string;
  readonly name: string;
}

function textsIn(value: unknown, name = ''): readonly FoundText[] {
  if (typeof value === 'string') return [{ text: value, name }];
  if (Array.isArray(value)) return value.flatMap((one) => textsIn(one, name));
  if (!isObject(value) || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(([field, one]) => textsIn(one, field));
}
