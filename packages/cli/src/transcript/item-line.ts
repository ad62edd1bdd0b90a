import type { Entry, JsonObject } from '@tapedeck/tape';
import { callText, isObject } from '@tapedeck/tape/internal';
import { absentText, briefText, intentionText, partText } from '../output/entry.ts';
import { commandOutput, commandText, isTyped } from '../output/local-command.ts';
import { cutText } from '../terminal/width.ts';
import type { Item } from './fold.ts';
import { anchorText, mergeOf, otherText, stateIn } from './item-rows.ts';
import { outputOf, partsOf } from './parts.ts';

/**
 * The text of an item, for one line, as it was recorded: what was said comes first, then each call with the beginning of its
 * result.
 */
export function itemLine(item: Item): string {
  const { entry, report } = item;
  const { kind, name = '', payload } = entry;
  if (payload === null) return absentText(entry);
  if (kind === 'message') return entry.meta.source === 'merge' ? briefText(entry) : messageLine(item);
  if (kind === 'tool-result' && isObject(payload))
    return `${String(payload.toolName)}: ${resultText(payload.output)}`;
  const state = stateIn(payload);
  if (kind === 'anchor' && name.startsWith('merge/')) {
    const { child, rest } = mergeOf(entry, state);
    return `${child}${rest}${report === undefined ? '' : `: ${briefText(report)}`}`;
  }
  if (kind === 'anchor' && name === 'intention') return intentionText(state);
  if (kind !== 'anchor' && kind !== 'compaction') return otherText(item);
  const summary = typeof state.summary === 'string' ? `: ${state.summary}` : '';
  return `${anchorText(entry, state)}${summary}`;
}

function messageLine(item: Item): string {
  const { entry, results } = item;
  const parts = partsOf(entry);
  if (!isTyped(entry)) return untypedLine(item);
  const said = parts.filter(({ type }) => !/^(?:reasoning|tool-call|tool-result)$/.test(String(type)));
  const calls = parts.filter(({ type }) => type === 'tool-call');
  const shown = [...said.map(partText), ...calls.map((call) => callLine(call, { entry, results }))];
  // Reasoning alone is what a message can have that was cut off.
  return (shown.length === 0 ? parts.map(partText) : shown).join(' ');
}

function untypedLine({ entry, report }: Item): string {
  const command = commandText(entry);
  const printed = commandOutput(report ?? entry);
  if (command === undefined && printed === undefined) return `(${briefText(entry)})`;
  const output =
    printed && (printed.text !== '' || command === undefined)
      ? resultText({ type: printed.failed ? 'error-text' : 'text', value: printed.text })
      : undefined;
  return [command, output].filter((text) => text !== undefined).join(' → ');
}

function callLine(call: JsonObject, { entry, results }: Pick<Item, 'entry' | 'results'>): string {
  const result = results.get(String(call.toolCallId));
  const own = partsOf(entry).find(
    (part) => part.type === 'tool-result' && part.toolCallId === call.toolCallId,
  );
  const output = result === undefined ? own?.output : outputIn(result);
  if (output === undefined) return callText(call);
  return `${cutText(callText(call).replace(/\s+/g, ' '), callMax)} → ${resultText(output)}`;
}

/** Columns that a call leaves to its result. */
const callMax = 60;

function outputIn(entry: Entry): unknown {
  const { payload } = entry;
  return isObject(payload) ? payload.output : { type: 'text', value: absentText(entry) };
}

/** The first line of what a tool returned. */
function resultText(output: unknown): string {
  const { text, fault } = outputOf(output);
  const [first = ''] = text.trim().split('\n', 1);
  return `${fault === undefined ? '' : `${fault}: `}${first === '' ? '(empty)' : first}`;
}
