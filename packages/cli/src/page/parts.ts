import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { callText, isObject } from '@tapedeck/tape/internal';
import { isBlobRef } from '@tapedeck/tape/store';
import { briefText, entryText, intentionText, partText, startText } from '../output/entry.ts';
import { commandOutput, commandText, isTyped } from '../output/local-command.ts';
import type { Item } from '../transcript/fold.ts';
import { otherText, stateIn } from '../transcript/item-rows.ts';
import { argumentLines, callOf, outputOf, partsOf } from '../transcript/parts.ts';
import { isDamaged } from './damaged-reads.ts';
import type { CallPart, CallState, Part } from './data.ts';
import { flat, kept } from './texts.ts';

/** The command that prints the whole of an entry, or with `output` the whole of what a tool returned. */
export type ShowLine = (seq: number, output?: boolean) => string;

/** Characters that a text keeps, what a tool returned, and a name or a call on one line; and parts of a message. */
const textMax = 2_000;
const outputMax = 500;
const briefMax = 200;
const partsMax = 100;

/** What an item says, in parts: those of a message, the report of a merge, the state of an anchor. */
export function partsIn(item: Item, show: ShowLine): readonly Part[] {
  const { entry, report } = item;
  const { kind, name = '', payload, seq } = entry;
  if (payload === null) return [gone(entry)];
  const text = (said: string, of = entry): readonly Part[] =>
    said.trim() === '' ? [] : [{ type: 'text', ...kept(said, textMax, show(of.seq)) }];
  if (kind === 'message') return limited(messageParts(item, show), show(seq));
  if (kind === 'tool-result') return [outputPart(entry, payload, show)];
  const state = stateIn(payload);
  if (kind === 'anchor' && name.startsWith('merge/'))
    return report === undefined
      ? []
      : report.payload === null
        ? [gone(report)]
        : text(briefText(report), report);
  if (kind === 'anchor' && name === 'intention') return text(intentionText(state));
  if (kind === 'anchor' && name === 'fork/start' && isObject(payload)) return text(startText(payload));
  if (kind === 'anchor' || kind === 'compaction') {
    const { summary, ...rest } = state;
    return [
      ...(typeof summary === 'string' ? text(summary) : []),
      ...(Object.keys(rest).length === 0 ? [] : [stateOf(rest, show(seq))]),
    ];
  }
  if (kind === 'rewind' || kind === 'redaction' || kind === 'result' || kind === 'event')
    return text(otherText(item));
  return [stateOf(payload, show(seq))];
}

function gone(entry: Entry): Part {
  return { type: 'gone', why: isDamaged(entry) ? 'damaged' : entry.absent === true ? 'absent' : 'redacted' };
}

function stateOf(value: Json, line: string): Part {
  return { type: 'state', ...kept(JSON.stringify(value, null, 2), textMax, line) };
}

function limited(parts: readonly Part[], line: string): readonly Part[] {
  if (parts.length <= partsMax) return parts;
  return [...parts.slice(0, partsMax), { type: 'more', parts: parts.length - partsMax, line }];
}

function messageParts(item: Item, show: ShowLine): readonly Part[] {
  const { entry, results } = item;
  const text = (said: string): readonly Part[] =>
    said.trim() === '' ? [] : [{ type: 'text', ...kept(said, textMax, show(entry.seq)) }];
  if (entry.meta.source === 'merge') return text(briefText(entry));
  if (!isTyped(entry)) return untypedParts(item, show);
  const parts = partsOf(entry);
  const returned = new Map(
    parts.flatMap((part) => (part.type === 'tool-result' ? [[String(part.toolCallId), part] as const] : [])),
  );
  const called = new Set(
    parts.flatMap(({ type, toolCallId }) => (type === 'tool-call' ? [String(toolCallId)] : [])),
  );
  return parts.flatMap((part): readonly Part[] => {
    if (part.type === 'text') return text(partText(part));
    if (part.type === 'reasoning')
      return [{ type: 'reasoning', ...kept(String(part.text ?? ''), textMax, show(entry.seq)) }];
    if (part.type === 'tool-call') {
      const id = String(part.toolCallId);
      return [callPart(part, { entry, result: results.get(id), own: returned.get(id), show })];
    }
    if (part.type === 'tool-result')
      return called.has(String(part.toolCallId)) ? [] : [outputPart(entry, part, show)];
    return [filePart(part) ?? { type: 'text', text: partText(part) }];
  });
}

/** A command of an imported agent, with what it printed; or a text that its user did not type. */
function untypedParts({ entry, report }: Item, show: ShowLine): readonly Part[] {
  const command = commandText(entry);
  const printed = commandOutput(report ?? entry);
  if (command === undefined && printed === undefined)
    return [{ type: 'text', ...kept(entryText(entry), textMax, show(entry.seq)) }];
  const output = printed === undefined || printed.text === '' ? undefined : printed;
  return [
    ...(command === undefined ? [] : [{ type: 'text' as const, ...kept(command, textMax, show(entry.seq)) }]),
    ...(output === undefined
      ? []
      : [
          {
            type: 'output' as const,
            state: output.failed ? ('failed' as const) : ('done' as const),
            ...kept(output.text, outputMax, show((report ?? entry).seq)),
          },
        ]),
  ];
}

/** A call, with what its result entry has, or what the message itself has for a tool that the provider ran. */
function callPart(
  part: JsonObject,
  {
    entry,
    result,
    own,
    show,
  }: {
    readonly entry: Entry;
    readonly result: Entry | undefined;
    readonly own: JsonObject | undefined;
    readonly show: ShowLine;
  },
): CallPart {
  const { id, name, input } = callOf(part);
  const { text, cut } = kept(argumentLines(input).join('\n'), textMax, show(entry.seq));
  const call = {
    type: 'call' as const,
    call: flat(id, briefMax),
    tool: flat(name, briefMax),
    brief: flat(callText(part), briefMax),
    input: text,
    ...(cut !== undefined && { cut }),
  };
  const seq = result?.seq ?? entry.seq;
  if (result?.payload === null) return { ...call, state: 'gone', outputSeq: seq };
  const output =
    result === undefined ? own?.output : isObject(result.payload) ? result.payload.output : undefined;
  if (output === undefined) return { ...call, state: 'waiting' };
  const returned = outputText(output, show(seq, result !== undefined));
  return {
    ...call,
    state: returned.state,
    output: returned.text,
    outputSeq: seq,
    ...(returned.cut !== undefined && { outputCut: returned.cut }),
  };
}

function outputPart({ seq }: Entry, payload: Json, show: ShowLine): Part {
  const { toolName, output } = isObject(payload) ? payload : {};
  const tool = typeof toolName === 'string' ? { tool: flat(toolName, briefMax) } : {};
  return { type: 'output', ...tool, ...outputText(output, show(seq, true)) };
}

/** What a tool returned: of much the beginning. */
function outputText(output: unknown, line: string): Omit<Extract<Part, { type: 'output' }>, 'type' | 'tool'> {
  const { text, fault, bytes } = outputOf(output);
  const state: CallState = fault === undefined ? 'done' : fault === 'denied' ? 'denied' : 'failed';
  const shown = kept(text, outputMax, line);
  // Of a large output, the entry itself has only the beginning.
  return { ...shown, ...(bytes !== undefined && { cut: { chars: bytes, line } }), state };
}

/** A file of a message: what it is, not its bytes. */
function filePart({ type, mediaType, filename, data, image }: JsonObject): Part | undefined {
  if (type !== 'file' && type !== 'image') return undefined;
  const content = data ?? image;
  return {
    type: 'file',
    mediaType: flat(typeof mediaType === 'string' ? mediaType : type, briefMax),
    ...(isBlobRef(content) && { bytes: content.size }),
    ...(typeof filename === 'string' && { name: flat(filename, briefMax) }),
  };
}
