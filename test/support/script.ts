import { anchor, assistant, handoff, note, type TapeStore, toolCall, toolResult, user } from '@tapedeck/tape';

/** The hashes of what the script leaves in a store with fixed sources, whatever keeps it. */
export const scriptHashes = {
  head: '08c0d397be04c83e8a5807093435ee4ce9f5bb1a368c243282ee6606a0596a89',
  lines: '27a316218346e95b113a4ecc062669a593329b73721e2409bc5aa0fe1aea37a9',
  views: 'e627f596eeaf4294f182b4a6422e6353cff489b9b28c94a18fb19837f76bdfe5',
};

/** A session's life in small: every kind of act once or more, on the sessions `main`, `one` and `two`. */
export async function playScript(store: TapeStore): Promise<void> {
  await store.sessions.open('main', { title: 'Release' });
  await store.entries.append('main', [user('Plan it.'), assistant('First the tests.')], { key: 'turn-1' });
  await store.entries.append('main', [anchor('task', { goal: 'release', owner: 'main' })]);
  await store.lineage.fork('main', {
    name: 'one',
    inherit: { since: 'task' },
    key: 'a',
    intention: { nextSteps: 'Write tests.' },
  });
  await store.lineage.fork('main', { name: 'two', key: 'b', deliver: 'merge', kind: 'subagent' });
  const call = { toolCallId: 'c1', toolName: 'read' };
  const parts = [
    { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'c2ln' } } },
    toolCall(call.toolCallId, call.toolName, { path: 'a.ts' }),
  ];
  const lease = await store.leases.acquire('one', { id: 'runner' });
  await store.entries.append('one', [assistant(parts, { provider: 'anthropic' })], { lease });
  await store.entries.append('one', [toolResult(call, 'the file'), assistant('Written.')], { lease });
  await store.inbox.post('one', {
    body: { type: 'append', drafts: [user('Hurry.')] },
    key: 'p1',
    source: 'cli',
  });
  await store.inbox.drain(lease);
  await store.leases.release(lease);
  await store.entries.append('two', [
    anchor('task', { owner: 'two' }),
    note('run/error', { message: 'no disk' }),
  ]);
  await store.sessions.update('two', { task: 'failed' });
  await store.lineage.merge([{ child: 'one' }, { child: 'two' }]);
  await store.entries.append('main', [
    handoff('phase-2', { summary: 'Tests are written.', files: 3 }, { keepFrom: 5 }),
  ]);
  await store.entries.append('main', [
    user([{ type: 'file', mediaType: 'image/png', data: new Uint8Array(300) }]),
  ]);
  await store.history.rewind('main', 9);
  await store.history.unrewind('main');
  await store.sessions.update('main', { alias: { name: 'release', reason: 'manual' } });
  await store.sessions.update('two', { lifecycle: 'archived' });
}
