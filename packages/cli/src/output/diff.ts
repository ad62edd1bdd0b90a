import type { DiffMessage, DiffSide, SessionDiff } from '@tapedeck/runtime';
import { oneLine, safe } from '../escape.ts';
import { inlineMarkdown } from '../terminal/markdown.ts';
import { counted } from './counted.ts';
import { type Paper, patchLines } from './diff-patch.ts';

type Json = Readonly<Record<string, unknown>>;

/** How much of a comparison to show. */
export interface DiffDetail {
  /** Show counts and names alone. */
  readonly stat: boolean;
  /** The last answers as a unified diff; null when one is missing, or they have too little in common. */
  readonly answers: string | null;
}

/** A comparison as `--json` prints it; part of the documented contract. */
export function diffJson({ base, a, b, both }: SessionDiff, { stat, answers }: DiffDetail): Json {
  return {
    base: base ?? null,
    a: sideJson(a, stat),
    b: sideJson(b, stat),
    both,
    ...(!stat && { answers }),
  };
}

function sideJson({ answer, recent, ...side }: DiffSide, stat: boolean): Json {
  return { ...side, ...(!stat && { recent }), answer: answer?.seq ?? null };
}

/** A point of a session in the syntax of the command line. */
export function placeName({ session, at }: Pick<DiffSide, 'session' | 'at'>): string {
  return `${session}@${at}`;
}

/** A comparison as text. */
export function diffText(
  diff: SessionDiff,
  {
    stat,
    answers,
    width,
    isTerminal,
    ...paper
  }: DiffDetail & Paper & { readonly width: number; readonly isTerminal: boolean },
): string {
  const { base, a, b, both } = diff;
  if (base !== undefined && a.entries + b.entries === 0)
    return safe(
      placeName(a) === placeName(b)
        ? `${placeName(a)} is the same point on both sides: no differences`
        : `${namesOf(diff)} have the same entries`,
    );
  const lines = [baseLine(diff), ...sideLines(a), ...sideLines(b)];
  if (both.length > 0) lines.push(`Both wrote ${both.join(', ')}`);
  const head = lines.map(safe);
  if (stat) return head.join('\n');
  const messages = [
    ...messageLines(a, { mark: '<', width, paper }),
    ...messageLines(b, { mark: '>', width, paper }),
  ];
  const texts = { a: a.answer?.text ?? '', b: b.answer?.text ?? '' };
  const patch =
    answers === null
      ? [safe(answersApart(diff))]
      : patchLines(answers, { ...paper, texts, width: isTerminal ? width : Number.POSITIVE_INFINITY });
  const parts = [messages, patch.filter((line) => line !== '')].filter((part) => part.length > 0);
  return [...head, ...parts.flatMap((part) => ['', ...part])].join('\n');
}

function namesOf({ a, b }: SessionDiff): string {
  return [...new Set([placeName(a), placeName(b)])].join(' and ');
}

function baseLine(diff: SessionDiff): string {
  const { base } = diff;
  if (base === undefined) return `${namesOf(diff)} have no common base: they share no entry`;
  const shared =
    base.shared === null ? 'they share no entry before it' : `both have ${base.shared.join('-')}`;
  return `${namesOf(diff)} differ after ${base.session}@${base.seq}: ${shared}`;
}

function sideLines(side: DiffSide): string[] {
  const { entries, messages, tools, files, state, complete, read } = side;
  if (entries === 0) return [`${placeName(side)}: no further entries`];
  const { user, assistant, merge } = messages;
  const size = counted(entries, 'entry', 'entries');
  const counts = [
    ...(user > 0 ? [counted(user, 'message', 'messages')] : []),
    ...(assistant > 0 ? [counted(assistant, 'answer', 'answers')] : []),
    ...(merge > 0 ? [counted(merge, 'merge', 'merges')] : []),
  ];
  const found = read === undefined ? counts : [`in the newest ${read}: ${counts.join(', ')}`];
  const row = (what: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`  ${what.padEnd(6)} ${names.join(', ')}`];
  return [
    `${placeName(side)}: ${[size, ...found].join(', ')}`,
    ...row(
      'tools',
      tools.map(({ tool, calls }) => `${oneLine(tool, nameMax)} ×${calls}`),
    ),
    ...row(
      'files',
      files.map(({ path, wrote }) => `${oneLine(path, nameMax)}${wrote ? '' : ' (read)'}`),
    ),
    ...row(
      'state',
      state.map(({ key }) => oneLine(key, nameMax)),
    ),
    ...(complete ? [] : [read === undefined ? '  and more' : '  and more before these (--all)']),
  ];
}

const nameMax = 120;

function messageLines(
  { messages, recent, read }: DiffSide,
  {
    mark,
    width,
    paper: { style, renders },
  }: { readonly mark: '<' | '>'; readonly width: number; readonly paper: Paper },
): string[] {
  const { user, assistant, merge } = messages;
  const more = user + assistant + merge - recent.length;
  const before = read === undefined ? 'earlier' : 'or more earlier';
  const color = mark === '<' ? 'red' : 'green';
  const line = ({ seq, from, text }: DiffMessage) => {
    const said = oneLine(text, Math.max(20, width - 20));
    return `${mark}${String(seq).padStart(5)}  ${from.padEnd(9)}  ${renders ? inlineMarkdown(said, style) : said}`.trimEnd();
  };
  const lines = [
    ...(more > 0 ? [`${mark}       ${counted(more, `${before} message`)}`] : []),
    ...recent.map(line),
  ];
  return lines.map((text) => style.text(color, text));
}

/** The line in place of a diff of the answers. */
function answersApart({ a, b }: SessionDiff): string {
  if (a.answer === undefined || b.answer === undefined) return '';
  return `The last answers, ${a.session}@${a.answer.seq} and ${b.session}@${b.answer.seq}, have too little in common`;
}
