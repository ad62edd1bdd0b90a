import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { claudeCodeEnv, claudeCodeProgram, startScriptedModel } from '../support/claude-code-program.ts';
import { importFiles } from '../support/import-files.ts';
import { type Answer, apiKey, type ChatRequest } from '../support/provider/protocol.ts';
import { onTerminal, type Step, skipsTerminals } from '../support/pty.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The words by which the tests know prompts, answers and summaries, in the order in which messages have them. */
const wordsIn = (messages: unknown): readonly string[] =>
  JSON.stringify(messages).match(/(?:ask|done|summary)-\d+/g) ?? [];

/** Answers a prompt, or sums up. @param tokens how many a prompt is said to have sent */
function answerTo({ messages }: ChatRequest, tokens: (prompt: number) => number): Answer {
  const last = JSON.stringify(messages.findLast(({ role }) => role === 'user'));
  const prompt = Number(
    wordsIn(messages)
      .findLast((word) => word.startsWith('ask'))
      ?.slice(4),
  );
  if (last.includes('<summary> block')) return { text: `<summary>summary-${prompt}</summary>` };
  return { text: `done-${prompt}`, usage: [tokens(prompt), 10] };
}

/** Types a text, and ends it when the terminal shows it. */
const type = (text: string): readonly Step[] => [{ type: text }, { until: text }, { type: '\r' }];

/** A prompt, and its answer. */
const ask = (n: number): readonly Step[] => [...type(`ask-${n}`), { until: `done-${n}` }];

/** Ends the session, and begins another one. What is typed before its first screen is there is not lost. */
const clear: readonly Step[] = type('/clear');

/** Chooses what becomes of the last prompt: `1` takes it back, `2` sums up from it on, `3` up to it. */
const rewind = (choice: '1' | '2' | '3'): readonly Step[] => [
  ...type('/rewind'),
  { until: '(current)' },
  { type: '\u001b[A' },
  { until: '❯' },
  { type: '\r' },
  { until: 'mind' },
  { type: choice },
  ...(choice === '1' ? [] : [{ until: 'summarized' }]),
];

/** Types another prompt in place of the one that was taken back, which the terminal shows to be edited. */
const askInstead = (old: number, n: number): readonly Step[] => [
  { until: `ask-${old}` },
  { type: `\u0015Now ask-${n}` },
  { until: `ask-${n}` },
  { type: '\r' },
  { until: `done-${n}` },
];

/** Runs Claude Code at a terminal, where a person takes some steps, and imports what it wrote. */
async function runAtTerminal(steps: readonly Step[], tokens: (prompt: number) => number = () => 100) {
  using dir = tempDir();
  const [config, project] = [dir.file('config'), dir.file('project')];
  for (const folder of [config, project]) mkdirSync(folder);
  await using model = await startScriptedModel((request) => answerTo(request, tokens));
  // What it asks a person who starts it for the first time.
  const settings = {
    hasCompletedOnboarding: true,
    customApiKeyResponses: { approved: [apiKey], rejected: [] },
    projects: { [project]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  writeFileSync(join(config, '.claude.json'), JSON.stringify(settings));
  await onTerminal({
    argv: [await claudeCodeProgram()],
    // It sums up earlier than its model needs, so that the test need not say much.
    env: { ...claudeCodeEnv({ config, url: model.url }), CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: '10' },
    cwd: project,
    rows: 50,
    columns: 120,
    steps: [{ until: '❯' }, ...steps, ...type('/exit')],
  });
  const store = openStore();
  const { names } = await importFiles(store, [join(config, 'projects')], { clean: false });
  const shown = (name: string) => wordsIn(view(store.views.entries(name)).messages);
  const placed = names.map((name) => {
    const info = store.sessions.find(name);
    const { parent } = info === undefined ? {} : treeParentOf(info);
    return { shows: shown(name), under: parent && shown(parent), by: info?.link?.type };
  });
  const sent = model.requests.map(({ messages }) => wordsIn(messages));
  return {
    placed,
    /** What the model was sent last for a prompt, and its answer. */
    got: (n: number) => [...(sent.findLast((words) => words.at(-1) === `ask-${n}`) ?? []), `done-${n}`],
  };
}

/** On a busy machine the program can miss a key, once in many runs: then a step waits for a text that never comes. */
const patient = { timeout: 300_000, retry: 1 };

describe.skipIf(skipsTerminals('Claude Code at a terminal'))('a run of Claude Code at a terminal', () => {
  test('is a chain of the sessions that it cleared', patient, async () => {
    const { placed } = await runAtTerminal([...ask(1), ...clear, ...ask(2), ...clear, ...ask(3)]);
    const [one, two, three] = [1, 2, 3].map((n) => [`ask-${n}`, `done-${n}`]);
    expect(new Set(placed)).toEqual(
      new Set([
        { shows: one, under: undefined, by: undefined },
        { shows: two, under: one, by: 'clear' },
        { shows: three, under: two, by: 'clear' },
      ]),
    );
  });

  test('clears the session in which it is, whichever it began', patient, async () => {
    const branched = [...ask(1), ...type('/branch'), { until: 'Branched' }, ...ask(2)];
    const { placed } = await runAtTerminal([...branched, ...clear, ...ask(3), ...clear, ...ask(4)]);
    const [one, two, three, four] = [1, 2, 3, 4].map((n) => [`ask-${n}`, `done-${n}`]);
    const branch = [...(one ?? []), ...(two ?? [])];
    // Which of the two is imported first says whether the branch is a fork, or is under the other one by a link.
    const places = placed.map(({ by, ...one }) => ({ ...one, isCleared: by === 'clear' }));
    expect(new Set(places)).toEqual(
      new Set([
        { shows: one, under: undefined, isCleared: false },
        { shows: branch, under: one, isCleared: false },
        { shows: three, under: branch, isCleared: true },
        { shows: four, under: three, isCleared: true },
      ]),
    );
  });

  test('clears a session to which it came back', patient, async () => {
    // The last one but its own is the first that it shows.
    const resume: readonly Step[] = [
      ...type('/resume'),
      { until: 'close' },
      { type: '\r' },
      { until: 'done-1' },
    ];
    const left = [...ask(1), ...clear, ...ask(2), ...resume, ...ask(3)];
    const { placed } = await runAtTerminal([...left, ...clear, ...ask(4)]);
    const [two, four] = [2, 4].map((n) => [`ask-${n}`, `done-${n}`]);
    const first = ['ask-1', 'done-1', 'ask-3', 'done-3'];
    expect(new Set(placed)).toEqual(
      new Set([
        { shows: first, under: undefined, by: undefined },
        { shows: two, under: first, by: 'clear' },
        { shows: four, under: first, by: 'clear' },
      ]),
    );
  });

  test('shows what the model got behind each summary of a rewind', patient, async () => {
    const upTo = [...ask(1), ...ask(2), ...ask(3), ...rewind('3'), ...ask(4)];
    const { placed, got } = await runAtTerminal([...upTo, ...ask(5), ...rewind('2'), ...ask(6)]);
    expect(got(4)).toEqual(['summary-2', 'ask-3', 'done-3', 'ask-4', 'done-4']);
    expect(placed.map(({ shows }) => shows)).toEqual([got(6), got(5)]);
  });

  test('shows a prompt that was taken back as a branch', patient, async () => {
    const { placed, got } = await runAtTerminal([...ask(1), ...ask(2), ...rewind('1'), ...askInstead(2, 3)]);
    expect(placed).toEqual([
      { shows: ['ask-1', 'done-1', 'ask-3', 'done-3'], under: undefined, by: undefined },
      { shows: got(2), under: got(3), by: undefined },
    ]);
  });

  test('shows the first prompt that was taken back as a branch, too', patient, async () => {
    const { placed, got } = await runAtTerminal([...ask(1), ...rewind('1'), ...askInstead(1, 2), ...ask(3)]);
    expect(placed).toEqual([
      { shows: got(3), under: undefined, by: undefined },
      { shows: got(1), under: got(3), by: undefined },
    ]);
  });

  test(
    'shows what the model got behind an automatic compaction, and instead of the prompt that it came upon',
    patient,
    async () => {
      const { placed, got } = await runAtTerminal(
        [...ask(1), ...ask(2), ...ask(3), ...rewind('1'), ...askInstead(3, 4), ...ask(5)],
        (prompt) => (prompt === 2 ? 195_000 : 100),
      );
      expect(got(3)[0]).toBe('summary-2');
      expect(got(5)).toEqual([...got(4), 'ask-5', 'done-5']);
      expect(placed.map(({ shows }) => shows)).toEqual([got(5), got(3)]);
    },
  );
});
