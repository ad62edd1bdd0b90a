import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { moduleDir } from './module-dir.ts';
import { allCodeBlocks, codeBlocks, page } from './pages.ts';
import { plainEnv } from './tape.ts';
import { typeErrorsOf } from './types.ts';

test('the program that brings a format of its own type-checks, imports its files, and follows them', () => {
  using dir = moduleDir();
  const text = page('docs/formats/your-own.md');
  const file = (title: string) => allCodeBlocks(text).find((block) => block.title === title)?.code ?? '';
  const env = { ...plainEnv(dir.path), HOME: dir.path };
  const run = () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['parrots.mjs'], {
      ...{ cwd: dir.path, env, encoding: 'utf8' },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout;
  };
  mkdirSync(dir.file('.parrot'));
  writeFileSync(dir.file('.parrot/polly.chat'), file('polly.chat'));
  writeFileSync(dir.file('parrots.mts'), file('parrots.mts'));
  expect(typeErrorsOf(dir.path, ['parrots.mts'])).toBe('');
  const [first] = codeBlocks(text, 'text');
  expect(run()).toBe(first);
  expect(run()).toBe('polly: unchanged, 0 entries\n');
  appendFileSync(dir.file('.parrot/polly.chat'), '{"id":4,"who":"me","text":"Bye"}\n');
  expect(run()).toBe('polly: grown, 1 entries\n');
});
