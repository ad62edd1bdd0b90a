import type { Entry, JsonObject } from '@tapedeck/tape';
import { isObject, isoTime } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { commandLine, safe } from '../escape.ts';
import { absentText, partText } from '../output/entry.ts';
import { markdown } from '../terminal/markdown.ts';
import type { Style } from '../terminal/style.ts';
import { hangingLines } from '../terminal/wrap.ts';
import { type ArgumentsCut, argumentLines, callOf, outputOf, partsOf } from './parts.ts';

/** How a page looks. */
export interface Paper {
  readonly style: Style;
  /** Whether texts are rendered as Markdown: on a terminal with colours. In a pipe they stay as they are. */
  readonly renders: boolean;
  /** How much of the arguments of a call is shown; undefined for all. */
  readonly cut?: ArgumentsCut;
}

/** How much of an argument a terminal shows. */
const shown = { chars: 2_000, lines: 24 };

export function paperOf({ style, color, io }: Pick<Context, 'style' | 'color' | 'io'>): Paper {
  return { style, renders: color && io.isTerminal };
}

/** Metadata with the names of tools in the place of their definitions, which are long. */
function withToolNames(meta: Entry['meta']): Entry['meta'] {
  const { tools } = meta;
  if (!Array.isArray(tools)) return meta;
  return {
    ...meta,
    tools: tools.map((tool) => (isObject(tool) && tool.name !== undefined ? tool.name : '?')),
  };
}

/** An entry, as text for a terminal; where that is a person's, with what is very long cut unless it is `full`. */
export function entryPage(
  entry: Entry,
  context: Pick<Context, 'style' | 'color' | 'io' | 'inHome'>,
  { full }: { readonly full: boolean },
): string {
  const { session, seq, kind, name, at, sourceAt, hash, tape, meta } = entry;
  const more = (count: number) =>
    `… ${count} more characters (${context.inHome(commandLine('show', [`${session}@${seq}`], ['--full']))})`;
  const paper = { ...paperOf(context), ...(context.io.isTerminal && !full && { cut: { ...shown, more } }) };
  const when = sourceAt === undefined ? isoTime(at) : `${isoTime(sourceAt)}, recorded ${isoTime(at)}`;
  const head = `${session}@${seq}  ${kind}${name === undefined ? '' : ` ${name}`}  ${when}`;
  const facts = [`tape  ${tape}`, `hash  ${hash}`];
  const about = full ? meta : withToolNames(meta);
  if (Object.keys(about).length > 0) facts.push(`meta  ${JSON.stringify(about)}`);
  const columns = context.io.isTerminal ? context.io.columns : Number.POSITIVE_INFINITY;
  const rows = (line: string, indent: number) => hangingLines(safe(line), columns, indent);
  return [
    ...rows(head, 2).map((row) => paper.style.text('bold', row)),
    ...facts.flatMap((fact) => rows(fact, 6)).map((row) => paper.style.text('dim', row)),
    '',
    ...bodyOf(entry, { paper, ...context }),
  ].join('\n');
}

function bodyOf(
  entry: Entry,
  { paper, inHome }: { readonly paper: Paper } & Pick<Context, 'inHome'>,
): readonly string[] {
  const { kind, payload, session, seq, meta } = entry;
  if (payload === null) return [absentText(entry)];
  if (kind === 'message') return partsOf(entry).map((part) => partPage(part, paper));
  if (kind === 'tool-result' && isObject(payload)) {
    const command = inHome(commandLine('show', [`${session}@${seq}`], ['--output']));
    const page = partPage({ ...payload, type: 'tool-result' }, paper, command);
    return meta.savedAs === undefined ? [page] : [page, paper.style.text('dim', `  … in full: ${command}`)];
  }
  return [safe(JSON.stringify(payload, null, 2))];
}

/**
 * A part of a message, as text for a terminal.
 * @param command shows the whole of an output of which the part has the beginning
 */
export function partPage(part: JsonObject, { style, renders, cut }: Paper, command?: string): string {
  if (part.type === 'tool-call') {
    const { name, input } = callOf(part);
    const lines = argumentLines(input, cut).map((line) => `  ${safe(line)}`);
    return [
      style.text('bold', `${safe(name)}(${lines.length === 0 ? ')' : ''}`),
      ...lines,
      ...(lines.length === 0 ? [] : [')']),
    ].join('\n');
  }
  if (part.type === 'tool-result') {
    const { text, fault, bytes } = outputOf(part.output);
    const head = `${safe(String(part.toolName))} →${fault === undefined ? '' : ` ${fault}`}`;
    const lines = safe(text).replace(/\n$/, '').split('\n');
    const where = command === undefined ? '' : `: ${command}`;
    const more = bytes === undefined ? [] : [style.text('dim', `… ${bytes} bytes in total${where}`)];
    const paint = (line: string) => (fault === undefined ? line : style.text('red', line));
    return [style.text('bold', head), ...[...lines.map(paint), ...more].map((line) => `  ${line}`)].join(
      '\n',
    );
  }
  const text = safe(partText(part));
  if (part.type === 'reasoning') return style.text('dim', text);
  return part.type === 'text' && renders ? markdown(text, style) : text;
}
