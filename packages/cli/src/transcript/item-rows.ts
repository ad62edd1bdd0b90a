import { stripVTControlCharacters } from 'node:util';
import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { argumentsText, isObject } from '@tapedeck/tape/internal';
import { commandLine, oneLine, safe } from '../escape.ts';
import { counted } from '../output/counted.ts';
import { absentText, briefText, entryText, intentionText, partText, startText } from '../output/entry.ts';
import { commandOutput, commandText, isTyped } from '../output/local-command.ts';
import { markdown } from '../terminal/markdown.ts';
import type { Style } from '../terminal/style.ts';
import { cutText, textWidth } from '../terminal/width.ts';
import { styledLines, wrapText } from '../terminal/wrap.ts';
import type { Gap, Item } from './fold.ts';
import { argumentLines, callOf, outputOf, partsOf, type ToolCall } from './parts.ts';
import { recordType } from './record-type.ts';
import { rewindText } from './undoes.ts';

/** The place that the text of an item has. */
export interface Place {
  readonly style: Style;
  /** Whether answers are rendered as Markdown. */
  readonly renders: boolean;
  /** Makes a link of the name of a session. */
  readonly link: (id: string, name: string) => string;
  /** Columns of each line; infinite in a pipe. */
  readonly columns: number;
  /** Columns of the first line. */
  readonly first: number;
  /** Show whole texts. */
  readonly full: boolean;
  /** The text that the reader looks for: a cut text shows the lines with it. */
  readonly find: string | undefined;
  /** The session, as commands name it. */
  readonly session: string;
  /** A text whose commands name the home that the user named. */
  readonly inHome: (text: string) => string;
}

/** The place of a call and of its result, which have neither Markdown nor links. */
export type CallPlace = Omit<Place, 'renders' | 'link'>;

/** Lines that a text keeps, unless all are shown. */
const textRows = 6;
const summaryRows = 3;
/** Characters that are broken into lines: more than any terminal shows of one text. */
const charsMax = 16_000;
/** Characters of a line of text, and of a line that stands for more, in a pipe, which has no columns. */
const lineMax = 2_000;
/** Columns of a name: more than the name of a session has. */
const nameMax = 220;
const rowMax = 160;

/** The text of an item, as lines. */
export function itemRows(item: Item, place: Place): string[] {
  const { entry, report } = item;
  const { kind, name = '', payload } = entry;
  if (payload === null) return [place.style.text('dim', absentText(entry))];
  if (kind === 'message') return messageRows(item, place);
  // Alone, a result is beside the time.
  if (kind === 'tool-result')
    return resultRows(entry, { place: { ...place, columns: place.first }, indent: '' });
  const state = stateIn(payload);
  if (name.startsWith('merge/') && kind === 'anchor') return mergeRows(state, report, { place, entry });
  if (kind === 'anchor' && name === 'intention') return textLines(intentionText(state), { place, entry });
  if (kind === 'anchor' || kind === 'compaction') return anchorRows(state, { place, entry });
  return textLines(otherText(item), { place, entry, most: summaryRows });
}

/** The state that an anchor carries. */
export function stateIn(payload: Json): JsonObject {
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

function messageRows(item: Item, place: Place): string[] {
  const { entry, results } = item;
  if (entry.meta.source === 'merge') return textLines(briefText(entry), { place, entry, most: summaryRows });
  if (!isTyped(entry)) return untypedRows(item, place);
  const rows: string[] = [];
  // Only the line that comes first shares its place.
  const here = () => (rows.length === 0 ? place : { ...place, first: place.columns });
  const returned = new Map(
    partsOf(entry).flatMap((part) => (part.type === 'tool-result' ? [[String(part.toolCallId), part]] : [])),
  );
  for (const part of partsOf(entry)) {
    if (part.type === 'tool-call') {
      const call = callOf(part);
      rows.push(...callRows(call, here()));
      const result = results.get(call.id);
      const own = returned.get(call.id);
      if (result !== undefined) rows.push(...resultRows(result, { place }));
      else if (own !== undefined) rows.push(...outputRows(own.output, { place, where: entry }));
    } else if (part.type === 'reasoning') rows.push(...reasoningRows(part, { place: here(), entry }));
    else if (part.type !== 'tool-result')
      rows.push(
        ...textLines(partText(part), { place: here(), entry, renders: isRendered(part, item, place) }),
      );
  }
  return rows;
}

/** A command of the agent that was imported, with what it printed; or a text that its user did not type, on one line. */
function untypedRows({ entry, report }: Item, place: Place): string[] {
  const command = commandText(entry);
  const printed = commandOutput(report ?? entry);
  const where = report ?? entry;
  if (command === undefined && printed === undefined)
    return parenthesised(entryText(entry), { place, entry });
  const rows = command === undefined ? [] : textLines(command, { place, entry });
  if (printed === undefined || (printed.text === '' && rows.length > 0)) return rows;
  const output = { type: printed.failed ? 'error-text' : 'text', value: printed.text };
  const room = command === undefined ? { ...place, columns: place.first } : place;
  return [
    ...rows,
    ...outputRows(output, { place: room, where, ...(command === undefined && { indent: '' }) }),
  ];
}

/** Whether a text is rendered as Markdown: that of an answer, on a terminal with colours. */
function isRendered({ type }: JsonObject, { entry: { payload } }: Item, { renders }: Place): boolean {
  return renders && type === 'text' && isObject(payload) && payload.role === 'assistant';
}

interface Of {
  readonly place: Place;
  readonly entry: Pick<Entry, 'seq'>;
}

/** A text in lines, the first ones unless all are shown. */
function textLines(
  text: string,
  {
    place,
    entry,
    most = textRows,
    renders = false,
  }: Of & { readonly most?: number; readonly renders?: boolean },
): string[] {
  const { columns, first, full, session, style, inHome } = place;
  const whole = safe(text.trim()).replaceAll('\t', '  ');
  if (whole === '') return [];
  const inLines = (part: string) => {
    if (!renders) return wrapText(part, columns, first);
    const styled = markdown(part, style);
    return styledLines(styled, wrapText(stripVTControlCharacters(styled), columns, first));
  };
  if (full) return inLines(whole);
  const start = startOf(whole, place);
  const kept = inLines(whole.slice(start, start + charsMax));
  const left = kept.length - most + (whole.slice(start + charsMax).match(/\n/g)?.length ?? 0);
  const shown = kept.slice(0, left > 1 ? most : undefined);
  // Only in a pipe is a line that long, and there is nothing rendered.
  const rows = renders ? shown : shown.map((row) => cutText(row, lineMax));
  if (left <= 1) return rows;
  return [
    ...rows,
    style.text(
      'dim',
      moreText(`… ${left} more lines`, inHome(commandLine('show', [`${session}@${entry.seq}`])), columns),
    ),
  ];
}

/** What is missing, and the command that shows it where there is room for it. */
function moreText(what: string, command: string, columns: number): string {
  const whole = `${what} (${command})`;
  return textWidth(whole) <= columns ? whole : what;
}

/** Where a cut text begins: at its start, or at the line that the reader looks for. */
function startOf(text: string, { find = '' }: Pick<Place, 'find'>): number {
  const at = text.toLowerCase().indexOf(find.toLowerCase());
  return at < 1 ? 0 : text.lastIndexOf('\n', at) + 1;
}

function oneRow(text: string, columns: number): string {
  const flat = safe(text.slice(0, lineMax).replace(/\s+/g, ' ').trim());
  return cutText(flat, Math.min(columns, rowMax));
}

function reasoningRows(part: JsonObject, of: Of): string[] {
  return parenthesised(String(part.text ?? ''), of);
}

/** What was not said: one line of it, unless all is shown. */
function parenthesised(text: string, { place, entry }: Of): string[] {
  if (text.trim() === '') return [];
  const rows = place.full
    ? textLines(`(${text.trim()})`, { place, entry })
    : [oneRow(`(${text})`, place.first)];
  return rows.map((row) => place.style.text(['dim', 'italic'], row));
}

/** A call: one line, or with `full` its arguments below it. */
export function callRows({ name, input }: ToolCall, place: CallPlace): string[] {
  const { style, first, columns, full } = place;
  const tool = safe(name).replace(/\s+/g, ' ');
  if (full) {
    const lines = argumentLines(input).flatMap((line) => wrapText(safe(line), Math.max(1, columns - 2)));
    return [style.text('bold', tool), ...lines.map((line) => `  ${line}`)];
  }
  const row = oneRow(`${tool}(${argumentsText(input)})`, first);
  return [style.text('bold', row.slice(0, tool.length)) + row.slice(tool.length)];
}

/** The size of a text behind its first line, where that leaves room for some words of it. */
function sizeIn(room: number, size: string): string {
  return room - size.length < 8 ? '' : size;
}

/** A result: below its call, or alone, with the name of its tool. */
function resultRows(
  entry: Entry,
  { place, indent }: { readonly place: Place; readonly indent?: '' },
): string[] {
  const { payload } = entry;
  if (!isObject(payload)) return [`${indent ?? '  '}└ ${place.style.text('dim', absentText(entry))}`];
  const name = indent === undefined ? '' : `${safe(String(payload.toolName))}: `;
  return outputRows(payload.output, { place, where: entry, indent, name });
}

/** What a call returned, below it. */
export function outputRows(
  output: Json | undefined,
  {
    place,
    where,
    indent = '  ',
    name = '',
  }: {
    readonly place: CallPlace;
    readonly where: Pick<Entry, 'seq'>;
    readonly indent?: string | undefined;
    readonly name?: string;
  },
): string[] {
  const { style, columns, session, full, inHome } = place;
  const { text, fault, bytes } = outputOf(output);
  const paint = (row: string) => style.text(fault === undefined ? 'dim' : 'red', row);
  const what = `${name}${fault === undefined ? '' : `${fault}: `}`;
  const room = Math.max(1, columns - indent.length - 2);
  if (full) {
    const rows = wrapText(safe(`${what}${text.trimEnd()}`).replaceAll('\t', '  '), room);
    const more =
      bytes === undefined
        ? []
        : [
            moreText(
              `… ${bytes} bytes in total`,
              inHome(commandLine('show', [`${session}@${where.seq}`], ['--output'])),
              room,
            ),
          ];
    return [...rows, ...more].map((row, i) => `${indent}${i === 0 ? '└' : ' '} ${paint(row)}`);
  }
  const lines = text.trim().split('\n');
  const [firstLine = ''] = text.trim().slice(startOf(text.trim(), place)).split('\n');
  const whole =
    bytes !== undefined ? ` … (${bytes} bytes)` : lines.length > 1 ? ` … (${lines.length} lines)` : '';
  const size = sizeIn(room, whole);
  const line = `${what}${firstLine.trim() === '' ? '(empty)' : firstLine}`;
  return [`${indent}└ ${paint(`${oneRow(line, Math.max(8, room - size.length))}${size}`)}`];
}

/** The child whose result a merge has, and what and how it was; of a discard, why. */
export function mergeOf(
  { name = '' }: Pick<Entry, 'name'>,
  { session, range, status, strategy, reason, received }: JsonObject,
): { readonly child: string; readonly rest: string } {
  const child = typeof session === 'string' ? session : name.slice('merge/'.length);
  const positions = Array.isArray(range) ? ` ${range.join('-')}` : '';
  const where = typeof received === 'number' ? `, received @${received}` : '';
  if (strategy !== 'discard') return { child, rest: `${positions} ${String(status)}${where}` };
  return { child, rest: typeof reason === 'string' ? `${positions}: ${oneLine(reason, rowMax)}` : positions };
}

function mergeRows(
  state: JsonObject,
  report: Entry | undefined,
  { place, entry }: Of & { readonly entry: Entry },
): string[] {
  const { child, rest } = mergeOf(entry, state);
  const name = cutText(safe(child.slice(0, lineMax)).replace(/\s+/g, ' '), nameMax);
  // The name stays whole, so that it can be typed: what has no room beside it is on the next line.
  const lines = wrapText(name + rest, place.columns, place.first).map((line) =>
    line.startsWith(name) ? place.link(String(state.child), name) + line.slice(name.length) : line,
  );
  const head = state.status === 'completed' ? lines : lines.map((line) => place.style.text('yellow', line));
  const text = report === undefined ? '' : briefText(report);
  if (text.trim() === '') return head;
  const below = { ...place, first: place.columns };
  if (place.full) return [...head, ...textLines(text, { place: below, entry: report ?? entry })];
  const words = text.trim().split('\n');
  const size = sizeIn(place.columns - 4, words.length > 1 ? ` … (${words.length} lines)` : '');
  return [
    ...head,
    `  └ ${oneRow(words[0] ?? '', Math.max(8, place.columns - 4 - size.length))}${place.style.text('dim', size)}`,
  ];
}

/** An anchor with its state; of a handoff and a compaction the summary, and the range that it is of. */
function anchorRows(state: JsonObject, { place, entry }: Of & { readonly entry: Entry }): string[] {
  const { summary } = state;
  const row = oneRow(anchorText(entry, state), place.first);
  const below = { ...place, first: place.columns };
  if (typeof summary !== 'string') return [row];
  return [row, ...textLines(summary, { place: below, entry, most: summaryRows })];
}

/** An anchor in words, without its summary. */
export function anchorText({ name = '', kind, payload }: Entry, state: JsonObject): string {
  const { summary: _, range, ...rest } = state;
  if (kind === 'compaction') return `of ${Array.isArray(range) ? range.join('-') : 'what is before'}`;
  if (name === 'fork/start' && isObject(payload)) return startText(payload);
  return Object.keys(rest).length === 0 ? `⚓ ${name}` : `⚓ ${name} ${JSON.stringify(rest)}`;
}

export function otherText({ entry, undoes }: Item): string {
  const { kind, payload, ref = 0 } = entry;
  if (kind === 'rewind') return rewindText(ref, undoes);
  if (kind === 'redaction') {
    const reason = isObject(payload) && typeof payload.reason === 'string' ? `: ${payload.reason}` : '';
    return `of @${ref}${reason}`;
  }
  if (kind === 'result' && isObject(payload))
    return typeof payload.value === 'string' ? payload.value : JSON.stringify(payload.value);
  const type = kind.startsWith('x-') && isObject(payload) ? recordType(payload) : '';
  return type === '' ? entryText(entry) : `${type} ${entryText(entry)}`;
}

/** What a rewind undoes or hides, and how to see it. */
export function gapText(
  { from, hidden, undoes }: Gap,
  { session, inHome }: Pick<Place, 'session' | 'inHome'>,
): string {
  const what = rewindText(from - 1, undoes);
  // An act other than a rewind is one entry, or two with the message of a merge.
  const isAll = undoes !== undefined && hidden <= (undoes.act === 'merge' ? 2 : 1) && undoes.act !== 'rewind';
  const count = isAll ? '' : `, hides ${counted(hidden, 'entry', 'entries')}`;
  return `${what}${count} (${inHome(commandLine('log', [session], ['--hidden']))})`;
}
