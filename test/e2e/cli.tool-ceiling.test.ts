import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

test('a fork with a tool that its parent cannot hand on is refused, and show has both lists', async () => {
  using home = tempHome();
  const made = ['new', 'main', '--tool', 'read', '--tool', 'delegate', '--use', 'delegate'];
  expect(await home.tape(made)).toMatchObject({ code: 0 });
  const refused = await home.tape(['fork', 'main', '--tool', 'write', '--json']);
  expect(refused.code).not.toBe(0);
  expect(jsonError(refused)).toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot fork 'main' with tool 'write': the tools that it may have are read, delegate",
  });
  expect(await home.tape(['fork', 'main', '--tool', 'read', '--use', 'write'])).not.toMatchObject({
    code: 0,
  });
  expect(await home.tape(['new', 'other', '--tool', 'read', '--use', 'write'])).not.toMatchObject({
    code: 0,
  });
  expect(json<unknown[]>(await home.tape(['sessions', '--json']))).toHaveLength(1);
  expect(await home.tape(['fork', 'main', '--as', 'child', '--tool', 'read', '--use', 'read'])).toMatchObject(
    { code: 0 },
  );
  for (const [session, tools, uses] of [
    ['main', ['read', 'delegate'], ['delegate']],
    ['child', ['read'], ['read']],
  ])
    expect(json(await home.tape(['show', String(session), '--json']))).toMatchObject({
      tools,
      ...(session === 'main' && { uses }),
      settings: { tools, uses },
    });
  // The lists are those of the whole line, and one alone where they are the same.
  expect(await home.tape(['fork', 'child', '--as', 'grandchild'])).toMatchObject({ code: 0 });
  const { tools, uses } = json<{ tools?: unknown; uses?: unknown }>(
    await home.tape(['show', 'grandchild', '--json']),
  );
  expect([tools, uses]).toEqual([['read'], undefined]);
  const rows = async (name: string) =>
    (await home.tape(['show', name])).stdout
      .match(/^(?:tools|uses) .*$/gm)
      ?.map((row) => row.replace(/ +/, ' '));
  expect(await rows('main')).toEqual(['tools read, delegate', 'uses delegate']);
  expect(await rows('grandchild')).toEqual(['tools read']);
  expect(await home.tape(['new', 'free'])).toMatchObject({ code: 0 });
  expect(await rows('free')).toEqual(['tools all']);
});
