import { toPrompt } from '@tapedeck/runtime';
import { assistant, type Draft, toolCall, user, view } from '@tapedeck/tape';
import { continueText } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { openStore } from '../support/store.ts';

const target = { provider: 'anthropic.messages' };
const promptOf = async (...drafts: Draft[]) =>
  await toPrompt(view(entriesOf(drafts), { target }).messages, () => new Uint8Array());
const ends = async (...drafts: Draft[]) => (await promptOf(user('q'), ...drafts)).at(-1)?.role;

test('a prompt ends with a message to answer, as the next view shows it', async () => {
  const first = [user('q'), assistant('a')];
  const prompt = await promptOf(...first);
  expect(prompt.at(-1)).toEqual({ role: 'user', content: [{ type: 'text', text: continueText }] });
  expect((await promptOf(...first, assistant('b'), user('c'))).slice(0, 3)).toEqual(prompt);
});

test('no message separates a provider from a tool that it has yet to finish', async () => {
  const search = {
    type: 'tool-call',
    toolCallId: 's',
    toolName: 'web_search',
    input: {},
    providerExecuted: true,
  };
  expect(await ends(assistant([search], target))).toBe('assistant');
  expect(await ends(assistant([toolCall('c', 'read', {})], target))).toBe('tool');
  expect(await ends()).toBe('user');
});

test('addresses return as the SDK takes them, in messages and in results; arguments stay unchanged', async () => {
  const url = 'https://pictures.example/a.png';
  const file = { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL(url) } };
  const call = toolCall('c', 'read', { type: 'url', url });
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [
    user([file]),
    assistant([call]),
    {
      kind: 'tool-result',
      payload: {
        type: 'tool-result',
        toolCallId: 'c',
        toolName: 'read',
        output: { type: 'content', value: [file] },
      },
    },
  ]);
  const { messages } = view(store.views.entries('main'), { target });
  expect(await toPrompt(messages, (hash) => store.entries.blob(hash))).toEqual([
    { role: 'user', content: [file] },
    { role: 'assistant', content: [call] },
    { role: 'tool', content: [expect.objectContaining({ output: { type: 'content', value: [file] } })] },
  ]);
});

test('a text file that a provider does not accept is sent as its text', async () => {
  const data = new TextEncoder().encode('a,b\n1,ä\n');
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user([{ type: 'file', mediaType: 'text/csv', data }])]);
  const { messages } = view(store.views.entries('main'), { target });
  expect(await toPrompt(messages, (hash) => store.entries.blob(hash))).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'a,b\n1,ä\n' }] },
  ]);
});
