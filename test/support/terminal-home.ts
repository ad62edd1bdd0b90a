import { writeFileSync } from 'node:fs';
import { openDeck } from '@tapedeck/runtime';
import {
  anchor,
  assistant,
  compaction,
  handoff,
  note,
  result,
  toolCall,
  toolResult,
  user,
} from '@tapedeck/tape';
import { tool } from 'ai';
import { z } from 'zod';
import { tapeHere } from './cli.ts';
import { tempDir } from './temp-dir.ts';
import { type TempHome, tempHome } from './temp-home.ts';
import { calls, jsonl, model, person, returns, says } from './transcript.ts';

/** A home as its users have it: the demo, two imported transcripts, and a session with all that a log can show. */
export interface TerminalHome extends TempHome {
  /** What a person sees who types these words at a terminal three hours later, without colours unless asked for. */
  look(line: string, view?: View): Promise<string>;
}

interface View {
  readonly columns?: number;
  readonly color?: boolean;
  readonly isTerminal?: boolean;
  /** The exit code that the command has. */
  readonly expected?: number;
}

const later = 3 * 3600 * 1000;

export async function terminalHome(): Promise<TerminalHome> {
  const home = tempHome();
  await done(home, ['demo', '--home', home.path]);
  using transcripts = tempDir();
  for (const [name, records] of Object.entries({ shop: shop(), parser: parser() })) {
    const file = transcripts.file(`${name}.jsonl`);
    writeFileSync(file, jsonl(records));
    await done(home, ['import', file, '--as', name]);
  }
  release(home);
  await deploy(home);
  return {
    ...home,
    look: async (line, { columns = 80, color = false, isTerminal = true, expected = 0 } = {}) => {
      const { stdout, stderr, code } = await tapeHere(line.split(' '), {
        home: home.path,
        isTerminal,
        columns,
        env: color ? { TERM: 'xterm-256color' } : { NO_COLOR: '1' },
        now: () => Date.now() + later,
      });
      if (code !== expected) throw new Error(`tape ${line} failed: ${stderr}`);
      return stdout;
    },
  };
}

async function done(home: TempHome, args: readonly string[]): Promise<void> {
  const { code, stderr } = await home.here(args);
  if (code !== 0) throw new Error(`tape ${args.join(' ')} failed: ${stderr}`);
}

/** What Claude Code writes beside the conversation. */
const snapshot = (messageId: string) => ({
  type: 'file-history-snapshot',
  messageId,
  snapshot: { messageId },
});

const at = (minute: number, day = 12) => ({
  timestamp: `2026-03-${day}T09:${String(minute).padStart(2, '0')}:00.000Z`,
});
const usage = (input: number, output: number) => ({ usage: { input_tokens: input, output_tokens: output } });

/** A transcript in the shape of those of Claude Code: more records beside the conversation than in it. */
function shop(): readonly unknown[] {
  return [
    { type: 'summary', summary: 'Round totals half to even', leafUuid: 'u9' },
    snapshot('u1'),
    person({ uuid: 'u1' }, 'The totals of the shop are off by a cent. Find out why, and fix it.', at(0)),
    snapshot('u2'),
    model(
      { uuid: 'u2', parent: 'u1' },
      [
        { type: 'thinking', thinking: 'Rounding. The tests say which way.', signature: 'sig' },
        says('I look at the code and at the tests first.'),
        calls('c1', 'Read', { file_path: '/home/dev/shop/src/total.ts' }),
        calls('c2', 'Bash', { command: 'npm test 2>&1 | tail -4', description: 'Run the tests' }),
      ],
      { ...usage(2100, 180), ...at(1) },
    ),
    person(
      { uuid: 'u3', parent: 'u2' },
      [
        returns('c1', 'export function total(lines) {\n  return Math.round(sum(lines) * 100) / 100;\n}\n'),
        returns('c2', 'FAIL total.test.ts\n  expected 10.12\n  received 10.13', { is_error: true }),
      ],
      at(1),
    ),
    { type: 'progress', data: { type: 'hook' }, parentUuid: 'u3' },
    model(
      { uuid: 'u4', parent: 'u3' },
      [
        says(
          '## Cause\n\n`Math.round` rounds **half up**; invoices round *half to even*:\n\n```ts\nconst cents = halfEven(sum(lines) * 100);\n```\n\n- 10.125 is 10.12\n- 10.135 is 10.14',
        ),
      ],
      { ...usage(2600, 420), ...at(2) },
    ),
    snapshot('u5'),
    person(
      { uuid: 'u5', parent: 'u4' },
      '合計は正しいですか？ 🧾 Please check the café orders as well.',
      at(30, 13),
    ),
    model({ uuid: 'u6', parent: 'u5' }, [calls('c3', 'Grep', { pattern: 'round', path: 'src' })], {
      ...usage(3100, 60),
      ...at(31, 13),
    }),
    person(
      { uuid: 'u7', parent: 'u6' },
      [returns('c3', Array.from({ length: 40 }, (_, i) => `src/order-${i}.ts: Math.round`).join('\n'))],
      at(31, 13),
    ),
    model({ uuid: 'u8', parent: 'u7' }, [says('Forty places round half up. I list them for you.')], {
      ...usage(4000, 90),
      ...at(32, 13),
    }),
  ];
}

/** A second one: a prompt that was edited, so that its first answers are off the path, and an interrupted call. */
function parser(): readonly unknown[] {
  return [
    person({ uuid: 'p1' }, 'Write a parser for dates.', at(0, 14)),
    model({ uuid: 'p2', parent: 'p1' }, [says('Which forms do you need?')], {
      ...usage(900, 30),
      ...at(1, 14),
    }),
    person({ uuid: 'p3', parent: 'p2' }, 'All forms of ISO 8601.', at(2, 14)),
    model({ uuid: 'p4', parent: 'p3' }, [says('That is a long list.')], { ...usage(1000, 20), ...at(3, 14) }),
    person({ uuid: 'p5', parent: 'p2' }, 'Days and times in UTC alone.', at(4, 14)),
    model(
      { uuid: 'p6', parent: 'p5' },
      [
        says('Then one pattern is enough.'),
        calls('d1', 'Write', { file_path: 'src/date.ts', content: 'export {};\n' }),
      ],
      { ...usage(1100, 70), ...at(5, 14) },
    ),
    person(
      { uuid: 'p7', parent: 'p6' },
      [returns('d1', 'The user does not want to take this action right now.', { is_error: true })],
      at(6, 14),
    ),
    person({ uuid: 'p8', parent: 'p7' }, '[Request interrupted by user for tool use]', at(6, 14)),
  ];
}

/** A session with all that a log shows beside messages. */
function release(home: TempHome): void {
  using store = home.open();
  store.sessions.open('release', { title: 'Release 2.4.0' });
  const say = (...drafts: Parameters<typeof store.entries.append>[1]) =>
    store.entries.append('release', drafts);
  say(
    user('Plan the release.'),
    assistant('Test, tag, publish.', { model: 'acme/planner-1', usage: { input: 1200, output: 34 } }),
  );
  say(anchor('planned', { steps: 3 }), note('app/build', { commit: 'a1b2c3d' }));
  store.lineage.fork('release', {
    name: 'tests',
    title: 'Run the tests',
    intention: { nextSteps: 'Run all tests, twice.' },
  });
  store.lineage.fork('release', { name: 'notes', title: 'Write the notes' });
  store.lineage.fork('release', { name: 'idea', title: 'Try another order' });
  store.entries.append('tests', [result('All 212 tests pass.\nTwo are slow.')]);
  store.entries.append('notes', [assistant('The notes are in NEWS.md.')]);
  store.sessions.update('notes', { task: 'failed' });
  store.lineage.merge('tests');
  store.lineage.merge('notes', { strategy: 'discard' });
  const { to } = say(user('Publish it to the wrong place.'), assistant('Published.'));
  store.history.rewind('release', to - 2);
  const tag = toolCall('t1', 'tag', { version: '2.4.0', sign: true });
  say(user('Tag it.'), assistant([{ type: 'text', text: 'I tag it.' }, tag]));
  say(
    toolResult(
      { toolCallId: 't1', toolName: 'tag' },
      { type: 'execution-denied', reason: 'not on a Friday' },
    ),
  );
  say(note('run/error', { message: 'cannot reach the provider: it answered 503' }));
  say(compaction({ summary: 'The release is planned; the tests pass.', range: [2, 7] }));
  say(handoff('publish', { summary: 'Publish on Monday.' }), user('Is it Monday?'));
}

/** A session whose run waits for an approval. */
async function deploy(home: TempHome): Promise<void> {
  using store = home.open();
  const calls = [{ name: 'deploy', input: { version: '2.4.0', to: 'production' }, id: 'call_deploy' }];
  using answers = tempDir();
  writeFileSync(
    answers.file('answers.json'),
    JSON.stringify([{ text: 'Ready to deploy.', toolCalls: calls }]),
  );
  const inputSchema = z.object({ version: z.string(), to: z.string() });
  const tools = { deploy: tool({ inputSchema, needsApproval: true, execute: () => 'deployed' }) };
  await using deck = await openDeck({ store, tools, model: `script:${answers.file('answers.json')}` });
  await (await deck.session('deploy')).run('Deploy 2.4.0 to production.');
}
