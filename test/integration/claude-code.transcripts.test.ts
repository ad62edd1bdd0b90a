import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isBlobRef } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import {
  type ClaudeCodePlace,
  claudeCodeProgram,
  runClaudeCode,
  startScriptedModel,
} from '../support/claude-code-program.ts';
import { countedIn, objectsIn } from '../support/claude-reader.ts';
import { unexplained } from '../support/claude-records.ts';
import { importFiles } from '../support/import-files.ts';
import { ask } from '../support/provider/ask.ts';
import { modes } from '../support/provider/modes.ts';
import type { Answer, ChatRequest } from '../support/provider/protocol.ts';
import { type Said, saidIn } from '../support/said.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const session = '11111111-2222-4333-8444-555555555555';
const dot =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Its own provider gets the thoughts of a model. */
const target = { provider: 'anthropic.messages' };

/** Hooks that say something at the places at which the model hears them. */
const hooks = {
  UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'echo take care' }] }],
  PostToolUse: [
    {
      matcher: 'Read',
      hooks: [
        {
          type: 'command',
          command: `echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"it was read"}}'`,
        },
      ],
    },
  ],
};

/** The answers of the model, by what the last prompt says. */
function answerTo(request: ChatRequest, project: string): Answer {
  const [first] = request.messages;
  const last = JSON.stringify(request.messages.findLast(({ role }) => role === 'user'));
  if (last.includes('create a detailed summary')) return { text: '<summary>They read a note.</summary>' };
  if (JSON.stringify(first).includes('SUBTASK') && !last.includes('tool_result'))
    return {
      text: 'I begin.',
      calls: [{ name: 'Bash', arguments: { command: 'echo sub', description: 'sub' } }],
    };
  if (last.includes('tool_result') || !last.includes('STEP')) return { text: 'Done.' };
  if (last.includes('STEP-READ'))
    return {
      reasoning: 'A note, and a long list.',
      text: 'I read it.',
      calls: [
        { name: 'Read', arguments: { file_path: join(project, 'note.txt') } },
        { name: 'Bash', arguments: { command: 'sleep 1; seq 1 30000', description: 'count' } },
      ],
      usage: [1000, 50],
    };
  if (last.includes('STEP-DELEGATE'))
    return {
      calls: [
        {
          name: 'Agent',
          arguments: {
            description: 'a part',
            prompt: 'SUBTASK',
            subagent_type: 'general-purpose',
            run_in_background: false,
          },
        },
      ],
    };
  if (last.includes('STEP-FAIL'))
    return { calls: [{ name: 'Read', arguments: { file_path: join(project, 'absent.txt') } }] };
  return { text: 'Done.' };
}

/** Imports all sessions of a place, and says what each of them shows. */
async function importAll(
  store: SqliteTapeStore,
  { config }: ClaudeCodePlace,
  form: { readonly plain: boolean },
): Promise<ReadonlyMap<string, Said[]>> {
  const { names, done } = await importFiles(store, [join(config, 'projects')], { clean: false });
  // The program writes nothing that is wrong.
  expect(done.flatMap(({ brought }) => brought?.irregular ?? [])).toEqual([]);
  return new Map(
    names.map((name) => [name, saidIn(view(store.views.entries(name), { target }).messages, form)]),
  );
}

/** Each beginning of the main transcript, imported in order into one store, reads as it does alone. */
function expectPiecesToAgree({ config }: ClaudeCodePlace): void {
  const file = globSync(`projects/*/${session}.jsonl`, { cwd: config })[0] ?? '';
  const lines = readFileSync(join(config, file), 'utf8').split('\n');
  using grown = openStore();
  for (let count = 1; count <= lines.length; count += 9) {
    const { records } = parseJsonLines([Buffer.from(lines.slice(0, count).join('\n'))], { growing: true });
    const plan = planClaudeCode({ name: session, lines: records });
    using alone = openStore();
    const [shown, expected] = [grown, alone].map((store) =>
      reconcile(store, plan).map(({ session: name }) => view(store.views.entries(name), { target }).messages),
    );
    expect(shown).toEqual(expected);
  }
}

describe('transcripts that Claude Code 2.1.330 writes', () => {
  test.each([
    ['reminders before the prompts', 'claude-sonnet-4-5'],
    ['turns of the system behind them', 'claude-opus-5-5'],
  ])(
    'show what the model got, in %s',
    async (form, name) => {
      const said = { plain: form !== 'reminders before the prompts' };
      using dir = tempDir();
      const [config, project] = [dir.file('config'), dir.file('project')];
      for (const folder of [config, project]) mkdirSync(folder);
      writeFileSync(join(project, 'note.txt'), 'hello note\n');
      writeFileSync(join(project, 'CLAUDE.md'), 'Be terse.\n');
      writeFileSync(join(project, 'dot.png'), Buffer.from(dot, 'base64'));
      writeFileSync(join(config, 'settings.json'), JSON.stringify({ hooks }));
      let queue = (): void => {};
      await using model = await startScriptedModel((request) => {
        queue();
        return answerTo(request, project);
      });
      const place = { program: await claudeCodeProgram(), config, project, url: model.url };
      const common = ['-p', '--dangerously-skip-permissions', '--model', name];
      const run = async (args: readonly string[], typing?: Parameters<typeof runClaudeCode>[2]) => {
        const { status, stderr } = await runClaudeCode(place, [...common, ...args], typing);
        expect(status, stderr).toBe(0);
      };
      /** What the model got in the last request with a text. */
      const got = (text: string): readonly Said[] => {
        const request = model.requests.findLast(({ messages }) => JSON.stringify(messages).includes(text));
        return saidIn(request?.messages ?? [], said);
      };
      const agree = (shown: readonly Said[] | undefined, sent: readonly Said[]) => {
        expect(sent.length).toBeGreaterThan(0);
        // A session shows the answer as well.
        expect(shown?.slice(0, -1)).toEqual(sent);
      };
      const store = openStore();

      // A prompt with files, and one that comes while the first is worked on.
      const prompt = (text: string) =>
        `${JSON.stringify({ type: 'user', message: { role: 'user', content: [{ type: 'text', text }] } })}\n`;
      const stream = [
        '--session-id',
        session,
        '--input-format',
        'stream-json',
        '--output-format',
        'stream-json',
      ];
      await run([...stream, '--verbose'], (write, end) => {
        queue = () => {
          queue = () => {};
          write(prompt('What waited'));
          end();
        };
        write(prompt('STEP-READ @note.txt @dot.png'));
      });
      const first = (await importAll(store, place, said)).get(session);
      agree(first, got('What waited'));
      // The whole of an output that was moved is on the tape, beside the beginning that the model got.
      expect(JSON.stringify(first)).toContain('<persisted-output>');
      const [moved] = [...store.entries.read(session)].flatMap(({ meta }) => meta.savedAs ?? []);
      const [saved] = [...store.entries.read(session, { kind: 'x-claude-code' })].flatMap(({ payload }) =>
        isObject(payload) && payload.file === moved && isBlobRef(payload.content)
          ? [payload.content.hash]
          : [],
      );
      const numbers = Array.from({ length: 30_000 }, (_, i) => `${i + 1}\n`).join('');
      expect(
        Buffer.from(store.entries.blob(saved ?? ''))
          .toString()
          .trim(),
      ).toBe(numbers.trim());

      // Subagents, a failed call, commands of its own, in later runs.
      const resumed = ['--resume', session];
      for (const text of ['STEP-DELEGATE', 'STEP-FAIL', '/cost', 'Go on']) await run([text, ...resumed]);
      const second = await importAll(store, place, said);
      agree(second.get(session), got('Go on'));
      const agent = [...second.keys()].find((name) => name.startsWith('agent-')) ?? '';
      const asked = model.requests.findLast(({ messages }) =>
        JSON.stringify(messages[0]).includes('SUBTASK'),
      );
      agree(second.get(agent), saidIn(asked?.messages ?? [], said));

      for (const text of ['/compact', 'After it']) await run([text, ...resumed]);
      agree((await importAll(store, place, said)).get(session), got('After it'));

      // Each call counts once, with the greatest figures, those of subagents included.
      const texts = globSync('projects/**/*.jsonl', { cwd: config }).map((file) =>
        readFileSync(join(config, file), 'utf8'),
      );
      const { tokens } = countedIn(texts.join(''));
      const calls = store.sessions.calls();
      for (const kind of ['input', 'output', 'cacheRead', 'cacheWrite'] as const)
        expect(calls.reduce((sum, { usage }) => sum + usage[kind], 0)).toBe(tokens[kind]);

      await run(['In a fork', ...resumed, '--fork-session']);
      const forked = await importAll(store, place, said);
      const fork = [...forked.keys()].find((name) => name !== session && !name.startsWith('agent-')) ?? '';
      agree(forked.get(fork), got('In a fork'));
      expect(model.faults).toEqual([]);
      expect([...store.verify()]).toEqual([]);
      // Each record of each file is in the view of a session, or beside it for a reason.
      const files = globSync('projects/**/*.jsonl', { cwd: config });
      const records = files.flatMap((file) => objectsIn(readFileSync(join(config, file), 'utf8')).objects);
      expect(unexplained(store, { names: forked.keys(), records })).toEqual([]);
      // Each provider takes them.
      for (const one of forked.keys()) {
        store.entries.append(one, [user('Go on.')]);
        for (const mode of modes) {
          const asked = await ask(mode, store.views.entries(one), {
            blob: (hash) => store.entries.blob(hash),
          });
          expect({ mode: mode.name, refused: asked?.refused }).toEqual({ mode: mode.name });
        }
      }
      store.close();
      expectPiecesToAgree(place);
    },
    300_000,
  );
});
