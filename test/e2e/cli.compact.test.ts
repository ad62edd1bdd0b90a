import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** `main`: three long turns, at 2 to 7, and a script whose first answer is a summary. */
function talked(...answers: object[]): { readonly home: TempHome; readonly model: string } {
  const home = tempHome();
  const more = 'and so on '.repeat(100);
  home.session('main', ...[1, 2, 3].flatMap((i) => [user(`ask ${i} ${more}`), assistant(`${i}. ${more}`)]));
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  return { home, model: `script:${home.file('answers.json')}` };
}

const usage = { input: 100, output: 7 };

test('compact prints how to undo it; its summarizer is listed on request, and its tokens count', async () => {
  const { home, model } = talked({ text: '## Goal\nTo talk.', usage });
  using _home = home;
  const done = await home.tape(['compact', 'main', '--model', model]);
  expect(done).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^Warning: the summary lacks Constraints & Preferences, Progress, .*tape view main\n$/,
    ),
  });
  expect(done.stdout).toBe(
    'Summarised main@1-3 at main@8: about 1507 tokens, now 1035 (undo with: tape undo main@8)\n',
  );
  expect((await home.here(['sessions', '--quiet'])).stdout).toBe('main\n');
  expect((await home.here(['children', 'main', '--quiet'])).stdout).toBe('');
  const [written] = json<{ session: string }[]>(await home.here(['children', 'main', '--all', '--json']));
  expect(written).toMatchObject({ kind: 'summarizer', task: 'completed', title: 'Summary of main@1-3' });
  const { session = '' } = written ?? {};
  const view = await home.here(['view', session]);
  expect(view.stdout).toMatch(
    /^\[user\] ask 1 [\s\S]*\[user\] Your task: Summarise main@1-3\n\[assistant\] ## Goal/,
  );
  for (const verb of ['graph', 'lineage'])
    expect((await home.here(verb === 'graph' ? [verb] : [verb, 'main'])).stdout).toContain(session);
  expect(json(await home.here(['usage', 'main', '--tree', '--json']))).toMatchObject({
    steps: 0,
    summaries: { steps: 1, total: 107 },
    children: [{ session, total: 107 }],
    tree: { steps: 1, total: 107 },
  });
  expect((await home.here(['usage', 'main'])).stdout).toContain('(summaries)');
  expect(json(await home.here(['usage', '--json']))).toMatchObject({ total: { steps: 1, total: 107 } });
  expect((await home.here(['audit'])).code).toBe(0);

  expect((await home.here(['undo', 'main'])).stdout).toBe(
    'Undid the summary main@8: 1 entry hidden, none removed (undo with: tape undo main@9)\n',
  );
  // The summary is hidden now.
  expect(jsonError(await home.here(['undo', 'main@8', '--json']))).toMatchObject({
    code: 'TAPE_BAD_POINT',
    data: { session: 'main', seq: 8, hidden: 9 },
  });
  expect(json(await home.here(['undo', 'main', '--json']))).toMatchObject({ undone: 9, act: 'rewind' });
  await home.here(['append', 'main'], { stdin: '{"content":"More"}\n' });
  const refused = await home.here(['undo', 'main@8', '--json']);
  expect(refused.code).toBe(4);
  expect(jsonError(refused)).toMatchObject({
    message: 'cannot undo the summary main@8: message main@11 follows it',
    hint: 'rewind to before that message first: tape rewind main@11; then: tape undo main@8',
  });
});

test('a failed summary names the session that contains its answers', async () => {
  const { home, model } = talked({ text: ' ', usage });
  using _home = home;
  const failed = await home.here(['compact', 'main', '--model', model, '--json']);
  expect(failed.code).toBe(1);
  const { data, hint } = jsonError(failed);
  const summarizer = String(data.summarizer);
  expect(hint).toBe(`see the request and the answer of the model: tape log ${summarizer} --own`);
  expect((await home.here(['log', summarizer, '--own'])).stdout).toContain('summary/failed');
});

test('--undo refuses --model, --prune and --focus', async () => {
  const { home, model } = talked();
  using _home = home;
  for (const more of [['--model', model], ['--prune'], ['--focus', 'x']])
    expect((await home.here(['compact', 'main', '--undo', ...more])).code).toBe(2);
});
