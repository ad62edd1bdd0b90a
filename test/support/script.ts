import {
  anchor,
  assistant,
  handoff,
  note,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';

/** A session's life in small: every kind of act once or more, on the sessions `main`, `one` and `two`. */
export function playScript(store: SqliteTapeStore): void {
  store.sessions.open('main', { title: 'Release' });
  store.entries.append('main', [user('Plan it.'), assistant('First the tests.')], { key: 'turn-1' });
  store.entries.append('main', [anchor('task', { goal: 'release', owner: 'main' })]);
  store.lineage.fork('main', {
    name: 'one',
    inherit: { since: 'task' },
    key: 'a',
    intention: { nextSteps: 'Write tests.' },
  });
  store.lineage.fork('main', { name: 'two', key: 'b', deliver: 'merge', kind: 'subagent' });
  const call = { toolCallId: 'c1', toolName: 'read' };
  const parts = [
    { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'c2ln' } } },
    toolCall(call.toolCallId, call.toolName, { path: 'a.ts' }),
  ];
  const lease = store.leases.acquire('one', { id: 'runner' });
  store.entries.append('one', [assistant(parts, { provider: 'anthropic' })], { lease });
  store.entries.append('one', [toolResult(call, 'the file'), assistant('Written.')], { lease });
  store.inbox.post('one', { body: { type: 'append', drafts: [user('Hurry.')] }, key: 'p1', source: 'cli' });
  store.inbox.drain(lease);
  store.leases.release(lease);
  store.entries.append('two', [anchor('task', { owner: 'two' }), note('run/error', { message: 'no disk' })]);
  store.sessions.update('two', { task: 'failed' });
  store.lineage.merge([{ child: 'one' }, { child: 'two' }]);
  store.entries.append('main', [
    handoff('phase-2', { summary: 'Tests are written.', files: 3 }, { keepFrom: 5 }),
  ]);
  store.entries.append('main', [user([{ type: 'file', mediaType: 'image/png', data: new Uint8Array(300) }])]);
  store.history.rewind('main', 9);
  store.history.unrewind('main');
  store.sessions.update('main', { alias: { name: 'release', reason: 'manual' } });
  store.sessions.update('two', { lifecycle: 'archived' });
}
