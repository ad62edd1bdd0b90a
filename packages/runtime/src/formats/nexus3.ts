import { assistant, type Draft, type Json, type JsonObject, note, toolCall, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { asText, text } from '../plan/text.ts';
import { noCounts, type Transcript } from '../plan/transcript.ts';
import { Dialogue, type KeyedCall } from './dialogue.ts';

const meta = { source: 'import' };

/**
 * Reads a saved session of NEXUS3 as one session. What the file says about the session, and messages that no model gets,
 * become `x-nexus3` entries. The key of a message depends on all before it, so that a file that has grown adds what is new,
 * and one that was compacted is another conversation. Pure. `name`: the session if the file names none.
 */
export function readNexus3(saved: JsonObject, { name }: { readonly name: string }): Transcript {
  const { messages, ...about } = saved;
  const list: readonly Json[] = Array.isArray(messages) ? messages : [];
  const prompt = text(about.system_prompt);
  const dialogue = new Dialogue();
  const { drafts } = dialogue;
  drafts.push({
    kind: 'x-nexus3',
    payload: about,
    meta,
    key: `nexus3:about:${sha256(JSON.stringify(about))}`,
  });
  if (prompt !== undefined)
    drafts.push({
      ...note('instructions/text', { text: prompt }, meta),
      key: `nexus3:prompt:${sha256(prompt)}`,
    });
  let [chain, aside] = ['', 0];
  for (const message of list) {
    chain = sha256(`${chain}\n${JSON.stringify(message)}`);
    const key = `nx:${chain}`;
    const { role, content, tool_call_id } = isObject(message) ? message : {};
    const output = { type: 'text', value: plain(content) } as const;
    if (role === 'tool' && dialogue.answer(asText(tool_call_id), output, { key, meta })) continue;
    const made = spoken(message, key);
    if (made !== undefined) dialogue.say(made.draft, made.calls);
    else {
      drafts.push({ kind: 'x-nexus3', payload: message, meta, key });
      aside += 1;
    }
  }
  dialogue.end();
  return {
    session: text(about.agent_id) ?? name,
    drafts,
    counts: {
      ...noCounts,
      records: list.length,
      messages: drafts.filter(({ kind }) => kind === 'message').length,
      offPath: aside,
      repaired: dialogue.repaired,
    },
  };
}

/** A message of the user or of the model, with the calls of the latter; undefined for any other. */
function spoken(
  message: Json,
  key: string,
): { readonly draft: Draft; readonly calls: readonly KeyedCall[] } | undefined {
  if (!isObject(message)) return undefined;
  const { role, content } = message;
  if (role === 'user') return { draft: { ...user(plain(content), meta), key }, calls: [] };
  if (role !== 'assistant') return undefined;
  const made = (Array.isArray(message.tool_calls) ? message.tool_calls : []).filter(isObject);
  const said = plain(content);
  const parts = [
    ...(said === '' ? [] : [{ type: 'text', text: said }]),
    ...made.map(({ id, name, arguments: input = {} }) => toolCall(asText(id), asText(name), input)),
  ];
  if (parts.length === 0) return undefined;
  const calls = made.map(({ id, name }, i) => ({
    toolCallId: asText(id),
    toolName: asText(name),
    key: `${key}:${i}`,
  }));
  return { draft: { ...assistant(parts, meta), key }, calls };
}

function plain(content: Json | undefined): string {
  return typeof content === 'string' ? content : content == null ? '' : JSON.stringify(content);
}
