import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  assistant,
  compaction,
  type Draft,
  handoff,
  type Part,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { expect, onTestFinished, test } from 'vitest';
import { claudeCodeProgram, runClaudeCode, startScriptedModel } from '../support/claude-code-program.ts';
import { json } from '../support/cli.ts';
import { signatureOf } from '../support/provider/signed.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { viewOnTheWire, type WireMessage, wireMessages } from '../support/view-on-the-wire.ts';

/** The real program in a place of its own, and a home beside it. */
async function setting() {
  const dir = tempDir();
  const home = tempHome();
  onTestFinished(() => {
    home[Symbol.dispose]();
    dir[Symbol.dispose]();
  });
  const [config, project] = [dir.file('config'), dir.file('project')];
  mkdirSync(project);
  writeFileSync(join(project, 'a.txt'), 'hello\n');
  const answers = [
    {
      reasoning: 'A file.',
      text: 'I look.',
      calls: [
        { name: 'Read', arguments: { file_path: join(project, 'a.txt') } },
        { name: 'Bash', arguments: { command: 'echo there' } },
      ],
    },
    { text: 'It says hello.' },
  ];
  const model = await startScriptedModel((_, i) => answers[i] ?? { text: `Answer ${i}.` });
  onTestFinished(() => model[Symbol.asyncDispose]());
  const place = { program: await claudeCodeProgram(), config, project, url: model.url };
  const env = { CLAUDE_CONFIG_DIR: config };
  /** Runs the program, and returns what it asked first. */
  const claude = async (...args: readonly string[]) => {
    const before = model.requests.length;
    const done = await runClaudeCode(place, ['-p', ...args, '--allowedTools', 'Read,Bash']);
    expect(done).toMatchObject({ status: 0, stderr: '' });
    expect(model.faults).toEqual([]);
    return wireMessages(model.requests[before]);
  };
  const exported = async (place: string) => {
    const args = ['export', place, '--format', 'claude-code', '--project', project, '--json'];
    const { file, transcript } = json(await home.here(args, { env }));
    return { file: String(file), id: (transcript as { id: string }).id };
  };
  const imported = async () => json(await home.here(['import', '--yes', '--json'], { env }));
  return { home, claude, exported, imported };
}

/** What a request had before the prompt of this run. */
function beforePrompt(messages: readonly WireMessage[]): readonly WireMessage[] {
  return messages.slice(0, -1);
}

async function shown(home: TempHome, place: string): Promise<readonly WireMessage[]> {
  using store = home.open();
  const [session = '', at] = place.split('@');
  return await viewOnTheWire(store, session, at === undefined ? 'head' : Number(at));
}

function write(home: TempHome, session: string, ...drafts: readonly Draft[]): void {
  using store = home.open();
  store.sessions.open(session);
  store.entries.append(session, [...drafts]);
}

const thought = (text: string, options: Part['providerOptions']): Part => ({
  type: 'reasoning',
  text,
  providerOptions: options,
});

test('a session of Claude Code that went on here is resumed there, with all that a view shows', async () => {
  const { home, claude, exported, imported } = await setting();
  await claude('What does a.txt say?');
  await imported();
  const [{ session } = { session: '' }] = json(await home.here(['sessions', '--json'])) as unknown as {
    session: string;
  }[];
  const call = { toolCallId: 'call:1|x', toolName: 'my.tool' };
  write(
    home,
    session,
    user('And here?'),
    assistant(
      [thought('secret', { openai: { itemId: 'rs_1' } }), toolCall(call.toolCallId, call.toolName, {})],
      {
        provider: 'openai.responses',
      },
    ),
    toolResult(call, 'a result'),
    assistant('Here, too.'),
  );

  const { id } = await exported(session);
  const request = await claude('Go on.', '--resume', id);

  expect(beforePrompt(request)).toEqual(await shown(home, session));
  expect(JSON.stringify(request)).toContain('hello');

  // What was added there comes back as a fork, and so does a fork of that.
  await imported();
  const copied = await claude('And fork.', '--resume', id, '--fork-session');
  await imported();
  using store = home.open();
  expect(store.sessions.find(id)?.parent).toBe(session);
  const [copy] = store.sessions.list().filter(({ parent }) => parent === id);
  expect(copy).toBeDefined();
  const texts = (messages: readonly WireMessage[]) =>
    JSON.stringify(messages).match(/"text":"[^<"][^"]*"/g) ?? [];
  const back = texts(await viewOnTheWire(store, copy?.session ?? ''));
  expect(back).toEqual(expect.arrayContaining(texts(copied)));
  const all = store.sessions.list().flatMap((one) => [...store.entries.read(one.id, { own: true })]);
  for (const text of ['What does a.txt say?', 'And here?', 'Here, too.', 'Go on.', 'And fork.'])
    expect(
      all.filter(({ kind, payload }) => kind === 'message' && JSON.stringify(payload).includes(`"${text}"`)),
      text,
    ).toHaveLength(1);
  const before = all.length;
  await imported();
  expect(store.sessions.list().flatMap((one) => [...store.entries.read(one.id, { own: true })])).toHaveLength(
    before,
  );
});

test('forks, rewinds, merges, kept tails and files of a session go on in Claude Code', async () => {
  const { home, claude, exported } = await setting();
  const image = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const file = { type: 'file', mediaType: 'image/png', data: new Uint8Array(image) };
  const [one, two] = ['one', 'two'].map((toolCallId) => ({ toolCallId, toolName: 'look' }));
  if (one === undefined || two === undefined) throw new Error('no calls');
  let whole = '';
  {
    using store = home.open();
    store.sessions.open('main');
    const append = (...drafts: readonly Draft[]) => store.entries.append('main', [...drafts]);
    append(user([{ type: 'text', text: 'See this.' }, file]));
    const own = thought('Hm.', { anthropic: { signature: signatureOf('Hm.') } });
    append(
      assistant([own, toolCall('one', 'look', { at: 1 }), toolCall('two', 'look', { at: 2 })], {
        provider: 'anthropic.messages',
      }),
    );
    append(toolResult(one, 'x'.repeat(300_000)), toolResult(two, { type: 'error-text', value: 'broken' }));
    append(assistant('Seen.'));
    const { from } = append(user('Wrong.'), assistant('Worse.'));
    store.history.rewind('main', from - 1);
    append(user('Right.'), assistant('Better.'));
    store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Test it.' } });
    store.entries.append('child', [assistant('Tested: fine.')]);
    store.lineage.merge('child');
    const { from: kept } = append(user('Kept prompt.'), assistant('Kept answer.'));
    whole = `main@${kept + 1}`;
    append(compaction({ summary: 'All is well.', range: [2, kept - 1] }, { keepFrom: kept }));
    append(user('Behind it.'), assistant('Yes.'));
    store.sessions.open('handed');
    store.entries.append('handed', [user('Plan.'), assistant('Planned.')]);
    store.entries.append('handed', [handoff('phase-2', { summary: 'Planned.', files: 3 })]);
    store.entries.append('handed', [user('Do it.'), assistant('Done.')]);
    const summary = compaction({ summary: 'All done.', range: [2, 4] }, { keepFrom: 5 });
    store.sessions.open('compacted');
    store.entries.append('compacted', [user('Plan.'), assistant('Planned.'), user('Then?')]);
    store.entries.append('compacted', [assistant('Done.'), user('Well?'), assistant('Yes.'), summary]);
  }
  for (const place of ['main', whole, 'child', 'handed', 'compacted']) {
    const { id } = await exported(place);
    const request = await claude('Go on.', '--resume', id);
    expect(beforePrompt(request), place).toEqual(await shown(home, place));
  }
});

test('a transcript is written once: what Claude Code added to it stays', async () => {
  const { home, claude, exported } = await setting();
  write(home, 'main', user('Plan.'), assistant('Planned.'));
  const { file, id } = await exported('main');
  await claude('Go on.', '--resume', id);
  const before = readFileSync(file, 'utf8');
  await expect(exported('main')).rejects.toThrow();
  expect(readFileSync(file, 'utf8')).toBe(before);
  write(home, 'main', user('More.'), assistant('More it is.'));
  expect((await exported('main')).id).not.toBe(id);
});
