import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { assistant, compaction, type Draft, toolCall, toolResult, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { installed } from '../support/installed.ts';
import { signatureOf } from '../support/provider/signed.ts';
import { tempHome } from '../support/temp-home.ts';
import { viewOnTheWire, type WireMessage } from '../support/view-on-the-wire.ts';

/** What the test uses of pi: its own reader of sessions, and its own messages for a model. */
interface Pi {
  readonly SessionManager: {
    open(path: string): {
      getSessionId(): string;
      getCwd(): string;
      getSessionName(): string | undefined;
      buildSessionContext(): { readonly messages: readonly unknown[] };
      appendMessage(message: unknown): string;
    };
  };
  convertToLlm(messages: readonly unknown[]): readonly PiMessage[];
}

interface PiMessage {
  readonly role: 'user' | 'assistant' | 'toolResult';
  readonly content: string | readonly Readonly<Record<string, unknown>>[];
  readonly toolCallId?: string;
  readonly isError?: boolean;
}

async function pi(): Promise<Pi> {
  const main = join(await installed('pi'), '@earendil-works/pi-coding-agent/dist/index.js');
  return (await import(pathToFileURL(main).href)) as Pi;
}

/** Messages of pi in the form of Anthropic's requests. */
function onTheWire(messages: readonly PiMessage[]): readonly WireMessage[] {
  const made: { role: string; content: Readonly<Record<string, unknown>>[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const { content: given } = message;
    const parts = typeof given === 'string' ? [{ type: 'text', text: given }] : given.map(blockOf);
    const content =
      message.role === 'toolResult'
        ? [
            {
              type: 'tool_result',
              tool_use_id: message.toolCallId,
              content: parts,
              ...(message.isError === true && { is_error: true }),
            },
          ]
        : parts;
    const last = made.at(-1);
    if (last?.role === role) last.content.push(...content);
    else made.push({ role, content: [...content] });
  }
  return made;
}

function blockOf(part: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, id, name, arguments: input, thinking, thinkingSignature: signature, data, mimeType } = part;
  if (type === 'toolCall') return { type: 'tool_use', id, name, input };
  if (type === 'thinking') return { type, thinking, signature };
  if (type === 'image') return { type, source: { type: 'base64', media_type: mimeType, data } };
  return { type, text: part.text };
}

/** The break behind a tag is pi's own. */
function withoutBreaks(messages: readonly WireMessage[]): unknown {
  return JSON.parse(JSON.stringify(messages).replaceAll('\\n\\n<summary>', '\\n<summary>'));
}

test('pi opens an exported session, has the context of the view, and appends to it', async () => {
  using home = tempHome();
  const env = { PI_CODING_AGENT_DIR: home.file('pi') };
  const { SessionManager, convertToLlm } = await pi();
  const call = { toolCallId: 'one', toolName: 'look' };
  const file = { type: 'file', mediaType: 'image/png', data: new Uint8Array([137, 80, 78, 71]) };
  const thought = {
    type: 'reasoning',
    text: 'Hm.',
    providerOptions: { anthropic: { signature: signatureOf('Hm.') } },
  };
  let whole = 0;
  {
    using store = home.open();
    store.sessions.open('main');
    const append = (...drafts: readonly Draft[]) => store.entries.append('main', [...drafts]);
    append(user([{ type: 'text', text: 'See this.' }, file]));
    append(
      assistant([thought, toolCall('one', 'look', { at: 1 }), toolCall('two', 'look', { at: 2 })], {
        provider: 'anthropic.messages',
        model: 'claude-opus-5-5',
      }),
    );
    append(
      toolResult(call, 'seen'),
      toolResult({ ...call, toolCallId: 'two' }, { type: 'error-text', value: 'no' }),
    );
    append(
      assistant([
        { ...thought, providerOptions: { openai: { itemId: 'x' } } },
        { type: 'text', text: 'A.' },
      ]),
    );
    store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Test it.' } });
    store.entries.append('child', [assistant('Tested.')]);
    store.lineage.merge('child');
    const { from, to } = append(user('Kept prompt.'), assistant('Kept answer.'));
    whole = to;
    append(compaction({ summary: 'All is well.', range: [2, from - 1] }, { keepFrom: from }));
    append(user('Behind it.'), assistant('Yes.'));
  }
  for (const [place, session, at] of [
    ['main', 'main', 'head'],
    [`main@${whole}`, 'main', whole],
    ['child', 'child', 'head'],
  ] as const) {
    const args = ['export', place, '--format', 'pi', '--project', home.path, '--json'];
    const { file: path, transcript } = json(await home.here(args, { env }));
    const opened = SessionManager.open(String(path));
    expect(opened.getSessionId()).toBe(isObject(transcript) ? transcript.id : undefined);
    expect(opened.getCwd()).toBe(home.path);
    using store = home.open();
    const context = onTheWire(convertToLlm(opened.buildSessionContext().messages));
    expect(withoutBreaks(context), place).toEqual(await viewOnTheWire(store, session, at));

    const before = readFileSync(String(path), 'utf8');
    opened.appendMessage({ role: 'user', content: [{ type: 'text', text: 'Go on.' }], timestamp: 1 });
    opened.appendMessage({ role: 'assistant', content: [], timestamp: 2 });
    expect(readFileSync(String(path), 'utf8').startsWith(before)).toBe(true);
    expect(SessionManager.open(String(path)).buildSessionContext().messages.length).toBe(
      opened.buildSessionContext().messages.length,
    );
  }
});
