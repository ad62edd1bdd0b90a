import { writeFileSync } from 'node:fs';
import { anchor, assistant, handoff, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function script(home: TempHome, ...answers: object[]): string {
  writeFileSync(home.file('answers.json'), JSON.stringify(answers));
  return `script:${home.file('answers.json')}`;
}

test('view --explain shows what the model of an answer received, and whether it can be reproduced', async () => {
  using home = tempHome();
  home.session('main', user('old'), handoff('next', { summary: 'So far.' }));
  await home.here(['run', 'main', 'Go', '--model', script(home, { text: 'Done.' }), '--no-config']);
  const { stdout } = await home.tape(['view', 'main@5', '--explain']);
  expect(stdout.replaceAll(/[0-9a-f]{64}/g, 'DIGEST')).toMatchInlineSnapshot(`
    "[user] The conversation history before this point was compacted into the following summary:
    <summary>
    So far.
    </summary>
    Go
    [assistant] Done.
    - @1 before next@3
    - @2 before next@3
    + @3 its state begins the view
    + @4 in view
    + @5 in view
    this view: last-boundary, version 5, at @5, ~30 tokens
      in: @3-5
      out: @1-2 before next@3
      digests: messages DIGEST
    view answered by @5: last-boundary, version 5 for script, at @4, ~30 tokens
      in: @3-4
      out: @1-2 before next@3
      digests: messages DIGEST
      reproduced: identical
    "
  `);
  const { asked, manifest } = json<{ asked: object; manifest: object }>(
    await home.here(['view', 'main@5', '--explain', '--json']),
  );
  expect(asked).toMatchObject({ policy: 'last-boundary', version: 5, head: 4, in: [[3, 4]], same: true });
  expect(manifest).toMatchObject({ head: 5, in: [[3, 5]], out: [[1, 2, 'before next@3']] });
  await home.here(['redact', 'main@4', '--reason', 'secret']);
  expect(json(await home.here(['view', 'main@5', '--explain', '--json']))).toMatchObject({
    asked: { same: false },
  });
});

test('a program gets the messages of a view alone; how large it is, and where its entries are, is on stderr', async () => {
  using home = tempHome();
  home.session('main', user('1'), assistant('2'));
  expect(await home.here(['view', 'main'])).toMatchObject({
    stdout: '[user] 1\n[assistant] 2\n',
    stderr: expect.stringMatching(/^\(~\d+ tokens?, @1-3\)\n$/),
  });
  home.session('empty');
  expect((await home.here(['view', 'empty'])).stdout).toBe('');
  const atTerminal = await home.here(['view', 'main'], { isTerminal: true });
  expect(atTerminal.stdout).toMatch(/\(~\d+ tokens?, @1-3\)/);
});

test('view --policy shows a window of the messages', async () => {
  using home = tempHome();
  home.session('main', anchor('a'), user('1'), assistant('2'), anchor('b'), user('3'));
  const shown = async (policy: string) =>
    (await home.here(['view', 'main', '--policy', policy])).stdout.split('\n').slice(0, -1).join(' ');
  expect(await shown('window:1')).toBe('[user] 3');
  expect(await shown('from-anchor:a,window:2')).toContain('[assistant] 2');
  expect(
    jsonError(await home.here(['view', 'main', '--policy', 'from-anchor:nowhere', '--json'])),
  ).toMatchObject({
    code: 'TAPE_NO_ANCHOR',
    hint: 'list anchors with: tape log main --kind anchor',
  });
  for (const policy of ['window:2,full', 'full,topic:a']) {
    const refused = await home.here(['view', 'main', '--policy', policy, '--json']);
    expect(refused.code).toBe(2);
    expect(jsonError(refused)).toMatchObject({ code: 'CLI_USAGE' });
  }
});

test('view --jsonl prints a message a line, the same as --json', async () => {
  using home = tempHome();
  home.session('main', user('1'), assistant('2'), user('3'));
  const { stdout } = await home.here(['view', 'main', '--policy', 'full', '--jsonl']);
  const { messages } = json<{ messages: unknown[] }>(await home.here(['view', 'main', '--json']));
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(messages);
});

test('config.yaml sets the view that models receive', async () => {
  using home = tempHome();
  home.session('main', user('1'), assistant('2'), user('3'));
  const config = (text: string) => writeFileSync(home.file('config.yaml'), text);
  const run = async () =>
    await home.here(['run', 'main', '--model', script(home, { text: 'Well.' }), '--json', '--no-config']);
  config('view: window:1\n');
  expect((await run()).code).toBe(0);
  expect(json(await home.here(['view', 'main@5', '--explain', '--json']))).toMatchObject({
    asked: { policy: 'last-boundary,window:1', in: [[4, 4]] },
  });
  for (const [text, says] of [
    ['view: full', 'must be a window after the last boundary'],
    ['view: windows:2', "unknown rule 'windows:2'"],
    ['view: 3', 'must be a window'],
    ['view: topic:billing', "unknown rule 'topic:billing'"],
    ['view: from-anchor:billing', 'must be a window'],
  ] as const) {
    config(`${text}\n`);
    const refused = await run();
    expect([refused.code, jsonError(refused).code]).toEqual([2, 'CLI_BAD_CONFIG']);
    expect(jsonError(refused).message).toContain(says);
  }
});

test('a manifest of another program is printed as it is, in any form, and forges no line', async () => {
  using home = tempHome();
  const odd = { toString: 1 };
  const evil = 'x\n  reproduced: identical\u001b[2J';
  const told = { policy: evil, version: odd, target: evil, head: odd, tokens: odd, digest: evil };
  home.session('main', user('Go'), {
    ...assistant('Done.'),
    meta: { view: { ...told, in: [[evil, odd]], out: [odd, [evil, 1, evil]] } },
  });
  const { code, stdout, stderr } = await home.here(['view', 'main@3', '--explain']);
  expect([code, stderr]).toEqual([0, '(~2 tokens, @1-3)\n']);
  expect(stdout.split('\n').filter((line) => line.startsWith('  reproduced'))).toEqual([
    '  reproduced: different',
  ]);
});

test('a manifest with an unknown policy is printed, with the reason why it cannot be reproduced', async () => {
  using home = tempHome();
  const told = {
    policy: 'full,topic:billing',
    version: 5,
    head: 2,
    in: [[2, 2]],
    out: [],
    tokens: 1,
    digest: 'd',
  };
  home.session('main', user('Go'), { ...assistant('Done.'), meta: { view: told } });
  const fault = {
    code: 'TAPE_BAD_POLICY',
    message:
      "cannot view by 'full,topic:billing': unknown rule 'topic:billing'; the rules are last-boundary, full, from-anchor:ANCHOR, window:N and window:N-tokens",
  };
  const explained = await home.here(['view', 'main@3', '--explain', '--json']);
  expect(explained.code).toBe(0);
  expect(json(explained)).toMatchObject({ asked: { ...told, same: false, fault } });
  expect((await home.here(['view', 'main@3', '--explain'])).stdout).toContain(
    `  reproduced: different\n  reason: ${fault.message}\n`,
  );
  expect((await home.here(['view', 'main'])).code).toBe(0);
});
